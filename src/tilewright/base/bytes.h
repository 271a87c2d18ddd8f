// Numbers and strings as bytes: what serialised programs are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright {

/// Appends a number as 8 bytes, the lowest first.
void put_number(std::string& out, uint64_t value);
/// Appends the length, then the bytes.
void put_bytes(std::string& out, std::string_view bytes);

/// Reads what they wrote; sizes are believed only as far as there are bytes.
/// errors: `kind`: "`subject` ends too early", with the byte offset.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, ErrorKind kind, std::string subject)
      : bytes_(bytes), kind_(kind), subject_(std::move(subject)) {}

  Result<uint64_t> number();
  Result<std::string> bytes(std::string_view what);
  /// A number of things of at least `least` bytes each.
  Result<size_t> count(size_t least, std::string_view what);
  Result<std::string_view> take(uint64_t size, std::string_view what);
  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }

 private:
  tl::unexpected<Error> error(const std::string& what) const;

  std::string_view bytes_;
  size_t at_ = 0;
  ErrorKind kind_;
  std::string subject_;
};

}  // namespace tilewright
