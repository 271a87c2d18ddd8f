#include "tilewright/graph/onnx/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<double>;

/// A model of one node whose inputs are all of f32.
onnx::ModelProto composed_model(const std::string& op, const std::vector<Ints>& shapes,
                                const std::vector<std::pair<std::string, int64_t>>& attrs = {}) {
  onnx::ModelProto m = empty_model(24);
  std::vector<std::string> names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    add_input(m, names.back(), shapes[i]);
  }
  onnx::NodeProto& node = add_node(m, op, names, {"y"});
  for (const auto& [key, value] : attrs) set_attr(node, key, value);
  add_output(m, "y");
  return m;
}

Floats composed(const onnx::ModelProto& m, const std::vector<Array>& inputs) {
  const auto graph = import(m);
  EXPECT_TRUE(graph) << to_string(graph.error());
  const auto out = graph ? run_graph(*graph, inputs) : std::vector<Array>();
  EXPECT_TRUE(out) << to_string(out.error());
  return out && !out->empty() ? (*out)[0].to_doubles() : Floats();
}

Array of_shape(const Floats& values, const Shape& shape) {
  return Array::of(DType::F32, values).reshaped(shape);
}

TEST(Compose, AttentionWeighsValuesByProducts) {
  // Two queries, two keys, one number each: q = 1, 2; k = 0, 1; v = 10, 20.
  const Shape s = {1, 1, 2, 1};
  const std::vector<Array> qkv = {of_shape({1, 2}, s), of_shape({0, 1}, s), of_shape({10, 20}, s)};
  const auto mixed = [](double score) { return 10 + 10 / (1 + std::exp(-score)); };
  const Floats all = composed(composed_model("Attention", {s, s, s}), qkv);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NEAR(all[0], mixed(1), 1e-5);
  EXPECT_NEAR(all[1], mixed(2), 1e-5);
  const Floats causal = composed(composed_model("Attention", {s, s, s}, {{"is_causal", 1}}), qkv);
  ASSERT_EQ(causal.size(), 2u);
  EXPECT_NEAR(causal[0], 10, 1e-5);
  EXPECT_NEAR(causal[1], mixed(2), 1e-5);
}

TEST(Compose, AttentionSharesKeysBetweenHeads) {
  // Two heads of queries beside each other, one of keys and values.
  const std::vector<Ints> shapes = {{1, 1, 2}, {1, 2, 1}, {1, 2, 1}};
  const auto m = composed_model("Attention", shapes, {{"q_num_heads", 2}, {"kv_num_heads", 1}});
  const Floats y = composed(
      m, {of_shape({1, 2}, {1, 1, 2}), of_shape({0, 1}, {1, 2, 1}), of_shape({10, 20}, {1, 2, 1})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_NEAR(y[0], 10 + 10 / (1 + std::exp(-1)), 1e-5);
  EXPECT_NEAR(y[1], 10 + 10 / (1 + std::exp(-2)), 1e-5);
}

TEST(Compose, AQueryThatMaySeeNoKeyGetsNothing) {
  const Shape s = {1, 1, 2, 1};
  const double never = -std::numeric_limits<double>::infinity();
  const auto m = composed_model("Attention", {s, s, s, {2, 2}});
  const Floats y = composed(m, {of_shape({1, 2}, s), of_shape({0, 1}, s), of_shape({10, 20}, s),
                                of_shape({never, never, never, 0}, {2, 2})});
  EXPECT_EQ(y, (Floats{0, 20}));
}

TEST(Compose, RotaryEmbeddingTurnsPairs) {
  // A quarter of a turn: (a, b) becomes (-b, a).
  const Shape x = {1, 1, 1, 4}, angle = {1, 1, 2};
  const std::vector<Array> inputs = {of_shape({1, 2, 3, 4}, x), of_shape({0, 0}, angle),
                                     of_shape({1, 1}, angle)};
  EXPECT_EQ(composed(composed_model("RotaryEmbedding", {x, angle, angle}), inputs),
            (Floats{-3, -4, 1, 2}));
  EXPECT_EQ(
      composed(composed_model("RotaryEmbedding", {x, angle, angle}, {{"interleaved", 1}}), inputs),
      (Floats{-2, 1, -4, 3}));
}

TEST(Compose, WhatDoesNotFitIsReported) {
  const Shape s = {1, 1, 2, 1};
  const auto text = [](const onnx::ModelProto& m) {
    const auto graph = import(m);
    EXPECT_FALSE(graph);
    return graph ? std::string() : to_string(graph.error());
  };
  EXPECT_THAT(text(composed_model("Attention", {s, s, {1, 1, 3, 1}})), HasSubstr("do not fit"));
  EXPECT_THAT(text(composed_model("Attention", {{1, 2, 4}, {1, 2, 4}, {1, 2, 4}})),
              HasSubstr("q_num_heads is 0"));
  EXPECT_THAT(text(composed_model("RotaryEmbedding", {{1, 2, 4}, {1, 2, 2}, {1, 2, 2}})),
              HasSubstr("num_heads"));
  EXPECT_THAT(text(composed_model("RotaryEmbedding", {{1, 1, 2, 4}, {1, 2, 1}, {1, 2, 1}})),
              HasSubstr("half as many"));
}

}  // namespace
}  // namespace tilewright::graph
