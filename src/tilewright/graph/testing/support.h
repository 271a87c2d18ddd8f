// For tests: operators and whole graphs run by the reference interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Runs one operator's own Func in the interpreter.
Result<std::vector<Array>> interp_evaluate(const tensor::OpCall& call,
                                           const std::vector<Array>& inputs);
/// Outputs of `graph`, node by node.
Result<std::vector<Array>> run_graph(const Graph& graph, const std::vector<Array>& inputs);
/// Integer-valued numbers in [-range, range], so that every order of additions is exact.
Array random_array(Rng& rng, DType dtype, const Shape& shape, int64_t range = 3);
std::vector<Array> random_inputs(const Graph& graph, uint64_t seed);
/// Weights of a network in such numbers.
inline Array weights(Rng& rng, const Shape& shape) {
  return random_array(rng, DType::F32, shape, 2);
}
/// How many nodes are `op`.
int count(const Graph& graph, const std::string& op);
/// The finished graph; a test that builds a wrong one fails.
Graph finish(Builder& b);
/// Largest absolute difference; infinity if the types differ.
double max_difference(const Array& a, const Array& b);

}  // namespace tilewright::graph
