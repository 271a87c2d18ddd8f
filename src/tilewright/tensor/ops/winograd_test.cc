#include "tilewright/tensor/winograd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using ::testing::HasSubstr;
using testing::Ints;
using testing::ours;
using testing::random_array;
using testing::run_op;

/// A^T [(G g) . (B^T d)] is the correlation of d and g, for the unit vectors.
TEST(Winograd, TablesAreExact) {
  int known = 0;
  for (int64_t m = 1; m <= 9; ++m)
    for (int64_t taps = 1; taps <= 9; ++taps) {
      const WinogradTables* found = winograd_tables(m, taps);
      if (found == nullptr) continue;
      ++known;
      const WinogradTables& t = *found;
      const int64_t n = t.points();
      EXPECT_EQ(n, m + taps - 1);
      ASSERT_EQ(t.input.size(), static_cast<size_t>(n * n));
      ASSERT_EQ(t.filter.size(), static_cast<size_t>(n * taps));
      ASSERT_EQ(t.output.size(), static_cast<size_t>(m * n));
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t d = 0; d < n; ++d)
          for (int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (int64_t x = 0; x < n; ++x)
              sum += t.output[i * n + x] * t.filter[x * taps + tap] * t.input[x * n + d];
            EXPECT_NEAR(sum, d == i + tap ? 1 : 0, 1e-11)
                << m << " " << taps << " " << tap << " " << d << " " << i;
          }
    }
  EXPECT_EQ(known, 1 + 2 + 3 + 4 + 6 + 8);
  EXPECT_EQ(winograd_tables(5, 3), nullptr);
  EXPECT_EQ(winograd_tables(1, 3), nullptr);
}

struct Case {
  int64_t m;
  Shape x, w;
  int64_t block_in, block_out;
  Ints pads;
};

TEST(Winograd, EqualsConv) {
  const std::vector<Case> cases = {
      {2, {1, 4, 5, 6}, {4, 4, 3, 3}, 2, 4, {1, 1, 1, 1}},
      {4, {2, 3, 7, 9}, {6, 3, 3, 3}, 2, 4, {1, 1, 1, 1}},
      {4, {1, 4, 6, 6}, {4, 4, 3, 3}, 4, 4, {0, 0, 0, 0}},
      {4, {1, 2, 4, 5}, {4, 2, 3, 3}, 2, 4, {0, 2, 1, 0}},
      {6, {1, 4, 8, 7}, {4, 4, 3, 3}, 4, 4, {1, 1, 1, 1}},
      {4, {1, 4, 5, 9}, {6, 4, 1, 7}, 4, 4, {0, 3, 0, 3}},
      {4, {2, 4, 9, 5}, {4, 4, 7, 1}, 4, 4, {3, 0, 3, 0}},
      {3, {1, 4, 7, 6}, {4, 4, 3, 3}, 4, 4, {1, 1, 1, 1}},
      {6, {1, 3, 8, 8}, {4, 3, 1, 3}, 2, 4, {0, 1, 0, 1}},
      {4, {1, 4, 7, 6}, {4, 4, 5, 5}, 4, 4, {2, 2, 2, 2}},
      {2, {1, 4, 7, 8}, {4, 4, 3, 5}, 4, 4, {1, 2, 1, 2}},
      {3, {1, 4, 7, 8}, {4, 4, 2, 2}, 4, 4, {0, 1, 1, 0}},
      {2, {1, 4, 1, 69}, {4, 4, 1, 9}, 4, 4, {0, 4, 0, 4}},
  };
  uint64_t seed = 0;
  for (const Case& c : cases) {
    const Array x = random_array(DType::F32, c.x, ++seed),
                w = random_array(DType::F32, c.w, ++seed);
    const AttrMap shape = {{"block_in", c.block_in}, {"block_out", c.block_out}, {"m", c.m}};
    const Array u = ours("PackWinogradWeight", {w}, shape);
    const Array bias = random_array(DType::F32, {c.w[0]}, ++seed);
    Array padded(DType::F32, {u.shape()[0] * c.block_out});
    for (int64_t i = 0; i < bias.size(); ++i) padded.set(i, bias.get(i));
    const Array blocked = ours("ToBlocked", {x}, {{"block", c.block_in}});
    const AttrMap attrs = {{"pads", c.pads}, {"m", c.m}};
    const Array y = ours("WinogradConvBlocked", {blocked, u, padded}, attrs);
    expect_close(ours("FromBlocked", {y}, {{"channels", c.w[0]}}),
                 run_op("Conv", {x, w, bias}, {{"pads", c.pads}})[0], 2e-4, to_string(c.x));
  }
}

