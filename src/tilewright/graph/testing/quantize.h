// For tests of quantisation: small networks with random weights, and calibration in the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/quantize/quantize.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {

using Sizes = std::vector<int64_t>;

inline Array normal_array(Rng& rng, const Shape& shape, double deviation = 1) {
  Array array(DType::F32, shape);
  for (float& x : array.as<float>()) x = static_cast<float>(rng.normal() * deviation);
  return array;
}

/// Layers on top of a Builder, with He-normal weights.
struct Layers {
  Builder b{"net"};
  Rng rng;
  explicit Layers(uint64_t seed = 1) : rng(seed) {}

  ValueId input(const Shape& shape) { return b.input("x", DType::F32, shape); }
  ValueId weight(const Shape& shape, double deviation) {
    return b.constant("w", normal_array(rng, shape, deviation));
  }
  ValueId conv(ValueId x, int64_t out, int64_t kernel, int64_t stride = 1, int64_t pad = 0,
               int64_t groups = 1, bool bias = true) {
    const int64_t in = b.type(x).shape[1] / groups;
    const double deviation = std::sqrt(2.0 / static_cast<double>(in * kernel * kernel));
    std::vector<ValueId> inputs = {x, weight({out, in, kernel, kernel}, deviation)};
    if (bias) inputs.push_back(weight({out}, 0.2));
    return b.node("Conv", inputs,
                  {{"strides", Sizes{stride, stride}},
                   {"pads", Sizes{pad, pad, pad, pad}},
                   {"group", groups}});
  }
  ValueId relu(ValueId x) { return b.node("Relu", {x}); }
  ValueId dense(ValueId x, int64_t out) {
    const int64_t in = b.type(x).shape[1];
    return b.node(
        "Gemm",
        {x, weight({out, in}, std::sqrt(2.0 / static_cast<double>(in))), weight({out}, 0.2)},
        {{"transB", int64_t{1}}});
  }
  Graph finish(ValueId y) {
    b.output(y, "y");
    auto graph = b.finish();
    EXPECT_TRUE(graph.has_value()) << to_string(graph.error());
    return *graph;
  }
};

/// conv (stride 2 from 3 channels), pool, residual block, depthwise, average, dense.
inline Graph residual_net(int64_t batch = 1) {
  Layers l;
  ValueId x = l.relu(l.conv(l.input({batch, 3, 13, 12}), 6, 3, 2, 1));
  x = l.b.node(
      "MaxPool", {x},
      {{"kernel_shape", Sizes{3, 3}}, {"strides", Sizes{2, 2}}, {"pads", Sizes{1, 1, 1, 1}}});
  const ValueId y = l.conv(l.relu(l.conv(x, 6, 3, 1, 1)), 6, 3, 1, 1);
  x = l.relu(l.b.node("Add", {y, x}));
  const ValueId low = l.b.constant("lo", Array::scalar(DType::F32, 0));
  const ValueId high = l.b.constant("hi", Array::scalar(DType::F32, 2.5));
  x = l.b.node("Clip", {l.conv(x, 6, 3, 1, 1, 6), low, high});
  x = l.b.node("Add", {l.conv(x, 7, 1), l.conv(x, 7, 1)});
  x = l.b.node("Flatten", {l.b.node("GlobalAveragePool", {x})});
  return l.finish(l.b.node("Softmax", {l.dense(x, 10)}, {{"axis", int64_t{-1}}}));
}

/// Branches that are concatenated, a grouped convolution, LeakyRelu, average pooling with edges.
inline Graph branching_net() {
  Layers l(7);
  const ValueId x = l.relu(l.conv(l.input({1, 5, 6, 6}), 6, 3, 1, 1));
  const ValueId a = l.relu(l.conv(x, 3, 1));
  const ValueId c = l.b.node("LeakyRelu", {l.conv(x, 6, 3, 1, 1, 3)}, {{"alpha", 0.25}});
  const ValueId p =
      l.b.node("AveragePool", {x}, {{"kernel_shape", Sizes{3, 3}}, {"pads", Sizes{1, 1, 1, 1}}});
  ValueId y = l.b.node("Concat", {a, c, p}, {{"axis", int64_t{1}}});
  y = l.b.node("MaxPool", {y}, {{"kernel_shape", Sizes{2, 2}}, {"strides", Sizes{2, 2}}});
  y = l.relu(l.conv(y, 15, 3, 1, 1, 15));
  y = l.b.node("Add", {y, y});
  return l.finish(l.b.node("Sigmoid", {l.conv(y, 4, 1)}));
}

