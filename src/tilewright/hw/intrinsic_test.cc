#include "tilewright/hw/intrinsic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

std::string file(const std::string& name) {
  return fmt::format("{}/hw/intrinsics/{}.tw", TILEWRIGHT_ROOT_DIR, name);
}

TEST(Intrinsic, ReadsWhatUsersDeclare) {
  const auto all = parse_intrinsics(R"(// A unit of our own.
//@ layout.a = my.acc
//@ compute.text = mac({a}, {x}, 3)   
func mac(inout a: f32[2], x: f32[2]) {
  for i in 2 {
    block b(i: space 2 = i) {
      a[i] += x[i]
    }
  }
}

//@ update.unit=other
func `odd name`(out a: f32[2]) {
  for i in 2 {
    block b(i: space 2 = i) {
      a[i] = 1.0
    }
  }
}
)",
                                    "my.tw");
  ASSERT_TRUE(all) << to_string(all.error());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name(), "mac");
  EXPECT_EQ((*all)[0].layout, (Intrinsic::Fields{{"a", "my.acc"}}));
  EXPECT_EQ((*all)[0].compute, (Intrinsic::Fields{{"text", "mac({a}, {x}, 3)"}}));
  EXPECT_TRUE((*all)[0].reset.empty());
  EXPECT_EQ((*all)[1].name(), "odd name");
  EXPECT_EQ((*all)[1].update, (Intrinsic::Fields{{"unit", "other"}}));
}

TEST(Intrinsic, FilesOfTheProjectAreValidAndPrintBack) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TILEWRIGHT_ROOT_DIR) + "/hw/intrinsics")) {
    const auto all = load_intrinsics(entry.path().string());
    ASSERT_TRUE(all) << to_string(all.error());
    for (const Intrinsic& in : *all) {
      const auto again = parse_intrinsics(print(in), "again");
      ASSERT_TRUE(again && again->size() == 1) << print(in);
      EXPECT_TRUE(equal((*again)[0].meaning, in.meaning));
      EXPECT_EQ(print((*again)[0]), print(in));
      EXPECT_EQ(in.layout.size(), in.meaning.params.size());
      EXPECT_FALSE(in.compute.empty());
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(Intrinsic, VtaFileIsTheDefaultConfiguration) {
  const auto all = load_intrinsics(file("vta"));
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(print((*all)[0]), vta_gemm(1, 16, 16));
  for (int log = 0; log < 6; ++log) {
    const auto other = parse_intrinsics(vta_gemm(1 << (log / 2), 1 << log, 32 >> log), "generated");
    ASSERT_TRUE(other) << to_string(other.error());
    EXPECT_EQ((*other)[0].meaning.params[2].buffer.shape().size(), 2u);
    EXPECT_EQ(as_int((*other)[0].meaning.params[2].buffer.shape()[0]), 32 >> log);
    EXPECT_EQ(as_int((*other)[0].meaning.params[2].buffer.shape()[1]), 1 << log);
  }
}

TEST(Intrinsic, ResetSetsTheNeutralElement) {
  const auto vta = load_intrinsics(file("vta"));
  ASSERT_TRUE(vta);
  const auto reset = reset_of((*vta)[0]);
  ASSERT_TRUE(reset) << to_string(reset.error());
  EXPECT_EQ(print(*reset), R"(func vta.gemm.reset(out acc: i32[1,16]) {
  for b in 1, o in 16 {
    block gemm.reset(b: space 1 = b, o: space 16 = o) {
      acc[b, o] = 0i32
    }
  }
}
)");
  const auto value = [](const std::string& type, const std::string& combine) {
    const auto all = parse_intrinsics(
        fmt::format("func f(inout a: {0}[2], x: {0}[2,3]) {{\n for i in 2, j in 3 {{\n block b(i: "
                    "space 2 = i, j: reduce 3 = j) {{\n a[i] {1} x[i, j]\n }}\n }}\n}}\n",
                    type, combine),
        "text");
    EXPECT_TRUE(all) << to_string(all.error());
    const auto r = reset_of((*all)[0]);
    if (!r) return to_string(r.error());
    const std::string text = print(*r);
    const size_t at = text.find("a[i] = ") + 7;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(value("i8", "max="), "-128i8");
  EXPECT_EQ(value("i8", "min="), "127i8");
  EXPECT_EQ(value("u8", "max="), "0u8");
  EXPECT_EQ(value("u64", "min="), "18446744073709551615u64");
  EXPECT_EQ(value("f32", "max="), "-inf");
  EXPECT_EQ(value("f16", "min="), "inf_f16");
  EXPECT_EQ(value("i32", "*="), "1i32");
  const auto sets = parse_intrinsics(
      "func f(out a: f32[2]) {\n for i in 2 {\n block b(i: space 2 = i) {\n a[i] = 1.0\n }\n "
      "}\n}\n",
      "text");
  ASSERT_TRUE(sets);
  const auto none = reset_of((*sets)[0]);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Unsupported);
}

TEST(Intrinsic, BadFieldsSayWhatAndWhere) {
  const std::string func = "func f(out a: f32[1]) {\n  block b() {\n    a[0] = 1.0\n  }\n}\n";
  const std::pair<std::string, std::string> cases[] = {
      {"//@ compute.unit\n" + func, "my.tw:1"},
      {"//@ unit = gemm\n" + func, "says nothing"},
      {"//@ compute. = gemm\n" + func, "says nothing"},
      {"//@ compute.unit =\n" + func, "says nothing"},
      {"// text\n//@ emit.unit = gemm\n" + func, "my.tw:2"},
      {"//@ emit.unit = gemm\n" + func, "no section is named emit"},
      {"//@ layout.b = vta.acc\n" + func, "f has no parameter b"},
      {"//@ compute.x = 1\n//@ compute.x = 1\n" + func, "stands twice"},
      {func + "//@ compute.x = 1\n", "behind the last function"},
  };
  for (const auto& [text, message] : cases) {
    const auto all = parse_intrinsics(text, "my.tw");
    ASSERT_FALSE(all) << text;
    EXPECT_EQ(all.error().kind, ErrorKind::Invalid) << text;
    EXPECT_THAT(to_string(all.error()), HasSubstr(message)) << text;
  }
  const auto broken = parse_intrinsics("//@ compute.x = 1\nfunc f(", "my.tw");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::Parse);
  const auto invalid =
      parse_intrinsics("func f(a: f32[1]) {\n  block b() {\n    a[0] = 1.0\n  }\n}\n", "my.tw");
  ASSERT_FALSE(invalid);
  EXPECT_THAT(to_string(invalid.error()), HasSubstr("is written but"));
  const auto missing = load_intrinsics(file("nothing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Io);
}

}  // namespace
}  // namespace tilewright::hw
