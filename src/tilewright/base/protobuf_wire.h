// Writing the wire format of protobuf by hand, where a message is too large to be built in memory
// or its description is not worth a library: each field is a key and its bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// Seven bits per byte, the lowest first.
inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

/// Key of a length-delimited field and its length; its bytes follow.
inline std::string field_header(int number, uint64_t length) {
  std::string out;
  put_varint(out, static_cast<uint64_t>(number) << 3 | 2);
  put_varint(out, length);
  return out;
}

/// A field that holds text, bytes or a message.
inline void put_bytes(std::string& out, int number, std::string_view bytes) {
  out += field_header(number, bytes.size());
  out += bytes;
}

/// A field that holds a whole number from 0 on, or a value of an enumeration.
inline void put_number(std::string& out, int number, uint64_t value) {
  put_varint(out, static_cast<uint64_t>(number) << 3);
  put_varint(out, value);
}

inline void put_double(std::string& out, int number, double value) {
  put_varint(out, static_cast<uint64_t>(number) << 3 | 1);
  for (uint64_t bits = std::bit_cast<uint64_t>(value), i = 0; i < 8; ++i, bits >>= 8)
    out += static_cast<char>(bits);
}

}  // namespace tilewright
