// Reading computations out of Funcs: what is a sum of products, what is folded, what is left over.
#include "tilewright/cost/sums/computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/cost/sums/testing/sums.h"
#include "tilewright/ir/text.h"

namespace tilewright::cost {
namespace {

using sums_testing::expect_same_results;
using sums_testing::kMttkrp;
using sums_testing::operation;
using sums_testing::parsed;
using sums_testing::texts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Computations, MttkrpHasTwo) {
  const Computations found = computations_of(operation("mttkrp", kMttkrp));
  EXPECT_THAT(texts(found), ElementsAre("mttkrp_half[i, k, j] += x0[i, k, l] * x1[l, j]",
                                        "y0[i, j] += mttkrp_half[i, k, j] * x2[k, j]"));
  EXPECT_THAT(found.sums[1].sources, ElementsAre(0, -1));
  EXPECT_TRUE(found.others.empty());
  EXPECT_EQ(found.sums[0].macs(), 3 * 4 * 5 * 2);
}

std::map<std::string, int64_t> convolution(int64_t batch, int64_t channels, int64_t outputs,
                                           int64_t groups) {
  return {{"batch", batch},
          {"in_channels", channels},
          {"out_channels", outputs},
          {"groups", groups},
          {"height", 7},
          {"width", 6},
          {"kernel_h", 3},
          {"kernel_w", 3},
          {"stride_h", 2},
          {"stride_w", 1},
          {"pad_h", 1},
          {"pad_w", 1}};
}

TEST(Computations, PaddingIsPartOfTheIndex) {
  const Func func = operation("conv2d", convolution(1, 4, 6, 1));
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[k, h, w] += x0[c, 2*h + r - 1, w + s - 1] * "
                                        "x1[k, c, r, s]"));
  ASSERT_EQ(found.others.size(), 1u);
  EXPECT_TRUE(found.others[0].free);
  EXPECT_THAT(found.others[0].reason, HasSubstr("zeros around"));
  const Result<SpatialLayer> layer = layer_of(found.sums[0]);
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->tensors[0].dims[1].begin, 1);
  EXPECT_EQ(layer->tensors[0].dims[1].extent, 7);
  expect_same_results(func, func_of("again", found.sums), "conv2d");
}

TEST(Computations, GroupsAreALoopOfTheirOwn) {
  const Func func = operation("group_conv2d", convolution(2, 4, 6, 2));
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[n, g, k, h, w] += x0[n, g, c, 2*h + r - 1, w + s - 1] "
                                        "* x1[g, k, c, r, s]"));
  expect_same_results(func, func_of("again", found.sums), "group_conv2d");
  // 5 dimensions and 8 loops fill what there is.
  EXPECT_TRUE(layer_of(found.sums[0]));
  const Func depthwise = operation("depthwise_conv2d", convolution(1, 4, 8, 4));
  const Computations channels = computations_of(depthwise);
  ASSERT_THAT(texts(channels),
              ElementsAre("y0[g, k, h, w] += x0[g, 2*h + r - 1, w + s - 1] * x1[g, k, r, s]"));
  expect_same_results(depthwise, func_of("again", channels.sums), "depthwise_conv2d");
}

// A window of 1 x 1 is one: its taps are in the index although they never move.
TEST(Computations, WindowsOfOneElementKeepTheirTaps) {
  auto params = convolution(2, 4, 6, 1);
  params["kernel_h"] = params["kernel_w"] = 1;
  params["pad_h"] = params["pad_w"] = 0;
  const Func func = operation("conv2d", params);
  const Computations found = computations_of(func);
  ASSERT_THAT(texts(found), ElementsAre("y0[n, k, h, w] += x0[n, c, 2*h + r, w + s] * x1[k, c, r, "
                                        "s]"));
  expect_same_results(func, func_of("again", found.sums), "1 x 1");
}

TEST(Computations, TooManyLoopsAreRefusedWithTheReason) {
  const Func func = operation("conv3d", {{"batch", 2},
                                         {"in_channels", 2},
                                         {"out_channels", 2},
                                         {"depth", 4},
                                         {"height", 4},
                                         {"width", 4},
                                         {"kernel_d", 2},
                                         {"kernel_h", 2},
                                         {"kernel_w", 2}});
  const Computations found = computations_of(func);
  ASSERT_EQ(found.sums.size(), 1u);
  EXPECT_EQ(layer_of(found.sums[0]).error().why, "it has 9 loops, there is room for 8");
}

