// Files: read whole, write without ever leaving half a file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright {

/// errors: Io with the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// Writes all of a file, or nothing, as OutputFile does. errors: Io.
Status write_file(const std::string& path, std::string_view contents);

/// A file mapped read-only; copies share the mapping.
struct MappedFile {
  std::shared_ptr<void> owner;
  std::span<const char> bytes;
};
/// errors: Io. An empty file maps to empty bytes.
Result<MappedFile> map_file(const std::string& path);

/// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view bytes);

}  // namespace tilewright
