#include "tilewright/driver/verify/rounding_limit.h"

#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"

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

TEST(RoundingLimit, AComputedScaleIsCheckedAsAFloat) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 4});
  const std::vector<ValueId> quantized = b.nodes("DynamicQuantizeLinear", {x}, {}, 3);
  b.output(quantized[0], "y");
  b.output(quantized[1], "scale");
  b.output(quantized[2], "zero");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const std::vector<RoundingLimit> limits = rounding_limits(*graph);
  const auto limit = [&](size_t output) {
    return limits.at(static_cast<size_t>(graph->outputs.at(output)));
  };
  EXPECT_EQ(limit(0).absolute, kRoundingSteps);
  EXPECT_EQ(limit(1).absolute, 0);
  EXPECT_EQ(limit(1).relative, 0);
  EXPECT_EQ(limit(2).absolute, kRoundingSteps);
}

TEST(RoundingLimit, IntegersThatFloatsHoldAreExact) {
  const auto limit = [](const char* op, tensor::Attrs attrs) {
    graph::Graph graph;
    graph::Node node;
    node.op = op, node.domain = "tilewright", node.attrs = std::move(attrs);
    node.outputs = {graph.add_value("y", {DType::I8, {1, 1, 1, 1}})};
    graph.nodes.push_back(node);
    return layer_limits(graph).at(0).absolute;
  };
  using Attrs = std::map<std::string, tensor::AttrValue>;
  const auto leaky = [&](int64_t on, int64_t shift) {
    return limit("RequantizeFixed", {Attrs{{"leaky", on}, {"shift", shift}}});
  };
  EXPECT_EQ(leaky(0, 20), 0);
  EXPECT_EQ(leaky(1, 8), 0);
  EXPECT_EQ(leaky(1, 9), 1);
  EXPECT_EQ(limit("EltwiseFixed", {Attrs{{"leaky", int64_t{1}}}}), 0);
  const auto average = [&](int64_t kernel, int64_t factor) {
    return limit("AveragePoolFixed", {Attrs{{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                                            {"factor", factor}}});
  };
  EXPECT_EQ(average(7, 669), 0);
  EXPECT_EQ(average(14, 669), 1);

  graph::Builder b("net");
  const ValueId scale = b.constant("scale", Array::scalar(DType::F32, 0.25));
  const ValueId zero = b.constant("zero", Array::scalar(DType::I8, 0));
  const ValueId x = b.node("QuantizeLinear", {b.input("x", DType::F32, {2, 4}), scale, zero});
  const ValueId real = b.node("Tanh", {b.node("DequantizeLinear", {x, scale, zero})});
  b.output(b.node("QuantizeLinear", {real, scale, zero}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const std::vector<RoundingLimit> limits = layer_limits(*graph);
  const auto of_node = [&](size_t n) {
    return limits.at(static_cast<size_t>(graph->nodes.at(n).outputs[0])).absolute;
  };
  EXPECT_EQ(of_node(0), 0);  // an input has no rounding of its own
  EXPECT_EQ(of_node(3), 1);
}

TEST(RoundingLimit, WideFloatsComputedFromNarrowOnes) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 4});
  const auto to_f64 = [&](ValueId v) { return b.node("Cast", {v}, {{"to", int64_t{11}}}); };
  b.output(b.node("Exp", {to_f64(x)}), "exact");
  b.output(b.node("Exp", {to_f64(b.node("Exp", {x}))}), "narrow");
  const ValueId ones = b.constant("ones", Array(DType::F64, {4}));
  b.output(b.node("LayerNormalization", {to_f64(x), ones}), "stashed");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const std::vector<RoundingLimit> limits = rounding_limits(*graph);
  const auto limit = [&](size_t output) {
    return limits.at(static_cast<size_t>(graph->outputs.at(output))).relative;
  };
  EXPECT_EQ(limit(0), 0);
  EXPECT_EQ(limit(1), measure::error_limit(DType::F32, MathMode::Fast));
  EXPECT_EQ(limit(2), measure::error_limit(DType::F32, MathMode::Fast));
}

TEST(RoundingLimit, OfProductsInTf32) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 4});
  const ValueId ones = b.constant("ones", Array(DType::F32, {4, 3}));
  b.output(b.node("Relu", {b.node("MatMul", {x, ones})}), "product");
  b.output(b.node("Exp", {x}), "other");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto limit = [&](size_t output, bool tf32) {
    return rounding_limits(*graph, tf32)
        .at(static_cast<size_t>(graph->outputs.at(output)))
        .relative;
  };
  EXPECT_EQ(limit(0, false), 0);
  EXPECT_EQ(limit(0, true), measure::error_limit(DType::F16, MathMode::Fast));
  EXPECT_EQ(limit(1, true), 0);
}

TEST(RoundingLimit, WidensTheLimitOfADifference) {
  measure::Difference d;
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
