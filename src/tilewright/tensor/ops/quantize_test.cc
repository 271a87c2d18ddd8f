// Quantisation against the formulas of the ONNX documents, element by element.
#include <gmock/gmock.h>

#include <algorithm>

#include "tilewright/tensor/ops/movement_testing.h"

namespace tilewright::tensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Limits {
  double lo, hi;
};
Limits limits(DType dtype) {
  const int bits = bit_width(dtype);
  return is_unsigned_int(dtype) ? Limits{0, std::ldexp(1, bits) - 1}
                                : Limits{-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
}
/// Round half to even (the default rounding mode), shift, clamp.
double quantised(double value, double zero, DType dtype) {
  const Limits l = limits(dtype);
  return std::clamp(std::nearbyint(value) + zero, l.lo, l.hi);
}
Array scalar(DType dtype, double value) { return Array::scalar(dtype, value); }
Array spread(Shape shape, DType dtype, uint64_t seed) {
  Rng rng(seed);
  Array a(dtype, std::move(shape));
  const Limits l = limits(dtype);
  for (int64_t i = 0; i < a.size(); ++i)
    a.set_int(i, rng.between(static_cast<int64_t>(l.lo), static_cast<int64_t>(l.hi)));
  return a;
}

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const Array x = array(DType::F32, {8}, {0, 1, 3, 5, -1, -3, 1e6, -1e6});
  const auto y = run("QuantizeLinear", {}, {x, scalar(DType::F32, 2), scalar(DType::U8, 10)});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(10, 10, 12, 12, 10, 8, 255, 0));
  const auto plain = run("QuantizeLinear", {}, {x, scalar(DType::F32, 2)});
  EXPECT_EQ(plain[0].dtype(), DType::U8);
}

TEST(QuantizeLinear, NaNIsTheLowestNumber) {
  const Array x = array(DType::F32, {3}, {NAN, -INFINITY, 6});
  const auto quantized = [&](DType dtype) {
    return run("QuantizeLinear", {}, {x, scalar(DType::F32, 2), scalar(dtype, 3)})[0].to_ints();
  };
  EXPECT_EQ(quantized(DType::I8), (std::vector<int64_t>{-128, -128, 6}));
  EXPECT_EQ(quantized(DType::U8), (std::vector<int64_t>{0, 0, 6}));
  EXPECT_EQ(quantized(DType::I16), (std::vector<int64_t>{-32768, -32768, 6}));
  EXPECT_EQ(quantized(DType::U16), (std::vector<int64_t>{0, 0, 6}));
}

TEST(QuantizeLinear, TypesAndGranularities) {
  const Array x = random({2, 5, 3}, 1);
  for (const DType dtype : {DType::U8, DType::I8, DType::U16, DType::I16}) {
    const Array axis_scale = array(DType::F32, {5}, {0.5, 0.25, 0.125, 1, 2});
    const Array axis_zero = spread({5}, dtype, 2);
    const auto y = run("QuantizeLinear", {{"axis", int64_t{-2}}}, {x, axis_scale, axis_zero});
    expect_elements(y[0], x.shape(), [&](const Shape& i) {
      return quantised(at(x, i) / axis_scale.get(i[1]), axis_zero.get(i[1]), dtype);
    });
    // Blocks of two along the axis of five: three blocks.
    const Array block_scale = array(DType::F32, {2, 3, 3}, {0.5, 0.25, 2, 1});
    const Array block_zero = spread({2, 3, 3}, dtype, 3);
    const auto z = run("QuantizeLinear", {{"axis", int64_t{1}}, {"block_size", int64_t{2}}},
                       {x, block_scale, block_zero});
    expect_elements(z[0], x.shape(), [&](const Shape& i) {
      const Shape block{i[0], i[1] / 2, i[2]};
      return quantised(at(x, i) / at(block_scale, block), at(block_zero, block), dtype);
    });
  }
  const auto typed =
      run("QuantizeLinear", {{"output_dtype", int64_t{5}}}, {x, scalar(DType::F32, 0.125)});
  EXPECT_EQ(typed[0].dtype(), DType::I16);
}

