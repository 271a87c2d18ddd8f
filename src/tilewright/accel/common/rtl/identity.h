// What hardware on a board answers when it is asked which one it is.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright::accel {

/// A number made of a text that describes it, never 0: FNV-1a, 32 bits. source: RFC 9923
inline uint32_t identity_of(std::string_view text) {
  uint32_t hash = 0x811c9dc5;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
  return hash == 0 ? 1 : hash;
}

}  // namespace tilewright::accel
