// Tile operators against plain loops over the untiled tensors.
#include "tilewright/tensor/tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using namespace std::string_literals;
using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using ::testing::HasSubstr;
using testing::Ints;
using testing::kOurs;
using testing::our_error;
using testing::ours;
using testing::random_array;
using testing::value_at;
using testing::value_or;

Array to_tiles(const Array& x, int64_t batch, int64_t block) {
  return ours("ToTiles", {x}, {{"batch", batch}, {"block", block}});
}
Array from_tiles(const Array& x, int64_t n, int64_t channels) {
  return ours("FromTiles", {x}, {{"n", n}, {"channels", channels}});
}

/// clip((acc * m + bias + residual * rm * 2^rs) >> shift, lo, hi) with 32-bit wrap-around.
int64_t requantized(int64_t acc, int64_t m, int64_t bias, int64_t residual, int64_t shift,
                    int64_t lo, int64_t hi) {
  const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(acc * m + bias + residual));
  return std::min(std::max<int64_t>(wrapped >> shift, lo), hi);
}

TEST(Tiles, RequantizeIsShiftAndClip) {
  const Shape shape = {2, 3, 2, 4};
  const Array acc = random_array(DType::I32, shape, 1, -5000, 5000);
  const Array bias = random_array(DType::I32, {1, 3, 1, 1}, 2, -300, 300);
  const Array residual = random_array(DType::I8, shape, 3, -128, 127);
  const Array factor = random_array(DType::I32, {1, 3, 1, 1}, 4, 1, 9);
  struct Case {
    bool bias, residual, factor;
    int64_t shift, residual_shift, residual_multiplier, lo, hi;
  };
  for (const Case& c : {Case{true, true, false, 6, 3, 1, 0, 127},
                        {false, false, false, 0, 0, 1, -128, 127},
                        {true, false, false, 5, 0, 1, -100, 90},
                        {false, true, false, 4, 0, 1, -128, 127},
                        {true, true, true, 8, 2, 5, -128, 127}}) {
    const Array y = ours("Requantize",
                         {acc, c.bias ? bias : Array(), c.residual ? residual : Array(),
                          c.factor ? factor : Array()},
                         {{"shift", c.shift},
                          {"residual_shift", c.residual_shift},
                          {"residual_multiplier", c.residual_multiplier},
                          {"lo", c.lo},
                          {"hi", c.hi}});
    ASSERT_EQ(y.dtype(), DType::I8);
    testing::for_each_index(shape, [&](const Ints& at) {
      const auto of = [&](const Array& a) {
        return static_cast<int64_t>(value_at(a, {0, at[1], 0, 0}));
      };
      const auto r = static_cast<int64_t>(value_at(residual, at)) * c.residual_multiplier
                     << c.residual_shift;
      EXPECT_EQ(value_at(y, at),
                requantized(static_cast<int64_t>(value_at(acc, at)), c.factor ? of(factor) : 1,
                            c.bias ? of(bias) : 0, c.residual ? r : 0, c.shift, c.lo, c.hi));
    });
  }
}

TEST(Tiles, RequantizeWrapsAt32Bits) {
  const Array acc = testing::array_of(DType::I32, {1, 4}, {2147483647, -2147483648.0, 64, -65});
  const Array bias = testing::array_of(DType::I32, {1, 4}, {1, -1, 0, 0});
  expect_close(ours("Requantize", {acc, bias}, {{"shift", int64_t{26}}}),
               testing::array_of(DType::I8, {1, 4}, {-32, 31, 0, -1}));
}

TEST(Tiles, RequantizeNarrowsSumsBeforeItMultiplies) {
  const Array acc = testing::array_of(DType::I32, {1, 4}, {1000000, -1000000, 4095, -4096});
  const Array factor = testing::array_of(DType::I32, {1, 4}, {30000, 30000, 30000, 30000});
  // 4095 >> 5 = 127, 127 * 30000 >> 15 = 116; -4096 >> 5 = -128, -128 * 30000 >> 15 = -118.
  expect_close(ours("Requantize", {acc, Array(), Array(), factor},
                    {{"pre_shift", int64_t{5}}, {"limit", int64_t{20000}}, {"shift", int64_t{15}}}),
               testing::array_of(DType::I8, {1, 4}, {127, -128, 116, -118}));
  EXPECT_THAT(our_error("Requantize", {acc}, {{"limit", int64_t{5}}}),
              HasSubstr("for sums with a multiplier"));
}

