// Comparing layers of the DPU with the integer graph they come from, value by value. The graph is
// computed by this processor's compiled code.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/compile/dpu/network.h"
#include "tilewright/compile/fixed_layers.h"
#include "tilewright/compile/quantize_model.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::compile::dpu_testing {

using graph::Graph;
using graph::Layers;
using graph::Node;
using graph::QuantizedGraph;
using graph::Sizes;
using graph::ValueId;

inline const graph::Value& value_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

/// The integer graph that the DPU gets of an f32 graph.
inline QuantizedGraph dpu_integers(const Graph& graph) {
  const graph::IntegerAbilities can = dpu_abilities(dpu::Config{});
  const Graph prepared = graph::prepared(graph, can);
  Samples samples;
  for (uint64_t seed = 1; seed < 3; ++seed) {
    const auto arrays = graph::normal_inputs(prepared, seed);
    auto& sample = samples.emplace_back();
    for (size_t i = 0; i < arrays.size(); ++i)
      sample[value_of(prepared, prepared.inputs[i]).name] = arrays[i];
  }
  const auto ranges = observe(prepared, samples, CompileOptions{});
  EXPECT_TRUE(ranges) << to_string(ranges.error());
  graph::QuantizeOptions options;
  options.target = can;
  auto made = graph::quantize(prepared, *ranges, options);
  EXPECT_TRUE(made) << to_string(made.error());
  return *made;
}

inline bool is_bytes(const Graph& graph, ValueId id) {
  return id >= 0 && value_of(graph, id).type.dtype == DType::I8 && !value_of(graph, id).constant;
}

/// Every value of 8-bit integers, by this processor.
inline std::map<ValueId, Array> computed(const Graph& graph, const std::vector<Array>& inputs) {
  Graph watched = graph;
  std::set<ValueId> ids(graph.outputs.begin(), graph.outputs.end());
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs)
      if (is_bytes(graph, id) && ids.insert(id).second) watched.outputs.push_back(id);
  const auto model = compile_graph(watched, CompileOptions{});
  EXPECT_TRUE(model) << to_string(model.error());
  const auto session = open_session(*model, {});
  EXPECT_TRUE(session);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE((*session)->set_input(value_of(graph, graph.inputs[i]).name, inputs[i]));
  EXPECT_TRUE((*session)->run());
  std::map<ValueId, Array> values;
  for (const ValueId id : ids) values[id] = *(*session)->get_output(value_of(graph, id).name);
  return values;
}

inline std::vector<int8_t> image_of(const Array& batch, int64_t n) {
  const auto all = batch.as<int8_t>();
  const auto size = static_cast<std::ptrdiff_t>(batch.size() / batch.shape()[0]);
  return {all.begin() + n * size, all.begin() + (n + 1) * size};
}

/// Nodes that are layers of the DPU, with their sums; nodes in integers that are none, with why.
struct Choice {
  std::vector<int> nodes;
  std::vector<std::string> left;
};
inline Choice choose(const QuantizedGraph& q) {
  std::set<int> nodes;
  Choice choice;
  const FixPoints points = fix_points(q);
  for (size_t n = 0; n < q.graph.nodes.size(); ++n) {
    const Node& node = q.graph.nodes[n];
    if (!is_bytes(q.graph, node.outputs[0]) || node.op == "QuantizeLinear") continue;
    const int id = static_cast<int>(n);
    if (const Status status = supports_layer(dpu::Config{}, q.graph, id, points)) {
      for (const int each : layer_nodes(q.graph, id)) nodes.insert(each);
    } else {
      choice.left.push_back(fmt::format("{}: {}", node.op, to_string(status.error())));
    }
  }
  choice.nodes.assign(nodes.begin(), nodes.end());
  return choice;
}

/// How many layers were compared.
inline size_t expect_layers_equal(const Graph& graph, const std::vector<std::string>& left = {}) {
  const QuantizedGraph q = dpu_integers(graph);
  const Choice choice = choose(q);
  EXPECT_EQ(choice.left.size(), left.size()) << fmt::format("{}", fmt::join(choice.left, "\n"));
  for (size_t i = 0; i < std::min(left.size(), choice.left.size()); ++i)
    EXPECT_THAT(choice.left[i], ::testing::HasSubstr(left[i]));
  const auto made = dpu_network(q.graph, choice.nodes, fix_points(q));
  EXPECT_TRUE(made) << to_string(made.error());
  if (!made) return 0;
  const auto values = computed(q.graph, graph::normal_inputs(q.graph, 17));
  const auto origin = [&](dpu::ValueId v) { return made->origin[static_cast<size_t>(v)]; };
  const int64_t batch = value_of(q.graph, q.graph.inputs[0]).type.shape[0];
  std::set<int8_t> seen;
  for (int64_t n = 0; n < batch; ++n) {
    std::map<dpu::ValueId, std::vector<int8_t>> images;
    for (const dpu::ValueId v : made->network.inputs) images[v] = image_of(values.at(origin(v)), n);
    const auto results = dpu::interpret(made->network, images);
    for (const dpu::Layer& layer : made->network.layers) {
      const auto want = image_of(values.at(origin(layer.output)), n);
      const auto& got = results.at(layer.output);
      EXPECT_TRUE(want == got) << layer.name << " image " << n;
      seen.insert(want.begin(), want.end());
    }
  }
  EXPECT_GT(seen.size(), 100u) << "hardly any values: the comparison says little";
  return made->network.layers.size();
}

