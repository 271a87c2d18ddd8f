#include "tilewright/measure/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace tilewright::measure {
namespace {

using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Array floats(std::initializer_list<double> values) {
  return Array::of(DType::F32, std::vector<double>(values));
}

Difference difference(const Array& actual, const Array& reference) {
  return compare(actual, reference, MathMode::Fast);
}

TEST(Compare, LimitsByTypeAndMath) {
  EXPECT_EQ(error_limit(DType::F32, MathMode::Fast), 1e-4);
  EXPECT_EQ(error_limit(DType::F32, MathMode::Exact), 1e-5);
  EXPECT_EQ(error_limit(DType::F16, MathMode::Fast), 5e-3);
  EXPECT_EQ(error_limit(DType::BF16, MathMode::Exact), 2e-2);
  EXPECT_EQ(error_limit(DType::F64, MathMode::Fast), 1e-12);
  for (DType dtype : {DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool})
    EXPECT_EQ(error_limit(dtype, MathMode::Fast), 0) << name(dtype);
}

TEST(Compare, ErrorIsRelativeToTheLargestReference) {
  const Difference d = difference(floats({1, 200, 3.5}), floats({1, 200, 4}));
  EXPECT_DOUBLE_EQ(d.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(d.reference, 200);
  EXPECT_DOUBLE_EQ(d.error, 0.0025);
  EXPECT_FALSE(d.ok());
}

TEST(Compare, WhatMayBeFlushedToZeroIsNoDifference) {
  EXPECT_TRUE(difference(floats({0, 0}), floats({3e-40, -1e-41})).ok());
  EXPECT_FALSE(difference(floats({0, 0}), floats({3e-37, 0})).ok());
}

TEST(Compare, OnEitherSideOfTheLimit) {
  EXPECT_TRUE(difference(floats({100, 0.009}), floats({100, 0})).ok());
  EXPECT_FALSE(difference(floats({100, 0.011}), floats({100, 0})).ok());
  const Array near = floats({100, 0.009}), zero = floats({100, 0});
  EXPECT_FALSE(compare(near, zero, MathMode::Exact).ok());
}

TEST(Compare, AgainstAllZerosTheErrorIsAbsolute) {
  const Difference d = difference(floats({0, 0.25}), floats({0, 0}));
  EXPECT_DOUBLE_EQ(d.error, 0.25);
  EXPECT_FALSE(d.ok());
  EXPECT_TRUE(difference(floats({0, 0}), floats({0, 0})).ok());
}

TEST(Compare, NonFiniteElementsMustAgree) {
  const Array reference = floats({kNan, kInf, -kInf, 1});
  EXPECT_TRUE(difference(floats({kNan, kInf, -kInf, 1}), reference).ok());
  EXPECT_EQ(difference(floats({0, kInf, -kInf, 1}), reference).nonfinite, 1);
  EXPECT_EQ(difference(floats({kInf, kInf, -kInf, 1}), reference).nonfinite, 1);
  EXPECT_EQ(difference(floats({kNan, -kInf, kInf, 1}), reference).nonfinite, 2);
  EXPECT_EQ(difference(floats({kNan, kInf, -kInf, kNan}), reference).nonfinite, 1);
  EXPECT_FALSE(difference(floats({kNan, kInf, -kInf, kNan}), reference).ok());
}

TEST(Compare, NonFiniteElementsDoNotHideOthers) {
  const Difference d = difference(floats({kInf, 2}), floats({kInf, 1}));
  EXPECT_EQ(d.nonfinite, 0);
  EXPECT_DOUBLE_EQ(d.error, 1);
}

TEST(Compare, IntegersMustBeEqual) {
  const std::array<double, 3> a = {1, 2, 300}, b = {1, 2, 301};
  EXPECT_TRUE(difference(Array::of(DType::I32, a), Array::of(DType::I32, a)).ok());
  EXPECT_FALSE(difference(Array::of(DType::I32, a), Array::of(DType::I32, b)).ok());
}

TEST(Compare, ShapesAndTypesAreNamed) {
  const Difference shapes = difference(floats({1, 2}), floats({1, 2, 3}));
  EXPECT_FALSE(shapes.ok());
  EXPECT_THAT(shapes.problem, HasSubstr("[2]"));
  EXPECT_THAT(shapes.problem, HasSubstr("[3]"));
  const Difference types = difference(floats({1}), floats({1}).cast(DType::F64));
  EXPECT_THAT(types.problem, HasSubstr("f64"));
  EXPECT_FALSE(types.ok());
}

TEST(Compare, EmptyArraysAgree) {
  EXPECT_TRUE(difference(Array(DType::F32, {0, 4}), Array(DType::F32, {0, 4})).ok());
}

}  // namespace
}  // namespace tilewright::measure
