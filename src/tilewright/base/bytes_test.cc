#include "tilewright/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Bytes, ReadsBackWhatWasWritten) {
  std::string out;
  put_number(out, 0x0102030405060708);
  put_bytes(out, std::string_view("a\0b", 3));
  put_number(out, 2);
  EXPECT_EQ(out.substr(0, 8), "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(out.size(), 27u);

  ByteReader in(out, ErrorKind::Parse, "test");
  EXPECT_EQ(in.number(), 0x0102030405060708u);
  EXPECT_EQ(in.bytes("text"), std::string("a\0b", 3));
  EXPECT_EQ(in.at(), 19u);
  EXPECT_EQ(in.count(1, "things").error().kind, ErrorKind::Parse);  // nothing follows
  EXPECT_EQ(in.left(), 0u);
}

TEST(Bytes, BelievesNoSize) {
  std::string out;
  put_number(out, ~uint64_t{0});
  out += "xyz";
  ByteReader text(out, ErrorKind::Package, "test");
  const Result<std::string> bytes = text.bytes("a name");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().kind, ErrorKind::Package);
  EXPECT_EQ(bytes.error().what,
            "test ends too early: a name of 18446744073709551615 bytes at byte 8");
  EXPECT_EQ(bytes.error().why, "only 3 bytes are left");
  ByteReader list(out, ErrorKind::Package, "test");
  EXPECT_FALSE(list.count(8, "things"));
  ByteReader short_one("1234567", ErrorKind::Package, "test");
  EXPECT_FALSE(short_one.number());
}

}  // namespace
}  // namespace tilewright
