// Attention of several sizes, for tests.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/rules/cpu/testing/chains.h"

namespace tilewright::rules {

struct AttentionCase {
  std::string name;
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, depth = 1;
  bool masked = true;
};

/// Scaled and masked scores, softmax, product with the values.
inline graph::Graph graph_of(const AttentionCase& c) {
  using graph::ValueId;
  graph::Builder b("attention");
  const ValueId q = b.input("q", DType::F32, {c.batch, c.heads, c.queries, c.depth});
  const ValueId k = b.input("k", DType::F32, {c.batch, c.heads, c.depth, c.keys});
  const ValueId v = b.input("v", DType::F32, {c.batch, c.heads, c.keys, c.depth});
  ValueId scores = b.node("MatMul", {q, k});
  if (c.masked) {
    const ValueId mask = b.input("mask", DType::F32, {c.batch, 1, 1, c.keys});
    const ValueId scale = b.constant("scale", scalar(0.125));
    scores = b.node("Add", {b.node("Mul", {scores, scale}), mask});
  }
  b.output(b.node("MatMul", {b.node("Softmax", {scores}), v}), "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

inline Func func_of(const AttentionCase& c) { return joined(graph_of(c)); }

inline std::vector<AttentionCase> attention_cases() {
  return {{"whole_tiles", 1, 2, 16, 64, 32},
          {"plain_scores", 1, 2, 16, 64, 32, false},
          {"several_tiles_of_keys", 1, 1, 8, 200, 16},
          {"odd", 2, 1, 13, 45, 10}};
}

}  // namespace tilewright::rules