inline std::vector<Array> normal_inputs(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<Array> arrays;
  for (ValueId id : graph.inputs)
    arrays.push_back(normal_array(rng, graph.values[static_cast<size_t>(id)].type.shape));
  return arrays;
}

/// Every value of a run, node by node in the interpreter.
inline std::vector<Array> run_all(const Graph& graph, const std::vector<Array>& inputs) {
  std::vector<Array> known(graph.values.size());
  for (size_t v = 0; v < known.size(); ++v)
    if (graph.values[v].constant) known[v] = *graph.values[v].constant;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    known[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (const Node& node : graph.nodes) {
    std::vector<Array> arrays;
    for (ValueId id : node.inputs)
      arrays.push_back(id < 0 ? Array() : known[static_cast<size_t>(id)]);
    const auto results = interp_evaluate(op_call(graph, node), arrays);
    if (!results) {
      ADD_FAILURE() << node.name << ": " << to_string(results.error());
      return known;
    }
    for (size_t i = 0; i < results->size(); ++i)
      known[static_cast<size_t>(node.outputs[i])] = (*results)[i];
  }
  return known;
}

inline Ranges calibrate(const Graph& prepared, int samples = 3) {
  Ranges ranges;
  for (int s = 0; s < samples; ++s) {
    const auto values = run_all(prepared, normal_inputs(prepared, 100 + static_cast<uint64_t>(s)));
    for (size_t v = 0; v < values.size(); ++v)
      if (!prepared.values[v].constant) accumulate(ranges, static_cast<ValueId>(v), values[v]);
  }
  return ranges;
}

/// Made-up ranges, for tests that run nothing.
inline Ranges made_up_ranges(const Graph& graph) {
  Ranges ranges;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].constant || graph.values[v].type.dtype != DType::F32) continue;
    Shape shape = graph.values[v].type.shape;
    for (size_t i = 2; i < shape.size(); ++i) shape[i] = 1;
    Array sample(DType::F32, shape);
    for (int64_t i = 0; i < sample.size(); ++i)
      sample.set(i, static_cast<double>(i * 37 % 101 - 30) / 20);
    accumulate(ranges, static_cast<ValueId>(v), sample);
  }
  return ranges;
}

/// A target of binary points that computes everything itself.
inline IntegerAbilities fixed_point_target() { return {true, true, true, true, Averages::Pool}; }

inline Graph prepared(const Graph& graph, const IntegerAbilities& target = {}) {
  PassContext context;
  auto result = prepare_quantize(graph, context, target);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  const Status sound = verify(*result);
  EXPECT_TRUE(sound.has_value()) << to_string(sound.error());
  return *result;
}

inline QuantizedGraph quantized(const Graph& graph, const QuantizeOptions& options = {}) {
  const Graph p = prepared(graph, options.target);
  auto result = quantize(p, calibrate(p), options);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  const Status sound = verify(result->graph);
  EXPECT_TRUE(sound.has_value()) << to_string(sound.error());
  return *result;
}

inline std::map<std::string, int> count_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op];
  return counts;
}

/// Signal to noise of `got` against `want`; units: dB.
inline double snr(const Array& want, const Array& got) {
  double signal = 0, noise = 1e-30;
  for (int64_t i = 0; i < want.size(); ++i) {
    signal += want.get(i) * want.get(i);
    noise += (got.get(i) - want.get(i)) * (got.get(i) - want.get(i));
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace tilewright::graph
