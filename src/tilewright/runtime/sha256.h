// SHA-256 in pieces, without a cryptography library: the runtime has to stay small.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::runtime {

/// source: FIPS 180-4, section 6.2.
class Sha256 {
 public:
  void update(std::string_view bytes);
  /// Lower-case hexadecimal digest of everything so far. requires: called once.
  std::string finish();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t length_ = 0;  // bytes so far
};

}  // namespace tilewright::runtime