TEST(DequantizeLinear, TypesAndGranularities) {
  for (const DType dtype : {DType::U8, DType::I8, DType::U16, DType::I16}) {
    const Array x = spread({2, 4}, dtype, 1), zero = spread({4}, dtype, 2);
    const Array scale = array(DType::F32, {4}, {0.5, 0.25, 2, 1});
    const auto y = run("DequantizeLinear", {}, {x, scale, zero});
    expect_elements(y[0], x.shape(),
                    [&](const Shape& i) { return (at(x, i) - zero.get(i[1])) * scale.get(i[1]); });
  }
  const Array wide = array(DType::I32, {2}, {1 << 20, -3});
  EXPECT_THAT(run("DequantizeLinear", {}, {wide, scalar(DType::F32, 0.5)})[0].to_doubles(),
              ElementsAre(1 << 19, -1.5));
  const auto half = run("DequantizeLinear", {{"output_dtype", int64_t{10}}},
                        {array(DType::I8, {1}, {4}), scalar(DType::F32, 0.5)});
  EXPECT_EQ(half[0].dtype(), DType::F16);
  EXPECT_EQ(half[0].get(0), 2);
}

TEST(QuantizeLinear, BadInput) {
  const Array x = random({2, 4}, 1);
  EXPECT_THAT(error_of("QuantizeLinear", {}, {x, iota({3})}), HasSubstr("scale [3]"));
  EXPECT_THAT(error_of("QuantizeLinear", {{"block_size", int64_t{3}}}, {x, iota({2, 1})}),
              HasSubstr("block_size 3"));
  EXPECT_THAT(error_of("QuantizeLinear", {}, {x, scalar(DType::F32, 1), iota({2}, DType::U8)}),
              HasSubstr("input 2"));
  // One scale and one zero point may be scalars or arrays of one element, each for itself.
  EXPECT_EQ(error_of("QuantizeLinear", {}, {x, scalar(DType::F32, 1), iota({1}, DType::U8)}), "");
  EXPECT_EQ(error_of("QuantizeLinear", {}, {x, iota({1}), scalar(DType::U8, 1)}), "");
  EXPECT_THAT(
      error_of("QuantizeLinear", {{"output_dtype", int64_t{17}}}, {x, scalar(DType::F32, 1)}),
      HasSubstr("type 17"));
  EXPECT_THAT(error_of("DequantizeLinear", {}, {x, scalar(DType::F32, 1)}), HasSubstr("f32"));
}

TEST(DynamicQuantizeLinear, RangesIncludeZero) {
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{1, 4, 2, 3}, {-5, -1, -2, 0.5}, {-8, -3}, {0, 0}}) {
    const Array x = array(DType::F32, {static_cast<int64_t>(values.size())}, values);
    const auto y = run("DynamicQuantizeLinear", {}, {x}, 3);
    const float hi =
        static_cast<float>(std::max(0.0, *std::max_element(values.begin(), values.end())));
    const float lo =
        static_cast<float>(std::min(0.0, *std::min_element(values.begin(), values.end())));
    const float scale = (hi == lo ? 1.0f : hi - lo) / 255.0f;
    const double zero = quantised(static_cast<double>(-lo / scale), 0, DType::U8);
    EXPECT_EQ(y[1].get(0), static_cast<double>(scale));
    EXPECT_EQ(y[2].get(0), zero);
    expect_elements(y[0], x.shape(), [&](const Shape& i) {
      return quantised(static_cast<double>(static_cast<float>(at(x, i)) / scale), zero, DType::U8);
    });
  }
}

