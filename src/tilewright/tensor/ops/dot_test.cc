#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Ints;
using testing::ours;
using testing::random_array;
using testing::run_op;

/// The convolution by loops over plain arrays, with `zero` outside the image.
int64_t conv_at(const Array& x, const Array& w, int64_t zero, const Ints& at, int64_t stride,
                int64_t pad) {
  const Shape &xs = x.shape(), &ws = w.shape();
  int64_t sum = 0;
  for (int64_t c = 0; c < ws[1]; ++c)
    for (int64_t r = 0; r < ws[2]; ++r)
      for (int64_t s = 0; s < ws[3]; ++s) {
        const int64_t h = at[1] * stride + r - pad, v = at[2] * stride + s - pad;
        const bool inside = h >= 0 && h < xs[2] && v >= 0 && v < xs[3];
        const int64_t value = inside ? x.get_int((c * xs[2] + h) * xs[3] + v) : zero;
        sum += value * w.get_int(((at[0] * ws[1] + c) * ws[2] + r) * ws[3] + s);
      }
  return sum;
}

TEST(Dots, ConvolutionOfBytesIsTheSumOfProducts) {
  const Array x = random_array(DType::U8, {1, 6, 5, 7}, 1, 0, 255);
  const Array w = random_array(DType::I8, {5, 6, 3, 3}, 2, -128, 127);
  const Array offset = random_array(DType::I32, {8}, 3, -1000, 1000);
  const Array blocked = ours("ToBlocked", {x}, {{"block", int64_t{8}}});
  const Array packed =
      ours("PackConvDotWeight", {w},
           {{"block_in", int64_t{8}}, {"block_out", int64_t{4}}, {"depth", int64_t{4}}});
  EXPECT_EQ(packed.shape(), (Shape{2, 1, 3, 3, 2, 4, 4}));
  for (const int64_t stride : {1, 2}) {
    const Array y = ours(
        "ConvDotBlocked", {blocked, packed, offset},
        {{"strides", Ints{stride, stride}}, {"pads", Ints{1, 1, 1, 1}}, {"zero", int64_t{113}}});
    const int64_t height = 4 / stride + 1, width = 6 / stride + 1;
    ASSERT_EQ(y.shape(), (Shape{1, 2, height, width, 4}));
    EXPECT_EQ(y.dtype(), DType::I32);
    for (int64_t k = 0; k < 5; ++k)
      for (int64_t h = 0; h < height; ++h)
        for (int64_t v = 0; v < width; ++v)
          EXPECT_EQ(y.get_int(((k / 4 * height + h) * width + v) * 4 + k % 4),
                    conv_at(x, w, 113, {k, h, v}, stride, 1) + offset.get_int(k));
  }
}

TEST(Dots, DepthwiseWindowsAreSumsOfTheirChannel) {
  const Array x = random_array(DType::U8, {1, 6, 5, 9}, 1, 0, 255);
  const Array offset = random_array(DType::I32, {8}, 3, -1000, 1000);
  const Array blocked = ours("ToBlocked", {x}, {{"block", int64_t{4}}});
  for (const int64_t width : {2, 3, 5}) {
    const Array w = random_array(DType::I8, {6, 1, 3, width}, 2, -128, 127);
    const Array packed =
        ours("PackDepthwiseDotWeight", {w}, {{"block", int64_t{4}}, {"depth", int64_t{4}}});
    EXPECT_EQ(packed.shape(), (Shape{2, 3, (width + 3) / 4, 4, 4}));
    for (const int64_t stride : {1, 2}) {
      const Array y = ours("DepthwiseDotBlocked", {blocked, packed, offset},
                           {{"strides", Ints{stride, stride}},
                            {"pads", Ints{1, 1, 1, 1}},
                            {"width", width},
                            {"zero", int64_t{113}}});
      const int64_t height = 4 / stride + 1, columns = (11 - width) / stride + 1;
      ASSERT_EQ(y.shape(), (Shape{1, 2, height, columns, 4}));
      for (int64_t c = 0; c < 6; ++c)
        for (int64_t h = 0; h < height; ++h)
          for (int64_t v = 0; v < columns; ++v) {
            int64_t sum = offset.get_int(c);
            for (int64_t r = 0; r < 3; ++r)
              for (int64_t s = 0; s < width; ++s) {
                const int64_t i = h * stride + r - 1, j = v * stride + s - 1;
                const bool inside = i >= 0 && i < 5 && j >= 0 && j < 9;
                const int64_t value = inside ? x.get_int((c * 5 + i) * 9 + j) : 113;
                sum += value * w.get_int((c * 3 + r) * width + s);
              }
            EXPECT_EQ(y.get_int(((c / 4 * height + h) * columns + v) * 4 + c % 4), sum)
                << width << " " << stride << " " << c << " " << h << " " << v;
          }
    }
  }
}

