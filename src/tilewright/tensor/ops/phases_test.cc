// The sub-pixel form of transposed convolutions, and the moves around two-dimensional windows,
// against plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using namespace testing;
using ::testing::HasSubstr;

Array run_one(const std::string& op, const std::vector<Array>& inputs, const AttrMap& attrs) {
  return run_op(op, inputs, attrs, 1, "tilewright")[0];
}

TEST(PhaseConv, SumsEveryStridethTap) {
  // Blocks of two channels; 3 x 4 positions of 2 x 2 phases, two taps per phase and axis.
  const Array x = random_array(DType::F32, {1, 2, 3, 4, 2}, 1);
  const Array w = random_array(DType::F32, {8, 2, 2, 2, 2, 2}, 2);
  const Array bias = random_array(DType::F32, {4}, 3);
  for (const int64_t begin : {0, 1, 2, 3}) {
    const Array got =
        run_one("PhaseConvBlocked", {x, w, bias},
                {{"strides", Ints{2, 2}}, {"begin", Ints{begin, begin}}, {"output", Ints{3, 4}}});
    const Array want = filled(DType::F32, {1, 2, 3, 2, 4, 2, 2}, [&](const Ints& at) {
      double sum = bias.get(at[1] * 2 + at[6]);
      for_each_index({2, 2, 2, 2}, [&](const Ints& r) {
        const int64_t h = at[2] + (at[3] + begin) / 2 - 1 + r[1];
        const int64_t v = at[4] + (at[5] + begin) / 2 - 1 + r[2];
        const int64_t filter = (at[3] * 2 + at[5]) * 2 + at[1];
        sum += value_or(x, {0, r[0], h, v, r[3]}, 0) *
               value_at(w, {filter, r[0], r[1], r[2], r[3], at[6]});
      });
      return sum;
    });
    expect_close(got, want, 0, std::to_string(begin));
  }
}

TEST(PhaseConv, WhatFillsABlockUpCountsInNoSum) {
  Array x = random_array(DType::F32, {1, 2, 3, 4, 2}, 1);
  const Array w = random_array(DType::F32, {8, 2, 2, 2, 2, 2}, 2);
  const auto sum = [&](double filling) {
    for (int64_t i = x.size() / 2 + 1; i < x.size(); i += 2) x.set(i, filling);
    return run_one("PhaseConvBlocked", {x, w},
                   {{"strides", Ints{2, 2}},
                    {"begin", Ints{0, 0}},
                    {"output", Ints{3, 4}},
                    {"channels", int64_t{3}}});
  };
  const Array zeros = sum(0);
  expect_close(sum(std::numeric_limits<double>::infinity()), zeros);
}

TEST(PhaseConv, RefusesWhatDoesNotFit) {
  const Array x(DType::F32, {1, 2, 3, 4, 2}), w(DType::F32, {8, 2, 2, 2, 2, 2});
  const auto error = [&](const Array& a, const Array& b, const AttrMap& attrs) {
    return error_of(call_of("PhaseConvBlocked", {a, b}, attrs, "tilewright"));
  };
  const AttrMap good = {{"strides", Ints{2, 2}}, {"begin", Ints{0, 0}}, {"output", Ints{3, 4}}};
  EXPECT_EQ(error(x, w, good), "accepted");
  AttrMap bad = good;
  bad["strides"] = Ints{2};
  EXPECT_THAT(error(x, w, bad), HasSubstr("strides is [2]"));
  bad = good, bad["output"] = Ints{0, 4};
  EXPECT_THAT(error(x, w, bad), HasSubstr("output is [0, 4]"));
  bad = good, bad["strides"] = Ints{3, 2};
  EXPECT_THAT(error(x, w, bad), HasSubstr("do not fit"));
  EXPECT_THAT(error(x, Array(DType::F32, {8, 3, 2, 2, 2, 2}), good), HasSubstr("do not fit"));
  EXPECT_THAT(error(Array(DType::F32, {1, 2, 3}), w, good), HasSubstr("not blocked"));
}

TEST(PhasesToSpace, TakesPhasesApart) {
  const Array x = random_array(DType::F32, {2, 12, 3, 4}, 4);
  const Array got =
      run_one("PhasesToSpace", {x},
              {{"strides", Ints{2, 3}}, {"begin", Ints{1, 2}}, {"output", Ints{4, 9}}});
  expect_close(got, filled(DType::F32, {2, 2, 4, 9}, [&](const Ints& at) {
                 const int64_t h = at[2] + 1, w = at[3] + 2;
                 return value_at(x, {at[0], (h % 2 * 3 + w % 3) * 2 + at[1], h / 2, w / 3});
               }));
  EXPECT_THAT(
      error_of(call_of("PhasesToSpace", {x},
                       {{"strides", Ints{2, 3}}, {"begin", Ints{1, 2}}, {"output", Ints{6, 9}}},
                       "tilewright")),
      HasSubstr("does not hold the phases"));
}

TEST(WindowMoves, PhasesBecomeABatchAndBack) {
  const Array x = random_array(DType::F32, {2, 3, 5, 7, 2}, 5);
  const Array phases =
      run_one("SpaceToBatch", {x},
              {{"strides", Ints{2, 3}}, {"begin", Ints{1, 2}}, {"output", Ints{4, 4}}});
  expect_close(phases, filled(DType::F32, {12, 3, 4, 4, 2}, [&](const Ints& at) {
                 const int64_t p = at[0] % 6;
                 return value_or(
                     x, {at[0] / 6, at[1], at[2] * 2 + p / 3 - 1, at[3] * 3 + p % 3 - 2, at[4]}, 0);
               }));
  const Array back =
      run_one("BatchToSpace", {phases}, {{"strides", Ints{2, 3}}, {"output", Ints{7, 11}}});
  expect_close(back, filled(DType::F32, {2, 3, 7, 11, 2}, [&](const Ints& at) {
                 return value_or(x, {at[0], at[1], at[2] - 1, at[3] - 2, at[4]}, 0);
               }));
  EXPECT_THAT(error_of(call_of("BatchToSpace", {x},
                               {{"strides", Ints{2, 3}}, {"output", Ints{7, 11}}}, "tilewright")),
              HasSubstr("does not hold the phases"));
}

TEST(WindowMoves, DepthBecomesChannelsAndBack) {
  const Array x = random_array(DType::F32, {2, 3, 6, 2, 2}, 6);
  const int64_t two = 2, one = 1;
  const Array channels = run_one(
      "DepthToChannels", {x},
      {{"taps", two}, {"stride", two}, {"dilation", two}, {"begin", one}, {"output", int64_t{3}}});
  expect_close(channels, filled(DType::F32, {6, 6, 2, 2}, [&](const Ints& at) {
                 const int64_t d = at[0] % 3 * 2 + at[1] / 3 * 2 - 1;
                 return value_or(x, {at[0] / 3, at[1] % 3, d, at[2], at[3]}, 0);
               }));
  const Array back = run_one("BatchToDepth", {channels}, {{"depth", int64_t{3}}});
  expect_close(back, filled(DType::F32, {2, 6, 3, 2, 2}, [&](const Ints& at) {
                 return value_at(channels, {at[0] * 3 + at[2], at[1], at[3], at[4]});
               }));
  EXPECT_THAT(error_of(call_of("BatchToDepth", {channels}, {{"depth", int64_t{4}}}, "tilewright")),
              HasSubstr("no depth 4"));
  EXPECT_THAT(error_of(call_of("DepthToChannels", {x}, {{"taps", int64_t{0}}}, "tilewright")),
              HasSubstr("taps is 0"));
}

}  // namespace
}  // namespace tilewright::tensor