TEST(Tiles, RequantizeRoundsTiesToEven) {
  const Array acc = testing::array_of(DType::I32, {1, 8}, {2, 6, 10, -2, -6, 7, 600, -600});
  const Array even = ours("Requantize", {acc}, {{"shift", int64_t{2}}, {"half_even", int64_t{1}}});
  expect_close(even, testing::array_of(DType::I8, {1, 8}, {0, 2, 2, 0, -2, 2, 127, -128}));
  const Array none = ours("Requantize", {acc}, {{"half_even", int64_t{1}}, {"lo", int64_t{0}}});
  expect_close(none, testing::array_of(DType::I8, {1, 8}, {2, 6, 10, 0, 0, 7, 127, 0}));
  // 2^24 + 2^17 + 1 is not there in f32, where it is a tie.
  const Array wide = testing::array_of(DType::I32, {1, 1}, {16777216 + 131072 + 1});
  expect_close(ours("Requantize", {wide}, {{"shift", int64_t{18}}, {"half_even", int64_t{1}}}),
               testing::array_of(DType::I8, {1, 1}, {64}));
  EXPECT_THAT(
      our_error("Requantize", {acc}, {{"half_even", int64_t{1}}, {"pre_shift", int64_t{1}}}),
      HasSubstr("one shift"));
}

TEST(Tiles, RequantizeInTwoShiftsIsTheSame) {
  const Shape shape = {1, 3, 4, 4};
  const Array acc = random_array(DType::I32, shape, 1, -50000, 50000);
  const Array bias = random_array(DType::I32, {1, 3, 1, 1}, 2, -3000, 3000);
  const Array residual = random_array(DType::I8, shape, 3, -128, 127);
  const auto run = [&](int64_t early) {
    return ours("Requantize", {acc, bias, residual},
                {{"pre_shift", early}, {"shift", 10 - early}, {"residual_shift", 9 - early}});
  };
  for (const int64_t early : {3, 9}) expect_close(run(early), run(0));
}

TEST(Tiles, PixelsMayComeBeforeChannelBlocks) {
  const Array x = random_array(DType::I8, {5, 21, 3, 2}, 1, -100, 100);
  const Array y =
      ours("ToTiles", {x}, {{"batch", int64_t{4}}, {"block", int64_t{16}}, {"order", "NHWC"s}});
  const Array want = testing::filled(DType::I8, {2, 3, 2, 2, 4, 16}, [&](const Ints& at) {
    return value_or(x, {at[0] * 4 + at[4], at[3] * 16 + at[5], at[1], at[2]}, 0);
  });
  expect_close(y, want);
  expect_close(
      ours("FromTiles", {y}, {{"n", int64_t{5}}, {"channels", int64_t{21}}, {"order", "NHWC"s}}),
      x);
  EXPECT_THAT(our_error("FromTiles", {y}, {{"n", int64_t{5}}, {"channels", int64_t{21}}}),
              HasSubstr("do not make tiles"));
  EXPECT_THAT(
      our_error("ToTiles", {x}, {{"batch", int64_t{4}}, {"block", int64_t{16}}, {"order", "HWC"s}}),
      HasSubstr("order is 'HWC'"));
}

TEST(Tiles, Im2ColTakesWindowsApart) {
  const Array x = random_array(DType::I8, {2, 3, 6, 5}, 1, -100, 100);
  const Array y = ours("Im2Col", {x},
                       {{"kernel_shape", Ints{3, 2}},
                        {"strides", Ints{2, 1}},
                        {"pads", Ints{1, 0, 1, 1}},
                        {"dilations", Ints{1, 2}}});
  const Array want = testing::filled(DType::I8, {2, 18, 3, 4}, [&](const Ints& at) {
    const int64_t c = at[1] / 6, r = at[1] / 2 % 3, s = at[1] % 2;
    return value_or(x, {at[0], c, at[2] * 2 + r - 1, at[3] + s * 2}, 0);
  });
  expect_close(y, want);
  EXPECT_THAT(our_error("Im2Col", {Array(DType::I8, {1, 2, 3, 3})}), HasSubstr("kernel"));
}

