#include "tilewright/driver/rounding_limit.h"

#include <gtest/gtest.h>

#include "tilewright/graph/builder.h"

namespace tilewright::driver {
namespace {

using graph::ValueId;

TEST(RoundingLimit, BeginsWhereFloatsAreRoundedToSteps) {
  graph::Builder b("net");
  const ValueId scale = b.constant("scale", Array::scalar(DType::F32, 0.25));
  const ValueId zero = b.constant("zero", Array::scalar(DType::U8, 3));
  const ValueId x = b.input("x", DType::F32, {2, 4});
  ValueId value = x;
  value = b.node("Relu", {value});
  value = b.node("QuantizeLinear", {value, scale, zero});
  value = b.node("DequantizeLinear", {value, scale, zero});
  value = b.node("Transpose", {value});
  b.output(b.node("Exp", {value}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const std::vector<RoundingLimit> limits = rounding_limits(*graph);
  const auto limit = [&](size_t node) {
    return limits.at(static_cast<size_t>(graph->nodes.at(node).outputs[0]));
  };
  const size_t plain = 0, steps = 1, real = 2, moved = 3, computed = 4;
  EXPECT_EQ(limit(plain).absolute, 0);
  EXPECT_EQ(limit(plain).relative, 0);
  EXPECT_EQ(limit(steps).absolute, kRoundingSteps);
  EXPECT_EQ(limit(real).absolute, kRoundingSteps * 0.25);
  EXPECT_EQ(limit(moved).absolute, kRoundingSteps * 0.25);
  EXPECT_EQ(limit(moved).relative, 0);
  EXPECT_EQ(limit(computed).absolute, 0);
  EXPECT_GT(limit(computed).relative, 0);
}

TEST(RoundingLimit, WidensTheLimitOfADifference) {
  tune::Difference d;
  d.max_abs = 0.5, d.reference = 2, d.error = 0.25, d.limit = 1e-4;
  EXPECT_TRUE(within(d, {0.5, 0}).ok());
  EXPECT_FALSE(within(d, {0.49, 0}).ok());
  EXPECT_TRUE(within(d, {0, 0.3}).ok());
  EXPECT_FALSE(within(d, {}).ok());
  d.problem = "f32 [1] instead of f32 [2]";
  EXPECT_FALSE(within(d, {0.5, 0}).ok());
}

}  // namespace
}  // namespace tilewright::driver