/// Layers drawn at random: windows, groups, activations, sums, joins.
class RandomNet : public Layers {
 public:
  explicit RandomNet(uint64_t seed) : Layers(seed) {}
  Graph make() {
    ValueId x = input({2, rng.between(1, 9), rng.between(8, 14), rng.between(8, 14)});
    for (int i = 0; i < 7; ++i) x = next(x);
    return finish(conv(x, 5, 1));
  }

 private:
  const Shape& shape(ValueId x) { return b.type(x).shape; }
  ValueId activated(ValueId x) {
    switch (rng.between(0, 3)) {
      case 0:
        return relu(x);
      case 1:
        return b.node("LeakyRelu", {x}, {{"alpha", 0.1}});
      case 2:
        return b.node("Clip", {x, b.constant("lo", Array::scalar(DType::F32, 0)),
                               b.constant("hi", Array::scalar(DType::F32, 6))});
      default:
        return x;
    }
  }
  ValueId drawn_conv(ValueId x) {
    const Shape s = shape(x);
    const int64_t kernel = rng.between(1, 3), groups = s[1] % 2 == 0 && kernel > 1 ? 2 : 1;
    const int64_t stride = s[2] > 6 && s[3] > 6 ? rng.between(1, 2) : 1;
    return conv(x, groups * rng.between(2, 12), kernel, stride, kernel / 2, groups);
  }
  ValueId transposed(ValueId x) {
    const int64_t kernel = rng.between(2, 4), outs = rng.between(2, 7);
    const int64_t extra = kernel == 2 ? 0 : rng.between(0, 1);
    return b.node("ConvTranspose",
                  {x, weight({shape(x)[1], outs, kernel, kernel}, 0.3), weight({outs}, 0.2)},
                  {{"strides", Sizes{2, 2}},
                   {"pads", Sizes{1, 0, 1, 0}},
                   {"output_padding", Sizes{extra, extra}}});
  }
  ValueId pooled(ValueId x) {
    const bool average = rng.between(0, 1) == 1;
    std::map<std::string, tensor::AttrValue> attrs = {
        {"kernel_shape", Sizes{rng.between(2, 3), rng.between(2, 3)}},
        {"strides", Sizes{rng.between(1, 2), 1}},
        {"pads", Sizes{1, 0, 0, 1}}};
    if (average) attrs["count_include_pad"] = rng.between(0, 1);
    return b.node(average ? "AveragePool" : "MaxPool", {x},
                  graph::AttrList(attrs.begin(), attrs.end()));
  }
  ValueId upsampled(ValueId x) {
    Array scales(DType::F32, {4});
    for (int i = 0; i < 4; ++i) scales.set(i, i < 2 ? 1 : i);
    return b.node("Resize", {x, -1, b.constant("scales", scales)},
                  {{"mode", std::string("nearest")},
                   {"nearest_mode", std::string("floor")},
                   {"coordinate_transformation_mode", std::string("asymmetric")}});
  }
  ValueId next(ValueId x) {
    const bool small = shape(x)[2] * shape(x)[3] < 300;
    switch (rng.between(0, 6)) {
      case 0:
        return activated(b.node("Add", {x, conv(x, shape(x)[1], 3, 1, 1)}));
      case 1:
        return b.node("Concat", {activated(conv(x, rng.between(1, 5), 1)), x},
                      {{"axis", int64_t{1}}});
      case 2:
        return small ? activated(transposed(x)) : activated(drawn_conv(x));
      case 3:
        return pooled(x);
      case 4:
        return small ? upsampled(drawn_conv(x)) : activated(drawn_conv(x));
      default:
        return activated(drawn_conv(x));
    }
  }
};

/// A U-Net of two levels whose convolutions keep sizes.
inline Graph small_unet(int64_t batch) {
  Layers l(3);
  const auto twice = [&](ValueId x, int64_t channels) {
    return l.relu(l.conv(l.relu(l.conv(x, channels, 3, 1, 1)), channels, 3, 1, 1));
  };
  const auto up = [&](ValueId x, int64_t channels) {
    return l.b.node(
        "ConvTranspose",
        {x, l.weight({l.b.type(x).shape[1], channels, 2, 2}, 0.2), l.weight({channels}, 0.1)},
        {{"strides", Sizes{2, 2}}});
  };
  const auto pool = [&](ValueId x) {
    return l.b.node("MaxPool", {x}, {{"kernel_shape", Sizes{2, 2}}, {"strides", Sizes{2, 2}}});
  };
  const ValueId a = twice(l.input({batch, 1, 24, 16}), 8), c = twice(pool(a), 16);
  ValueId x = up(twice(pool(c), 24), 16);
  x = up(twice(l.b.node("Concat", {c, x}, {{"axis", int64_t{1}}}), 16), 8);
  x = twice(l.b.node("Concat", {a, x}, {{"axis", int64_t{1}}}), 8);
  return l.finish(l.conv(x, 2, 1));
}

}  // namespace tilewright::compile::dpu_testing