TEST(Tiles, RequantizeIsOneBlockAndRejectsWhatDoesNotFit) {
  const Array acc(DType::I32, {1, 2, 1, 1, 1, 4}), bias(DType::I32, {1, 2, 1, 1, 1, 4});
  const Array residual(DType::I8, acc.shape());
  EXPECT_THAT(
      print(*op_func(call_of("Requantize", {acc, bias, residual},
                             {{"shift", int64_t{7}}, {"residual_shift", int64_t{2}}}, kOurs))),
      HasSubstr("= i8(min(max(x0[n, o, h, w, b, co] + x1[0, o, 0, 0, 0, co] + "
                "(i32(x2[n, o, h, w, b, co]) << 2i32) >> 7i32, -128i32), 127i32))"));
  EXPECT_THAT(our_error("Requantize", {residual}), HasSubstr("input 0 is i8, not i32"));
  EXPECT_THAT(our_error("Requantize", {acc, Array(DType::I32, {3})}),
              HasSubstr("do not broadcast"));
  EXPECT_THAT(our_error("Requantize", {acc, bias, Array(DType::I8, {1})}),
              HasSubstr("input 2 must have shape"));
  EXPECT_THAT(our_error("Requantize", {acc}, {{"shift", int64_t{32}}}), HasSubstr("shift is 32"));
  EXPECT_THAT(our_error("Requantize", {acc}, {{"lo", int64_t{5}}, {"hi", int64_t{4}}}),
              HasSubstr("hi is 4"));
}

TEST(Tiles, ConversionFillsWithZerosAndComesBack) {
  for (const auto& [n, c, batch, block] : std::vector<std::array<int64_t, 4>>{
           {1, 3, 1, 4}, {3, 8, 2, 4}, {2, 5, 2, 2}, {4, 4, 1, 4}}) {
    const Array x = random_array(DType::I8, {n, c, 2, 3}, 1, 1, 100);
    const Array t = to_tiles(x, batch, block);
    ASSERT_EQ(t.shape(),
              (Shape{(n + batch - 1) / batch, (c + block - 1) / block, 2, 3, batch, block}));
    testing::for_each_index(t.shape(), [&](const Ints& at) {
      EXPECT_EQ(value_at(t, at),
                value_or(x, {at[0] * batch + at[4], at[1] * block + at[5], at[2], at[3]}, 0));
    });
    expect_close(from_tiles(t, n, c), x);
  }
  EXPECT_THAT(our_error("FromTiles", {Array(DType::I8, {1, 2, 3, 3, 1, 4})},
                        {{"n", int64_t{1}}, {"channels", int64_t{9}}}),
              HasSubstr("9 channels do not make tiles"));
  EXPECT_THAT(our_error("ToTiles", {Array(DType::I8, {1, 2, 3, 3})}, {{"block", int64_t{4}}}),
              HasSubstr("batch is 0"));
}

struct TileConvCase {
  Shape x, w;
  int64_t groups = 1;
  Ints strides = {1, 1}, pads = {0, 0, 0, 0};
  int64_t batch = 1, block_in = 4, block_out = 4;
  int64_t block_groups = 1;
};

/// Direct convolution of the untiled tensors.
Array naive_conv(const TileConvCase& c, const Array& x, const Array& w) {
  const int64_t h = (c.x[2] + c.pads[0] + c.pads[2] - c.w[2]) / c.strides[0] + 1;
  const int64_t v = (c.x[3] + c.pads[1] + c.pads[3] - c.w[3]) / c.strides[1] + 1;
  const int64_t outs = c.w[0] / c.groups;
  return testing::filled(DType::I32, {c.x[0], c.w[0], h, v}, [&](const Ints& at) {
    double sum = 0;
    testing::for_each_index({c.w[1], c.w[2], c.w[3]}, [&](const Ints& k) {
      sum += value_at(w, {at[1], k[0], k[1], k[2]}) *
             value_or(x,
                      {at[0], at[1] / outs * c.w[1] + k[0], at[2] * c.strides[0] + k[1] - c.pads[0],
                       at[3] * c.strides[1] + k[2] - c.pads[1]},
                      0);
    });
    return sum;
  });
}

