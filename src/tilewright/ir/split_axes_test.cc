#include "tilewright/ir/split_axes.h"

#include <gtest/gtest.h>

#include <string>

#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright {
namespace {

Func split_source(const std::string& text) {
  auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return func ? *std::move(func) : Func{};
}

std::string with_split_axes(const std::string& text) {
  const Func split = split_axes(split_source(text));
  const Status ok = verify(split, Stage::Tensor);
  EXPECT_TRUE(ok) << to_string(ok.error());
  return print(split);
}

/// Six filters in three groups, on six channels; `index` of the channel, and what ends the kernel.
std::string grouped(const std::string& index, const std::string& end = "s[k, p] + b[k]",
                    const std::string& y = "y[k, p]") {
  return R"(
func f(x: f32[6,5], const W: f32[6,2], b: f32[6], out y: f32[6,5]) {
  alloc s: f32[6,5]
  for k in 6, p in 5 {
    block start(k: space 6 = k, p: space 5 = p) { s[k, p] = 0.0 }
  }
  for k2 in 6, p2 in 5, c2 in 2 {
    block sum(k: space 6 = k2, p: space 5 = p2, c: reduce 2 = c2) {
      s[k, p] += x[)" +
         index + R"(, p] * W[k, c]
    }
  }
  for k3 in 6, p3 in 5 {
    block end(k: space 6 = k3, p: space 5 = p3) { )" +
         y + " = " + end + R"( }
  }
}
)";
}

TEST(SplitAxes, FiltersOfAGroupGetAnAxis) {
  EXPECT_EQ(with_split_axes(grouped("k / 2 * 2 + c")), print(split_source(R"(
func f(x: f32[6,5], const W: f32[3,2,2], b: f32[3,2], out y: f32[3,2,5]) {
  alloc s: f32[3,2,5]
  for k_o in 3, k_i in 2, p in 5 {
    block start(k_o: space 3 = k_o, k_i: space 2 = k_i, p: space 5 = p) { s[k_o, k_i, p] = 0.0 }
  }
  for k2_o in 3, k2_i in 2, p2 in 5, c2 in 2 {
    block sum(k_o: space 3 = k2_o, k_i: space 2 = k2_i, p: space 5 = p2, c: reduce 2 = c2) {
      s[k_o, k_i, p] += x[k_o * 2 + c, p] * W[k_o, k_i, c]
    }
  }
  for k3_o in 3, k3_i in 2, p3 in 5 {
    block end(k_o: space 3 = k3_o, k_i: space 2 = k3_i, p: space 5 = p3) {
      y[k_o, k_i, p] = s[k_o, k_i, p] + b[k_o, k_i]
    }
  }
}
)")));
}

TEST(SplitAxes, WhatReadsTheWholeIndexKeepsIt) {
  const std::string text = with_split_axes(grouped("k / 2 * 2 + c", "s[k, p] + x[5 - k, p]"));
  EXPECT_NE(text.find("y[k_o, k_i, p] = s[k_o, k_i, p] + x[5 - (k_o * 2 + k_i), p]"),
            std::string::npos)
      << text;
}

TEST(SplitAxes, AnAxisWrittenInAnotherOrderStays) {
  const std::string text = with_split_axes(grouped("k / 2 * 2 + c", "s[k, p]", "y[5 - k, p]"));
  EXPECT_NE(text.find("y[5 - (k_o * 2 + k_i), p] = s[k_o, k_i, p]"), std::string::npos) << text;
}

TEST(SplitAxes, OnlyWhatIsAlwaysAWholeAxis) {
  const auto stays = [](const std::string& text) {
    return with_split_axes(text) == print(split_source(text));
  };
  EXPECT_TRUE(stays(grouped("k"))) << "nothing is divided";
  EXPECT_TRUE(stays(grouped("k / 4 * 2 + c"))) << "4 does not divide 6";
  EXPECT_TRUE(stays(grouped("k / 2 * 2 + c", "s[5 - k, p]"))) << "a sum read from behind";
  std::string scanned = grouped("k / 2 * 2 + c");
  const std::string space = "end(k: space";
  scanned.replace(scanned.find(space), space.size(), "end(k: scan");
  EXPECT_TRUE(stays(scanned)) << "one iteration after the other";
}

}  // namespace
}  // namespace tilewright
