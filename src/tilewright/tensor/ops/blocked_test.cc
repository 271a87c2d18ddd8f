// The blocked operators against the plain ones: block, compute, unblock gives the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tilewright/ir/text.h"
#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

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
using testing::run_op;
using testing::value_at;

Array to_blocked(const Array& x, int64_t block) {
  return ours("ToBlocked", {x}, {{"block", block}});
}
Array from_blocked(const Array& x, int64_t channels) {
  return ours("FromBlocked", {x}, {{"channels", channels}});
}

TEST(Blocked, ConversionFillsWithZerosAndComesBack) {
  for (const int64_t channels : {1, 3, 8, 11}) {
    for (const DType dtype : {DType::F32, DType::I8}) {
      const Array x = random_array(dtype, {2, channels, 3, 4}, 1, 1, 9);
      const Array b = to_blocked(x, 4);
      ASSERT_EQ(b.shape(), (Shape{2, (channels + 3) / 4, 3, 4, 4}));
      testing::for_each_index(b.shape(), [&](const Ints& at) {
        EXPECT_EQ(value_at(b, at),
                  testing::value_or(x, {at[0], at[1] * 4 + at[4], at[2], at[3]}, 0));
      });
      expect_close(from_blocked(b, channels), x);
    }
  }
  EXPECT_THAT(
      our_error("FromBlocked", {Array(DType::F32, {1, 2, 3, 3, 4})}, {{"channels", int64_t{9}}}),
      HasSubstr("9 channels do not make 2 blocks of 4"));
  EXPECT_THAT(our_error("ToBlocked", {Array(DType::F32, {1, 2})}), HasSubstr("block is 0"));
}

struct ConvCase {
  Shape x, w;
  int64_t block_in, block_out;
  Ints strides, pads, dilations;
  int64_t group = 1;
};