TEST(Tiles, ConvolutionEqualsPlainLoops) {
  const std::vector<TileConvCase> cases = {
      {{1, 5, 5, 6}, {4, 5, 1, 1}, 1, {2, 2}, {0, 0, 0, 0}, 1, 4, 4, 1},
      {{1, 5, 7, 6}, {4, 5, 1, 2}, 1, {3, 1}, {0, 0, 0, 0}, 1, 4, 4, 1},
      {{1, 8, 5, 4}, {8, 8, 3, 3}, 1, {1, 1}, {1, 1, 1, 1}},
      {{1, 3, 7, 7}, {6, 3, 3, 3}, 1, {2, 2}, {1, 1, 1, 1}},
      {{2, 5, 3, 3}, {7, 5, 1, 1}, 1, {1, 1}, {0, 0, 0, 0}, 2, 4, 2},
      {{3, 9, 1, 1}, {10, 9, 1, 1}, 1, {1, 1}, {0, 0, 0, 0}, 2, 2, 4},
      {{1, 8, 6, 5}, {8, 1, 3, 3}, 8, {1, 1}, {1, 1, 1, 1}, 1, 4, 4, 2},
      {{1, 6, 4, 4}, {6, 1, 3, 3}, 6, {2, 2}, {0, 1, 1, 0}, 1, 4, 4, 2},
      {{1, 8, 4, 4}, {16, 4, 3, 3}, 2, {1, 1}, {1, 1, 1, 1}, 1, 4, 4, 2},
      {{1, 12, 3, 3}, {12, 2, 1, 1}, 6, {1, 1}, {0, 0, 0, 0}, 1, 4, 4, 3},
      {{1, 6, 3, 3}, {12, 2, 2, 2}, 3, {1, 1}, {0, 0, 0, 0}, 1, 4, 8, 2},
      {{1, 9, 3, 3}, {6, 3, 1, 1}, 3, {1, 1}, {0, 0, 0, 0}, 1, 4, 4, 1},
      {{1, 8, 3, 3}, {8, 1, 3, 3}, 8, {1, 1}, {1, 1, 1, 1}, 1, 2, 4, 2},
  };
  uint64_t seed = 0;
  for (const TileConvCase& c : cases) {
    const Array x = random_array(DType::I8, c.x, ++seed, -128, 127);
    const Array w = random_array(DType::I8, c.w, ++seed, -128, 127);
    const TileBlocks blocks = tile_blocks(c.w[0], c.w[1], c.groups, c.block_in, c.block_out);
    EXPECT_EQ(blocks.groups, c.block_groups) << to_string(c.w);
    const Array packed =
        ours("PackTiles", {w},
             {{"block_in", c.block_in}, {"block_out", c.block_out}, {"groups", c.groups}});
    const Array y = ours("TileConv", {to_tiles(x, c.batch, c.block_in), packed},
                         {{"strides", c.strides}, {"pads", c.pads}, {"groups", blocks.groups}});
    expect_close(from_tiles(y, c.x[0], c.w[0]), naive_conv(c, x, w), 0, to_string(c.w));
  }
}

TEST(Tiles, ConvolutionLoopsHaveTheirNames) {
  const Array x(DType::I8, {1, 2, 5, 5, 1, 4}), w(DType::I8, {3, 2, 3, 3, 4, 4});
  const std::string text =
      print(*op_func(call_of("TileConv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}, kOurs)));
  EXPECT_THAT(text, HasSubstr("alloc pad: i8[1,2,7,7,1,4]"));
  EXPECT_THAT(text, HasSubstr("for y0.n in 1, y0.o in 3, y0.h in 5, y0.w in 5, y0.b in 1, y0.co in "
                              "4, y0.ci in 2, y0.r in 3, y0.s in 3, y0.bi in 4 {"));
  EXPECT_THAT(our_error("TileConv", {x, Array(DType::I8, {3, 1, 3, 3, 4, 4})}),
              HasSubstr("do not fit together"));
  EXPECT_THAT(our_error("TileConv", {x, w.cast(DType::I32)}), HasSubstr("input 1 is i32, not i8"));
}

TEST(Tiles, MaxPoolEqualsPlainLoops) {
  for (const int64_t floor : {0, -128}) {
    const Array x = random_array(DType::I8, {1, 6, 7, 6}, 3, floor, 127);
    const Array y = ours("TileMaxPool", {to_tiles(x, 1, 4)},
                         {{"kernel_shape", Ints{3, 2}},
                          {"strides", Ints{2, 2}},
                          {"pads", Ints{1, 0, 1, 1}},
                          {"floor", floor}});
    const Array want = testing::filled(DType::I8, {1, 6, 4, 3}, [&](const Ints& at) {
      double best = -128;
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t s = 0; s < 2; ++s)
          best = std::max(best, value_or(x, {0, at[1], at[2] * 2 + r - 1, at[3] * 2 + s}, -128));
      return best;
    });
    expect_close(from_tiles(y, 1, 6), want);
  }
  EXPECT_THAT(our_error("TileMaxPool", {Array(DType::I8, {1, 6, 7, 6})}), HasSubstr("rank 6"));
}

}  // namespace
}  // namespace tilewright::tensor