TEST(QLinearConv, ChannelScalesPaddingGroups) {
  const Array x = spread({1, 4, 5, 4}, DType::U8, 1), w = spread({6, 2, 3, 2}, DType::I8, 2);
  const Array w_scale = array(DType::F32, {6}, {0.5, 0.25, 0.125, 1, 0.5, 0.25});
  const Array w_zero = spread({6}, DType::I8, 3),
              bias = spread({6}, DType::I16, 4).cast(DType::I32);
  const double x_zero = 100, y_zero = 7;
  for (const bool with_bias : {false, true}) {
    std::vector<Given> in{x,      scalar(DType::F32, 0.5), scalar(DType::U8, x_zero), w, w_scale,
                          w_zero, scalar(DType::F32, 64),  scalar(DType::U8, y_zero)};
    if (with_bias) in.emplace_back(bias);
    const auto y = run("QLinearConv",
                       {{"group", int64_t{2}},
                        {"pads", std::vector<int64_t>{1, 0, 1, 1}},
                        {"strides", std::vector<int64_t>{2, 1}}},
                       in);
    expect_elements(y[0], {1, 6, 3, 4}, [&](const Shape& i) {
      double sum = with_bias ? bias.get(i[1]) : 0;
      for_each_index({2, 3, 2}, [&](const Shape& tap, int64_t) {
        const int64_t r = i[2] * 2 + tap[1] - 1, c = i[3] + tap[2];
        if (r < 0 || r >= 5 || c >= 4) return;  // padding is the zero point: it adds nothing
        sum += (at(x, {0, i[1] / 3 * 2 + tap[0], r, c}) - x_zero) *
               (at(w, {i[1], tap[0], tap[1], tap[2]}) - w_zero.get(i[1]));
      });
      return quantised(sum * (0.5 * w_scale.get(i[1]) / 64), y_zero, DType::U8);
    });
  }
  EXPECT_THAT(error_of("QLinearConv", {},
                       {x, scalar(DType::F32, 1), scalar(DType::I8, 0), w, w_scale, w_zero,
                        scalar(DType::F32, 1), scalar(DType::U8, 0)}),
              HasSubstr("inputs 0 and 2"));
}

TEST(QLinearMatMul, RowsColumnsAndStacks) {
  const Array a = spread({2, 3, 4}, DType::U8, 1), b = spread({4, 2}, DType::I8, 2);
  const Array b_scale = array(DType::F32, {2}, {0.5, 0.25}), b_zero = spread({2}, DType::I8, 3);
  const Array a_scale = array(DType::F32, {2, 3, 1}, {1, 0.5, 2, 0.25, 1, 0.5});
  const Array a_zero = spread({2, 3, 1}, DType::U8, 4);
  const auto y =
      run("QLinearMatMul", {},
          {a, a_scale, a_zero, b, b_scale, b_zero, scalar(DType::F32, 128), scalar(DType::I8, -3)});
  expect_elements(y[0], {2, 3, 2}, [&](const Shape& i) {
    double sum = 0;
    const Shape row{i[0], i[1], 0};
    for (int64_t k = 0; k < 4; ++k)
      sum += (at(a, {i[0], i[1], k}) - at(a_zero, row)) * (at(b, {k, i[2]}) - b_zero.get(i[2]));
    return quantised(sum * (at(a_scale, row) * b_scale.get(i[2]) / 128), -3, DType::I8);
  });
  auto error = [&](const Array& left, const Array& scale) {
    return error_of("QLinearMatMul", {},
                    {left, scale, scalar(DType::U8, 0), b, b_scale, b_zero, scalar(DType::F32, 1),
                     scalar(DType::U8, 0)});
  };
  EXPECT_THAT(error(spread({3, 5}, DType::U8, 1), scalar(DType::F32, 1)), HasSubstr("5 and 4"));
  EXPECT_THAT(error(spread({3, 4}, DType::U8, 1), iota({2})), HasSubstr("[2]"));
}

}  // namespace
}  // namespace tilewright::tensor::testing
