#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::AttrMap;
using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::value_at;

/// x less its zero point, as f64: one number or one per element of `axis`.
Array lifted(const Array& x, const Array& zero, size_t axis) {
  return filled(DType::F64, x.shape(), [&](const Ints& at) {
    const double point = zero.empty_handle() ? 0 : zero.get(zero.size() == 1 ? 0 : at[axis]);
    return value_at(x, at) - point;
  });
}

TEST(ConvInteger, EqualsConvOfShiftedNumbers) {
  const AttrMap attrs = {
      {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 2}}, {"group", int64_t{2}}};
  const Array x = random_array(DType::U8, {1, 4, 5, 6}, 1, 0, 255);
  const Array w = random_array(DType::I8, {6, 2, 3, 3}, 2, -128, 127);
  const Array x_zero = testing::array_of(DType::U8, {}, {130});
  for (const Array& xz : {Array(), x_zero}) {
    for (const Array& wz : {Array(), testing::array_of(DType::I8, {}, {-3}),
                            random_array(DType::I8, {6}, 3, -9, 9)}) {
      const Array want = run_op("Conv", {lifted(x, xz, 0), lifted(w, wz, 0)}, attrs)[0];
      expect_close(run_op("ConvInteger", {x, w, xz, wz}, attrs)[0], want.cast(DType::I32));
    }
  }
  EXPECT_THAT(error_of(call_of("ConvInteger", {x, w, Array(DType::I8, {})}, attrs)),
              HasSubstr("the zero point of input 0 has another type"));
  EXPECT_THAT(error_of(call_of("ConvInteger", {x, w, x_zero, Array(DType::I8, {5})}, attrs)),
              HasSubstr("6 elements"));
  EXPECT_THAT(error_of(call_of("ConvInteger", {x.cast(DType::F32), w}, attrs)),
              HasSubstr("input 0 must be i8 or u8"));
}

TEST(ConvBytes, PaddingHoldsTheZeroPoint) {
  const AttrMap attrs = {{"pads", Ints{1, 0, 2, 1}}, {"strides", Ints{2, 1}}};
  for (const DType dtype : {DType::U8, DType::I8}) {
    const Array x = random_array(dtype, {2, 3, 5, 4}, 1, 0, 127);
    const Array w = random_array(DType::I8, {4, 3, 3, 2}, 2, -128, 127);
    const Array zero = testing::array_of(dtype, {}, {7});
    // The same image with its padding written out.
    const Array padded = filled(DType::F64, {2, 3, 8, 5}, [&](const Ints& at) {
      const bool inside = at[2] >= 1 && at[2] < 6 && at[3] < 4;
      return inside ? value_at(x, {at[0], at[1], at[2] - 1, at[3]}) : 7;
    });
    const Array want = run_op("Conv", {padded, w.cast(DType::F64)}, {{"strides", Ints{2, 1}}})[0];
    expect_close(run_op("ConvBytes", {x, w, zero}, attrs, 1, "tilewright")[0],
                 want.cast(DType::I32));
  }
}

TEST(MatMulInteger, ZeroPointsPerTensorRowAndColumn) {
  const Array a = random_array(DType::U8, {2, 3, 4}, 1, 0, 255);
  const Array b = random_array(DType::I8, {4, 5}, 2, -128, 127);
  const Array rows = random_array(DType::U8, {3}, 3, 0, 255);
  const Array columns = random_array(DType::I8, {5}, 4, -128, 127);
  for (const Array& az : {Array(), testing::array_of(DType::U8, {1}, {7}), rows}) {
    for (const Array& bz : {Array(), testing::array_of(DType::I8, {}, {7}), columns}) {
      const Array want = run_op("MatMul", {lifted(a, az, 1), lifted(b, bz, 1)})[0];
      expect_close(run_op("MatMulInteger", {a, b, az, bz})[0], want.cast(DType::I32));
    }
  }
  EXPECT_THAT(error_of(call_of("MatMulInteger", {a, b, Array(DType::U8, {4})})),
              HasSubstr("the zero point of input 0 does not fit it"));
}

}  // namespace
}  // namespace tilewright::tensor
