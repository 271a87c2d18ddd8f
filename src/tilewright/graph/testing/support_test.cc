#include "tilewright/graph/testing/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/interp/interp.h"

namespace tilewright::graph {

Result<std::vector<Array>> interp_evaluate(const tensor::OpCall& call,
                                           const std::vector<Array>& inputs) {
  const Func func = TW_TRY(tensor::op_func(call));
  interp::Arguments arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].empty_handle()) arguments.arrays["x" + std::to_string(i)] = inputs[i];
  std::map<std::string, Array> wanted;
  for (const Param& param : func.params)
    if (const auto found = arguments.arrays.find(param.buffer.name());
        found != arguments.arrays.end())
      wanted.insert(*found);
  arguments.arrays = wanted;
  interp::Outcome outcome = TW_TRY(interp::run(func, arguments));
  std::vector<Array> outputs;
  for (int i = 0; i < call.num_outputs; ++i)
    outputs.push_back(outcome.outputs.at("y" + std::to_string(i)));
  return outputs;
}

Result<std::vector<Array>> run_graph(const Graph& graph, const std::vector<Array>& inputs) {
  std::vector<Array> known(graph.values.size());
  for (size_t v = 0; v < known.size(); ++v)
    if (graph.values[v].constant) known[v] = *graph.values[v].constant;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    known[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (const Node& node : graph.nodes) {
    std::vector<Array> arrays;
    for (ValueId id : node.inputs)
      arrays.push_back(id < 0 ? Array() : known[static_cast<size_t>(id)]);
    const std::vector<Array> results = TW_TRY(interp_evaluate(op_call(graph, node), arrays));
    for (size_t i = 0; i < results.size(); ++i)
      known[static_cast<size_t>(node.outputs[i])] = results[i];
  }
  std::vector<Array> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(known[static_cast<size_t>(id)]);
  return outputs;
}

Array random_array(Rng& rng, DType dtype, const Shape& shape, int64_t range) {
  Array array(dtype, shape);
  const int64_t lo = is_unsigned_int(dtype) || dtype == DType::Bool ? 0 : -range;
  const int64_t hi = dtype == DType::Bool ? 1 : range;
  for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, rng.between(lo, hi));
  return array;
}

std::vector<Array> random_inputs(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<Array> arrays;
  for (ValueId id : graph.inputs) {
    const tensor::TensorType& type = graph.values[static_cast<size_t>(id)].type;
    arrays.push_back(random_array(rng, type.dtype, type.shape));
  }
  return arrays;
}

int count(const Graph& graph, const std::string& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& node) { return node.op == op; }));
}

Graph finish(Builder& b) {
  Result<Graph> graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *std::move(graph);
}

double max_difference(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.get(i), y = b.get(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    const double difference = std::fabs(x - y);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

}  // namespace tilewright::graph
