#include "tilewright/hw/intrinsic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

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
    const auto text = read_file(entry.path().string());
    ASSERT_TRUE(text) << to_string(text.error());
    const auto all = parse_intrinsics(*text, entry.path().string());
    ASSERT_TRUE(all) << to_string(all.error());
    for (const Intrinsic& in : *all) {
      const auto again = parse_intrinsics(print(in), "again");
      ASSERT_TRUE(again && again->size() == 1) << print(in);
      EXPECT_TRUE(equal((*again)[0].meaning, in.meaning));
      EXPECT_EQ(print((*again)[0]), print(in));
      // The DPU's are only meanings: its code is not made from schedules.
      if (entry.path().stem() == "dpu") continue;
      EXPECT_EQ(in.layout.size(), in.meaning.params.size());
      EXPECT_FALSE(in.compute.empty());
    }
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST(Intrinsic, VtaMatrixUnitOfAnySize) {
  for (int log = 0; log < 6; ++log) {
    const auto unit = vta_gemm(1 << (log / 2), 1 << log, 32 >> log, {8, 8, log % 2 == 0 ? 32 : 16});
    ASSERT_TRUE(unit) << to_string(unit.error());
    EXPECT_EQ(unit->name(), "vta.gemm");
    EXPECT_EQ(unit->layout,
              (Intrinsic::Fields{{"C", "vta.acc"}, {"X", "vta.inp"}, {"W", "vta.wgt"}}));
    EXPECT_EQ(unit->computed("unit"), "gemm");
    const auto& params = unit->meaning.params;
    EXPECT_EQ(bit_width(params[0].buffer.dtype()), log % 2 == 0 ? 32 : 16);
    EXPECT_EQ(as_int(params[2].buffer.shape()[0]), 32 >> log);
    EXPECT_EQ(as_int(params[2].buffer.shape()[1]), 1 << log);
    const auto again = parse_intrinsics(print(*unit), "again");
    ASSERT_TRUE(again);
    EXPECT_TRUE(equal(again->front().meaning, unit->meaning));
  }
  EXPECT_FALSE(vta_gemm(1, 16, 16, {8, 8, 31}));
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
}

}  // namespace
}  // namespace tilewright::hw
