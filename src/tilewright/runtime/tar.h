// Plain POSIX tar archives (ustar): read in place, written as a stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

inline constexpr size_t kTarBlock = 512;  ///< headers and data start at multiples of it

struct TarMember {
  std::string name;
  std::string_view bytes;  ///< inside the archive
};

/// Regular files of an archive in memory; folders are skipped. errors: Package (not a tar, cut off,
/// damaged header, a name twice, links).
Result<std::vector<TarMember>> read_tar(std::string_view archive);

/// The 512-byte header of a regular file. Fixed time, owner and mode: equal contents give equal
/// archives. errors: Package (name longer than 100 bytes).
Result<std::string> tar_header(const std::string& name, uint64_t bytes);

/// Zero bytes that fill a file of `bytes` to whole blocks.
inline size_t tar_padding(uint64_t bytes) {
  return static_cast<size_t>((kTarBlock - bytes % kTarBlock) % kTarBlock);
}

/// Ends every archive: two blocks of zeros.
inline constexpr size_t kTarEnd = 2 * kTarBlock;

}  // namespace tilewright::runtime