TEST(Dots, ProductsAreMatrixProducts) {
  const Array a = random_array(DType::U8, {3, 8}, 1, 0, 255);
  for (const bool transposed : {false, true}) {
    const Array b = random_array(DType::I8, transposed ? Shape{6, 8} : Shape{8, 6}, 2, -128, 127);
    const Array packed =
        ours("PackGemmDotWeight", {b},
             {{"transB", int64_t{transposed}}, {"block", int64_t{4}}, {"depth", int64_t{4}}});
    EXPECT_EQ(packed.shape(), (Shape{2, 2, 4, 4}));
    const Array y = ours("GemmDotPacked", {a, packed}, {{"n", int64_t{6}}});
    for (int64_t m = 0; m < 3; ++m)
      for (int64_t n = 0; n < 6; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < 8; ++k)
          sum += a.get_int(m * 8 + k) * b.get_int(transposed ? n * 8 + k : k * 6 + n);
        EXPECT_EQ(y.get_int(m * 6 + n), sum);
      }
  }
}

TEST(Dots, Bf16SumsAreRoundedOnce) {
  const Array a = random_array(DType::BF16, {2, 6}, 1), b = random_array(DType::BF16, {6, 4}, 2);
  const Array packed =
      ours("PackGemmDotWeight", {b}, {{"block", int64_t{4}}, {"depth", int64_t{2}}});
  const Array y = ours("GemmDotPacked", {a, packed}, {{"n", int64_t{4}}});
  EXPECT_EQ(y.dtype(), DType::BF16);
  for (int64_t m = 0; m < 2; ++m)
    for (int64_t n = 0; n < 4; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < 6; ++k) sum += a.get(m * 6 + k) * b.get(k * 4 + n);
      EXPECT_EQ(y.get(m * 4 + n), sum);
    }
}

TEST(Dots, WhatDoesNotFitIsRefused) {
  const Array w = random_array(DType::I8, {4, 6, 1, 1}, 1);
  EXPECT_THAT(
      error_of(call_of("PackConvDotWeight", {w},
                       {{"block_in", int64_t{6}}, {"block_out", int64_t{4}}, {"depth", int64_t{4}}},
                       "tilewright")),
      HasSubstr("no multiple of depth 4"));
  EXPECT_THAT(error_of(call_of("PackGemmDotWeight", {random_array(DType::I8, {4, 6}, 1)}, {},
                               "tilewright")),
              HasSubstr("block"));
  const Array packed = random_array(DType::I8, {1, 1, 1, 1, 2, 4, 4}, 1);
  EXPECT_THAT(
      error_of(call_of("ConvDotBlocked", {random_array(DType::F32, {1, 1, 3, 3, 8}, 1), packed}, {},
                       "tilewright")),
      HasSubstr("f32"));
  EXPECT_THAT(
      error_of(call_of("ConvDotBlocked", {random_array(DType::U8, {1, 1, 3, 3, 4}, 1), packed}, {},
                       "tilewright")),
      HasSubstr("do not fit together"));
  EXPECT_THAT(error_of(call_of(
                  "GemmDotPacked",
                  {random_array(DType::U8, {2, 8}, 1), random_array(DType::I8, {2, 1, 4, 4}, 1)},
                  {{"n", int64_t{6}}}, "tilewright")),
              HasSubstr("n = 6"));
  EXPECT_THAT(error_of(call_of("PackDepthwiseDotWeight", {random_array(DType::I8, {4, 2, 3, 3}, 1)},
                               {{"block", int64_t{4}}, {"depth", int64_t{4}}}, "tilewright")),
              HasSubstr("not depthwise"));
  EXPECT_THAT(error_of(call_of("DepthwiseDotBlocked",
                               {random_array(DType::U8, {1, 1, 5, 5, 4}, 1),
                                random_array(DType::I8, {1, 3, 1, 4, 4}, 1)},
                               {{"width", int64_t{5}}}, "tilewright")),
              HasSubstr("width 5"));
}

}  // namespace
}  // namespace tilewright::tensor