TEST(Blocked, ConvolutionEqualsConv) {
  const std::vector<ConvCase> cases = {
      {{1, 8, 5, 6}, {8, 8, 3, 3}, 4, 4, {1, 1}, {1, 1, 1, 1}, {1, 1}},
      {{2, 3, 9, 9}, {8, 3, 3, 3}, 3, 8, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {{1, 6, 5, 5}, {10, 6, 1, 1}, 4, 8, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{1, 4, 7, 6}, {4, 4, 2, 3}, 2, 4, {1, 2}, {0, 2, 1, 0}, {2, 1}},
      {{1, 8, 4, 4}, {8, 4, 3, 3}, 4, 4, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2},
  };
  int seed = 0;
  for (const ConvCase& c : cases) {
    const Array x = random_array(DType::F32, c.x, ++seed),
                w = random_array(DType::F32, c.w, ++seed);
    const Array bias = random_array(DType::F32, {c.w[0]}, ++seed);
    const AttrMap attrs = {
        {"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
    const Array packed =
        ours("PackConvWeight", {w}, {{"block_in", c.block_in}, {"block_out", c.block_out}});
    Array padded_bias(DType::F32, {packed.shape()[0] * c.block_out});
    for (int64_t i = 0; i < bias.size(); ++i) padded_bias.set(i, bias.get(i));
    const Array blocked = to_blocked(x, c.block_in);
    expect_close(from_blocked(ours("ConvBlocked", {blocked, packed, padded_bias}, attrs), c.w[0]),
                 run_op("Conv", {x, w, bias}, attrs)[0], 0, to_string(c.w));
    expect_close(from_blocked(ours("ConvBlocked", {blocked, packed}, attrs), c.w[0]),
                 run_op("Conv", {x, w}, attrs)[0]);
  }
}

TEST(Blocked, WhatFillsABlockUpCountsInNoSum) {
  for (const int64_t channels : {3, 6}) {  // of one block and of two
    const Array x = random_array(DType::F32, {1, channels, 5, 5}, 1),
                w = random_array(DType::F32, {4, channels, 3, 3}, 2);
    const Array packed =
        ours("PackConvWeight", {w}, {{"block_in", int64_t{4}}, {"block_out", int64_t{4}}});
    Array blocked = to_blocked(x, 4);
    for (int64_t i = 0; i < blocked.size(); ++i)
      if (i / 100 * 4 + i % 4 >= channels) blocked.set(i, std::numeric_limits<double>::infinity());
    expect_close(ours("ConvBlocked", {blocked, packed}, {{"channels", channels}}),
                 to_blocked(run_op("Conv", {x, w})[0], 4));
  }
}

TEST(Blocked, ConvolutionLoopsHaveTheirNames) {
  const Array x(DType::F32, {1, 2, 5, 5, 4}), w(DType::F32, {2, 2, 3, 3, 4, 4});
  const auto text = [&](const AttrMap& attrs) {
    return print(*op_func(call_of("ConvBlocked", {x, w, Array(DType::F32, {8})}, attrs, kOurs)));
  };
  EXPECT_THAT(text({}), HasSubstr("for conv.n in 1, conv.ko in 2, conv.h in 3, conv.w in 3, "
                                  "conv.ki in 4, conv.co in 2, conv.r in 3, conv.s in 3, "
                                  "conv.ci in 4 {"));
  EXPECT_THAT(text({}), ::testing::Not(HasSubstr("conv_pad")));
  EXPECT_THAT(text({{"pads", Ints{1, 1, 1, 1}}}), HasSubstr("alloc conv_pad: f32[1,2,7,7,4]"));
}

TEST(Blocked, ConvolutionsMayLeavePaddingOut) {
  for (const int64_t dilation : {1, 3, 6})
    for (const int64_t stride : {1, 2}) {
      const Array x = random_array(DType::F32, {1, 8, 7, 9}, 1);
      const Array w = random_array(DType::F32, {8, 8, 3, 3}, 2);
      const Array packed =
          ours("PackConvWeight", {w}, {{"block_in", int64_t{4}}, {"block_out", int64_t{4}}});
      AttrMap attrs = {{"pads", Ints{dilation, dilation, dilation, dilation - 1}},
                       {"dilations", Ints{dilation, dilation}},
                       {"strides", Ints{stride, stride}}};
      const Array want = run_op("Conv", {x, w}, attrs)[0];
      attrs["skip_padding"] = int64_t{1};
      const Array blocked = to_blocked(x, 4);
      expect_close(from_blocked(ours("ConvBlocked", {blocked, packed}, attrs), 8), want);
      EXPECT_THAT(print(*op_func(call_of("ConvBlocked", {blocked, packed}, attrs, kOurs))),
                  ::testing::Not(HasSubstr("conv_pad")));
    }
}

TEST(Blocked, SmallIntegersSumInI32) {
  const Array x = random_array(DType::I8, {1, 4, 3, 3}, 1, 100, 127);
  const Array w = random_array(DType::I8, {4, 4, 3, 3}, 2, 100, 127);
  const Array packed =
      ours("PackConvWeight", {w}, {{"block_in", int64_t{4}}, {"block_out", int64_t{4}}});
  const Array y = ours("ConvBlocked", {to_blocked(x, 4), packed});
  ASSERT_EQ(y.dtype(), DType::I32);
  const Array want = run_op("Conv", {x.cast(DType::F64), w.cast(DType::F64)})[0];
  expect_close(from_blocked(y, 4), want.cast(DType::I32));
}

TEST(Blocked, DepthwiseEqualsGroupedConv) {
  for (const int64_t channels : {4, 6}) {
    const Array x = random_array(DType::F32, {2, channels, 6, 5}, 1);
    const Array w = random_array(DType::F32, {channels, 1, 3, 3}, 2);
    const Array bias = random_array(DType::F32, {channels}, 3);
    const Array packed = ours("PackDepthwiseWeight", {w}, {{"block", int64_t{4}}});
    Array padded_bias(DType::F32, {packed.shape()[0] * 4});
    for (int64_t i = 0; i < channels; ++i) padded_bias.set(i, bias.get(i));
    AttrMap attrs = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}};
    const Array y = ours("DepthwiseConvBlocked", {to_blocked(x, 4), packed, padded_bias}, attrs);
    attrs["group"] = channels;
    expect_close(from_blocked(y, channels), run_op("Conv", {x, w, bias}, attrs)[0]);
  }
}

TEST(Blocked, PoolsEqualThePlainOnes) {
  const Array x = random_array(DType::F32, {2, 6, 7, 8}, 1);
  const Array blocked = to_blocked(x, 4);
  for (const int64_t ceil : {0, 1}) {
    for (const int64_t include : {0, 1}) {
      AttrMap attrs = {{"kernel_shape", Ints{3, 2}},
                       {"strides", Ints{2, 3}},
                       {"pads", Ints{1, 0, 1, 1}},
                       {"ceil_mode", ceil}};
      expect_close(from_blocked(ours("MaxPoolBlocked", {blocked}, attrs), 6),
                   run_op("MaxPool", {x}, attrs)[0]);
      attrs["count_include_pad"] = include;
      expect_close(from_blocked(ours("AveragePoolBlocked", {blocked}, attrs), 6),
                   run_op("AveragePool", {x}, attrs)[0], 1e-6);
    }
  }
  expect_close(from_blocked(ours("GlobalAveragePoolBlocked", {blocked}), 6),
               run_op("GlobalAveragePool", {x})[0], 1e-6);
}

TEST(Blocked, PackedGemmEqualsGemm) {
  for (const int64_t n : {4, 8, 11}) {
    for (const int64_t transposed : {0, 1}) {
      const Array a = random_array(DType::F32, {5, 7}, 1);
      const Array b = random_array(DType::F32, transposed ? Shape{n, 7} : Shape{7, n}, 2);
      const Array bias = random_array(DType::F32, {n}, 3);
      const Array packed =
          ours("PackGemmWeight", {b}, {{"block", int64_t{4}}, {"transB", transposed}});
      ASSERT_EQ(packed.shape(), (Shape{(n + 3) / 4, 7, 4}));
      expect_close(ours("GemmPacked", {a, packed, bias}, {{"n", n}}),
                   run_op("Gemm", {a, b, bias}, {{"transB", transposed}})[0]);
      expect_close(ours("GemmPacked", {a, packed}, {{"n", n}}),
                   run_op("Gemm", {a, b}, {{"transB", transposed}})[0]);
    }
  }
  EXPECT_THAT(our_error("GemmPacked", {Array(DType::F32, {5, 6}), Array(DType::F32, {2, 7, 4})},
                        {{"n", int64_t{8}}}),
              HasSubstr("do not fit n = 8"));
  EXPECT_THAT(our_error("GemmPacked", {Array(DType::F32, {5, 7}), Array(DType::F32, {2, 7, 4})},
                        {{"n", int64_t{9}}}),
              HasSubstr("do not fit n = 9"));
}

TEST(Blocked, ColumnsOfAProductInParts) {
  const Array a = random_array(DType::F32, {2, 5, 7}, 1), bias = random_array(DType::F32, {24}, 3);
  const Array packed =
      ours("PackGemmWeight", {random_array(DType::F32, {7, 24}, 2)}, {{"block", int64_t{4}}});
  const AttrMap whole = {{"n", int64_t{24}}}, parts = {{"n", int64_t{24}}, {"parts", int64_t{3}}};
  expect_close(ours("GemmPacked", {a, packed, bias}, parts),
               ours("GemmPacked", {a, packed, bias}, whole).reshaped({2, 5, 3, 8}));
  expect_close(ours("GemmPacked", {a, packed}, parts),
               ours("GemmPacked", {a, packed}, whole).reshaped({2, 5, 3, 8}));
  EXPECT_THAT(our_error("GemmPacked", {a, packed}, {{"n", int64_t{24}}, {"parts", int64_t{4}}}),
              HasSubstr("no 4 equal parts of blocks"));
}

TEST(Blocked, RejectsChannelsThatDoNotFillTheBlocks) {
  for (const int64_t channels : {0, 4, 9})
    EXPECT_THAT(
        our_error("ConvBlocked",
                  {Array(DType::F32, {1, 2, 5, 5, 4}), Array(DType::F32, {1, 2, 3, 3, 4, 4})},
                  {{"channels", channels}}),
        HasSubstr("channels do not fill the blocks of the packed weight"));
}

TEST(Blocked, RejectsWhatDoesNotFit) {
  const Array x(DType::F32, {1, 2, 5, 5, 4});
  EXPECT_THAT(our_error("ConvBlocked", {x, Array(DType::F32, {1, 3, 3, 3, 4, 4})}),
              HasSubstr("do not fit together"));
  EXPECT_THAT(
      our_error("ConvBlocked", {x, Array(DType::F32, {1, 2, 3, 3, 4, 4}), Array(DType::F32, {3})}),
      HasSubstr("input 2 must have shape [4]"));
  EXPECT_THAT(our_error("MaxPoolBlocked", {Array(DType::F32, {1, 2, 5})}),
              HasSubstr("not blocked"));
  EXPECT_THAT(our_error("PackDepthwiseWeight", {Array(DType::F32, {4, 2, 3, 3})}),
              HasSubstr("not depthwise"));
}

}  // namespace
}  // namespace tilewright::tensor
