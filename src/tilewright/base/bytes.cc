#include "tilewright/base/bytes.h"

#include <fmt/format.h>

namespace tilewright {

void put_number(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void put_bytes(std::string& out, std::string_view bytes) {
  put_number(out, bytes.size());
  out += bytes;
}

Result<uint64_t> ByteReader::number() {
  const std::string_view raw = TW_TRY(take(8, "a number"));
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
  return value;
}

Result<std::string> ByteReader::bytes(std::string_view what) {
  const uint64_t size = TW_TRY(number());
  return std::string(TW_TRY(take(size, what)));
}

Result<size_t> ByteReader::count(size_t least, std::string_view what) {
  const uint64_t count = TW_TRY(number());
  if (count > left() / least) return error(fmt::format("{} {}", count, what));
  return static_cast<size_t>(count);
}

Result<std::string_view> ByteReader::take(uint64_t size, std::string_view what) {
  if (size > left()) return error(fmt::format("{} of {} bytes", what, size));
  const std::string_view part = bytes_.substr(at_, static_cast<size_t>(size));
  at_ += part.size();
  return part;
}

tl::unexpected<Error> ByteReader::error(const std::string& what) const {
  return fail(kind_, fmt::format("{} ends too early: {} at byte {}", subject_, what, at_),
              fmt::format("only {} bytes are left", left()), "compile the program again");
}

}  // namespace tilewright