TEST(Winograd, OnPlainChannels) {
  struct Plain {
    int64_t m;
    Shape x, w;
    Ints pads;
  };
  const std::vector<Plain> cases = {{2, {1, 4, 5, 6}, {5, 4, 3, 3}, {1, 1, 1, 1}},
                                    {4, {3, 3, 7, 9}, {6, 3, 3, 3}, {0, 2, 1, 0}},
                                    {4, {1, 2, 8, 8}, {3, 2, 5, 5}, {2, 2, 2, 2}}};
  uint64_t seed = 0;
  for (const Plain& c : cases) {
    const Array x = random_array(DType::F32, c.x, ++seed),
                w = random_array(DType::F32, c.w, ++seed);
    const Array bias = random_array(DType::F32, {c.w[0]}, ++seed);
    const Array u = ours("PackWinogradWeight", {w},
                         {{"block_in", int64_t{1}}, {"block_out", c.w[0]}, {"m", c.m}});
    const Array y = ours("WinogradConv", {x, u, bias}, {{"pads", c.pads}, {"m", c.m}});
    expect_close(y, run_op("Conv", {x, w, bias}, {{"pads", c.pads}})[0], 2e-4, to_string(c.x));
  }
}

TEST(Winograd, RefusesOtherFormsOnPlainChannels) {
  const Array x(DType::F32, {1, 4, 6, 6}), u(DType::F32, {1, 6, 6, 4, 5});
  const auto error = [&](const Array& weight, const AttrMap& attrs) {
    return error_of(call_of("WinogradConv", {x, weight}, attrs, "tilewright"));
  };
  EXPECT_THAT(error(u, {{"m", int64_t{6}}}), HasSubstr("m is 6"));
  EXPECT_THAT(error(Array(DType::F32, {1, 1, 6, 4, 5}), {}), HasSubstr("m is 4"));
  EXPECT_THAT(error(Array(DType::F32, {2, 6, 6, 4, 5}), {}), HasSubstr("do not fit m = 4"));
  EXPECT_THAT(error(Array(DType::F32, {1, 6, 6, 3, 5}), {}), HasSubstr("do not fit m = 4"));
  EXPECT_THAT(error(u, {{"dilations", Ints{2, 2}}}), HasSubstr("stride 1"));
}

TEST(Winograd, LongRowsHaveTilesToSpare) {
  EXPECT_EQ(winograd_columns(1, 69, 2), 40);
  EXPECT_EQ(winograd_columns(1, 80, 2), 40);
  EXPECT_EQ(winograd_columns(1, 60, 2), 30);
  EXPECT_EQ(winograd_columns(2, 69, 2), 35);
}

TEST(Winograd, RefusesOtherForms) {
  const Array x(DType::F32, {1, 1, 6, 6, 4}), u(DType::F32, {1, 6, 6, 4, 4});
  const auto error = [&](const Array& weight, const AttrMap& attrs) {
    return error_of(call_of("WinogradConvBlocked", {x, weight}, attrs, "tilewright"));
  };
  EXPECT_THAT(error(u, {{"m", int64_t{6}}}), HasSubstr("m is 6"));
  EXPECT_THAT(error(u, {{"m", int64_t{7}}}), HasSubstr("m is 7"));
  EXPECT_THAT(error(Array(DType::F32, {1, 1, 1, 4, 4}), {}), HasSubstr("m is 4"));
  EXPECT_THAT(error(Array(DType::F32, {1, 7, 7, 4, 4}), {{"m", int64_t{5}}}),
              HasSubstr("transformed weight [1, 7, 7, 4, 4]"));
  EXPECT_THAT(error(Array(DType::F32, {1, 6, 6, 8, 4}), {}), HasSubstr("do not fit m = 4"));
  EXPECT_THAT(error(u, {{"strides", Ints{2, 2}}}), HasSubstr("stride 1"));
}

}  // namespace
}  // namespace tilewright::tensor
