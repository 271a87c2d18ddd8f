// Operators with binary points against rational arithmetic.
#include "tilewright/tensor/fixed_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using ::testing::HasSubstr;
using testing::Ints;
using testing::our_error;
using testing::ours;
using testing::random_array;
using testing::value_at;
using testing::value_or;

/// A rational number, den > 0.
struct Ratio {
  int64_t num = 0, den = 1;
};
Ratio scaled(Ratio r, int64_t exponent) {  // * 2^exponent
  if (exponent >= 0) return {r.num << exponent, r.den};
  return {r.num, r.den << -exponent};
}
int64_t floor_of(Ratio r) {
  const int64_t q = r.num / r.den;
  return r.num % r.den < 0 ? q - 1 : q;
}
/// round(act(r)) in [lo, hi]: the largest integer not above act(r) + 1/2.
int64_t fixed_result(Ratio r, bool leaky, int64_t lo = -128, int64_t hi = 127) {
  if (leaky && r.num < 0) r = {r.num * 26, r.den * 256};
  return std::clamp(floor_of({2 * r.num + r.den, 2 * r.den}), lo, hi);
}

TEST(FixedPoint, RoundingOfAll16BitNumbersIsThatOfRationals) {
  Array all(DType::I32, {65536});
  for (int64_t i = 0; i < all.size(); ++i) all.set_int(i, i - 32768);
  for (const bool leaky : {false, true})
    for (int64_t shift = 0; shift <= 12; ++shift) {
      const Array y = ours("RequantizeFixed", {all}, {{"shift", shift}, {"leaky", int64_t{leaky}}});
      for (int64_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(y.get_int(i), fixed_result(scaled({i - 32768, 1}, -shift), leaky))
            << i - 32768 << " >> " << shift << " leaky " << leaky;
    }
}

TEST(FixedPoint, RequantizeTakesLargeSumsLeftShiftsAndBounds) {
  const Shape shape = {2, 3, 4, 5};
  for (const int64_t shift : {-24, -9, -3, 1, 2, 8, 17, 20, 31}) {
    // Results on both sides of the bounds, unless that takes sums beyond 2^29.
    const int64_t wide = shift < 0 ? 300 >> -shift : 300 << shift;
    const int64_t reach = std::clamp<int64_t>(wide, 8, int64_t{1} << 29);
    const Array acc = random_array(DType::I32, shape, 1, -reach, reach);
    const Array bias = random_array(DType::I32, {1, 3, 1, 1}, 2, -reach / 4, reach / 4);
    for (const int64_t leaky : {0, 1})
      for (const auto& [lo, hi] : {std::pair(-128, 127), std::pair(0, 127), std::pair(0, 48)}) {
        const Array y =
            ours("RequantizeFixed", {acc, bias},
                 {{"shift", shift}, {"leaky", leaky}, {"lo", int64_t{lo}}, {"hi", int64_t{hi}}});
        ASSERT_EQ(y.dtype(), DType::I8);
        testing::for_each_index(shape, [&](const Ints& at) {
          const auto sum =
              static_cast<int64_t>(value_at(acc, at) + value_at(bias, {0, at[1], 0, 0}));
          EXPECT_EQ(value_at(y, at), fixed_result(scaled({sum, 1}, -shift), leaky != 0, lo, hi))
              << sum << " >> " << shift;
        });
      }
  }
}

TEST(FixedPoint, EltwiseFloorsEachOperandAndRoundsTheSum) {
  // All pairs of 8-bit numbers.
  Array a(DType::I8, {65536}), b(DType::I8, {65536});
  for (int64_t i = 0; i < a.size(); ++i) a.set_int(i, i % 256 - 128), b.set_int(i, i / 256 - 128);
  struct Case {
    int64_t read_a, read_b, write;
    bool leaky, two;
  };
  for (const Case& c :
       {Case{0, 0, 0, false, true}, Case{0, 3, -2, false, true}, Case{2, 0, -1, true, true},
        Case{5, 0, 1, false, true}, Case{0, 31, -5, true, true}, Case{0, 0, -3, false, false},
        Case{0, 0, 4, true, false}, Case{0, 0, -32, true, false}, Case{0, 0, 31, false, false},
        Case{1, 0, 0, true, false}}) {
    std::vector<Array> inputs = {a};
    Ints reads = {c.read_a};
    if (c.two) inputs.push_back(b), reads.push_back(c.read_b);
    const Array y =
        ours("EltwiseFixed", inputs,
             {{"shift_read", reads}, {"shift_write", c.write}, {"leaky", int64_t{c.leaky}}});
    for (int64_t i = 0; i < a.size(); ++i) {
      int64_t u = floor_of(scaled({4 * a.get_int(i), 1}, -c.read_a));
      if (c.two) u += floor_of(scaled({4 * b.get_int(i), 1}, -c.read_b));
      ASSERT_EQ(y.get_int(i), fixed_result(scaled({u, 4}, c.write), c.leaky))
          << a.get_int(i) << " " << b.get_int(i) << " write " << c.write;
    }
  }
}

TEST(FixedPoint, MeanFactorsFillTenBits) {
  for (int64_t taps = 1; taps <= 256; ++taps) {
    const MeanFactor mean = mean_factor(taps);
    EXPECT_GE(mean.factor, 512) << taps;
    EXPECT_LE(mean.factor, 1023) << taps;
    // 2^shift / taps lies within 1/2 of the factor.
    EXPECT_LE(2 * std::abs((int64_t{1} << mean.shift) - mean.factor * taps), taps) << taps;
  }
  EXPECT_EQ(mean_factor(9), (MeanFactor{910, 13}));
  EXPECT_EQ(mean_factor(49), (MeanFactor{669, 15}));
}

TEST(FixedPoint, AveragePoolsCountPaddingOrNot) {
  const Array x = random_array(DType::I8, {2, 3, 6, 7}, 5, -128, 127);
  for (const int64_t include : {0, 1})
    for (const int64_t less : {0, 3}) {
      const MeanFactor whole = mean_factor(6);
      const Array y = ours("AveragePoolFixed", {x},
                           {{"kernel_shape", Ints{3, 2}},
                            {"strides", Ints{2, 1}},
                            {"pads", Ints{1, 1, 2, 0}},
                            {"factor", whole.factor},
                            {"shift", whole.shift - less},
                            {"count_include_pad", include}});
      ASSERT_EQ(y.shape(), (Shape{2, 3, 4, 7}));
      testing::for_each_index(y.shape(), [&](const Ints& at) {
        int64_t sum = 0, inside = 0;
        for (int64_t r = 0; r < 3; ++r)
          for (int64_t s = 0; s < 2; ++s) {
            const Ints from = {at[0], at[1], at[2] * 2 + r - 1, at[3] + s - 1};
            sum += static_cast<int64_t>(value_or(x, from, 0));
            inside += from[2] >= 0 && from[2] < 6 && from[3] >= 0 && from[3] < 7 ? 1 : 0;
          }
        const MeanFactor mean = include != 0 ? whole : mean_factor(inside);
        EXPECT_EQ(value_at(y, at),
                  fixed_result(scaled({sum * mean.factor, 1}, less - mean.shift), false));
      });
    }
}

TEST(FixedPoint, MistakesAreNamed) {
  const Array x(DType::I8, {1, 2, 4, 4}), sum(DType::I32, {1, 2, 4, 4});
  const AttrMap pool = {{"kernel_shape", Ints{2, 2}}, {"factor", int64_t{500}}};
  EXPECT_THAT(our_error("RequantizeFixed", {x}), HasSubstr("input 0 is i8, not i32"));
  EXPECT_THAT(our_error("RequantizeFixed", {sum}, {{"shift", int64_t{32}}}), HasSubstr("shift"));
  EXPECT_THAT(our_error("EltwiseFixed", {x, x}, {{"shift_read", Ints{1}}}),
              HasSubstr("1 entries for 2 inputs"));
  EXPECT_THAT(our_error("EltwiseFixed", {x, Array(DType::I8, {1, 2, 4, 1})}), HasSubstr("[1, 2"));
  AttrMap borders = pool;
  borders["count_include_pad"] = int64_t{0};
  EXPECT_THAT(our_error("AveragePoolFixed", {x}, borders), HasSubstr("it must be 512"));
  EXPECT_EQ(our_error("AveragePoolFixed", {x}, pool), "accepted");
}

TEST(FixedPoint, TransposedConvolutionSumsBytes) {
  const Array x = random_array(DType::I8, {2, 4, 3, 5}, 1, -128, 127);
  const Array w = random_array(DType::I8, {4, 3, 3, 2}, 2, -127, 127);
  const AttrMap attrs = {{"strides", Ints{2, 3}},
                         {"pads", Ints{1, 0, 0, 1}},
                         {"output_padding", Ints{1, 0}},
                         {"group", int64_t{2}}};
  const Array y = ours("ConvTransposeInteger", {x, w}, attrs);
  ASSERT_EQ(y.dtype(), DType::I32);
  std::vector<int64_t> want(static_cast<size_t>(y.size()), 0);
  testing::for_each_index(x.shape(), [&](const Ints& at) {
    for (int64_t o = 0; o < 3; ++o)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t s = 0; s < 2; ++s) {
          const int64_t h = at[2] * 2 + r - 1, v = at[3] * 3 + s;
          if (h < 0 || h >= y.shape()[2] || v >= y.shape()[3]) continue;
          const Ints to = {at[0], at[1] / 2 * 3 + o, h, v};
          want[static_cast<size_t>(testing::flat(y.shape(), to))] +=
              static_cast<int64_t>(value_at(x, at) * value_at(w, {at[1], o, r, s}));
        }
  });
  for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.get_int(i), want[static_cast<size_t>(i)]);
  EXPECT_THAT(our_error("ConvTransposeInteger", {Array(DType::F32, {1, 4, 3, 3}), w}),
              HasSubstr("input 0 is f32, not i8"));
}

}  // namespace
}  // namespace tilewright::tensor