TEST(Computations, GuardsThatArePaddingAndOthers) {
  const auto sum = [](const std::string& guard) {
    return "tensor w(A: i32[9], B: i32[3, 4]) {\n C[x in 9, k in 4] = sum(r in 3) "
           "select(" +
           guard + ", A[x + r - 1], 0) * B[r, k]\n return C\n}\n";
  };
  const Func padded = parsed(sum("x + r >= 1 && x + r - 1 < 9"));
  const Computations found = computations_of(padded);
  EXPECT_THAT(texts(found), ElementsAre("C[x, k] += A[x + r - 1] * B[r, k]"));
  expect_same_results(padded, func_of("again", found.sums), "guard");
  const Computations other = computations_of(parsed(sum("x + r >= 2 && x + r - 1 < 9")));
  EXPECT_TRUE(other.sums.empty());
  ASSERT_EQ(other.others.size(), 1u);
  EXPECT_THAT(other.others[0].reason, HasSubstr("what is not padding"));
  EXPECT_EQ(other.others[0].macs, 9 * 4 * 3);
}

TEST(Computations, TransposesAndTypesAreFoldedAndResultsFinished) {
  const Func func = parsed(
      "tensor w(A: i8[5, 4], B: i8[5, 6], bias: i32[6]) {\n"
      " T[i in 4, k in 5] = i32(A[k, i])\n"
      " C[i in 4, j in 6] = sum(k in 5) T[i, k] * i32(B[k, j])\n"
      " D[i in 4, j in 6] = max(C[i, j] + bias[j], 0)\n"
      " E[i in 4, j in 6] = D[i, j] + C[i, j]\n"
      " return E\n}\n");
  const Computations found = computations_of(func);
  EXPECT_THAT(texts(found), ElementsAre("C[i, j] += A[k, i] * B[k, j]"));
  ASSERT_EQ(found.others.size(), 3u);
  EXPECT_TRUE(found.others[0].free);
  EXPECT_TRUE(found.others[1].free);
  EXPECT_FALSE(found.others[2].free);  // two sums
  EXPECT_EQ(found.others[2].bytes, 3 * 24);
}

TEST(Computations, WhatIsNoSumOfProductsSaysWhy) {
  const auto reason = [](const std::string& body) {
    const Computations found = computations_of(
        parsed("tensor w(A: i32[8], B: i32[8], S: i32[8]) {\n" + body + "\n return C\n}\n"));
    EXPECT_TRUE(found.sums.empty()) << body;
    return found.others.empty() ? "" : found.others.back().reason;
  };
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) A[k]"), HasSubstr("single elements"));
  EXPECT_THAT(reason("C[i in 8] = A[i] * B[i]"), HasSubstr("nothing is summed"));
  EXPECT_THAT(reason("C[i in 2] = max(k in 8) A[k] * B[k]"), HasSubstr("max="));
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) abs(A[k]) * B[k]"), HasSubstr("no product"));
  EXPECT_THAT(reason("C[i in 2] = sum(k in 8) A[k * k / 9] * B[k]"), HasSubstr("strided loops"));
  const Computations backwards = computations_of(
      parsed("tensor w(A: i32[8], B: i32[8]) {\n C[i in 2] = sum(k in 8) A[7 - k] * B[k]\n return "
             "C\n}\n"));
  ASSERT_EQ(backwards.sums.size(), 1u);
  EXPECT_THAT(layer_of(backwards.sums[0]).error().why, HasSubstr("backwards"));
}

TEST(Computations, LoopsAsTheyAreWritten) {
  const Func func = *parse_func(
      "func gemm(A: i32[6,5], B: i32[5,4], out C: i32[6,4]) {\n for i in 6, j in 4 {\n block "
      "begin(i: space 6 = i, j: space 4 = j) { C[i, j] = 0i32 }\n for k in 5 {\n block mm(i: space "
      "6 = i, j: space 4 = j, k: reduce 5 = k) { C[i, j] += A[i, k] * B[k, j] }\n }\n }\n}\n");
  const Computations found = computations_of(func);
  EXPECT_THAT(texts(found), ElementsAre("C[i, j] += A[i, k] * B[k, j]"));
  EXPECT_TRUE(found.others.empty());
}

}  // namespace
}  // namespace tilewright::cost
