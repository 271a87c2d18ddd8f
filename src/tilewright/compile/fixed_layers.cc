#include "tilewright/compile/fixed_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"

namespace tilewright::compile {

using graph::Node;
using graph::ValueId;

bool is_sum(const Node& node) {
  return node.op == "ConvInteger" || node.op == "ConvTransposeInteger";
}

std::vector<int> layer_nodes(const graph::Graph& graph, int node) {
  const Node& v = graph.nodes[static_cast<size_t>(node)];
  if (v.op != "RequantizeFixed") return {node};
  const int p = producers(graph)[static_cast<size_t>(v.inputs[0])];
  return p < 0 ? std::vector<int>{node} : std::vector<int>{p, node};
}

Result<FixedConv> fixed_conv(const graph::Graph& graph, int node, const std::set<int>& mine) {
  const auto value = [&](ValueId id) -> const graph::Value& {
    return graph.values[static_cast<size_t>(id)];
  };
  const auto known = [&](ValueId id) { return id >= 0 && value(id).constant.has_value(); };
  const auto unsupported = [](std::string what) {
    return fail(ErrorKind::Unsupported, std::move(what));
  };
  const Node& v = graph.nodes[static_cast<size_t>(node)];
  FixedConv conv;
  conv.sum = producers(graph)[static_cast<size_t>(v.inputs[0])];
  if (conv.sum < 0 || !mine.contains(conv.sum) ||
      !is_sum(graph.nodes[static_cast<size_t>(conv.sum)]))
    return unsupported("it does not end a convolution of this launch");
  const Node& sum = graph.nodes[static_cast<size_t>(conv.sum)];
  const ValueId total = sum.outputs[0];
  const auto users = consumers(graph)[static_cast<size_t>(total)];
  if (is_output(graph)[static_cast<size_t>(total)] || users.size() != 1)
    return unsupported("others read its sum too");
  if (sum.inputs.size() > 2) return unsupported("its operands have zero points");
  if (!known(sum.inputs[1]) || value(sum.inputs[1]).type.dtype != DType::I8)
    return unsupported("its weight is not known, or no 8-bit integers");
  const bool biased = v.inputs.size() > 1 && v.inputs[1] >= 0;
  if (biased && !known(v.inputs[1])) return unsupported("its bias is computed at run time");
  const auto weights = array_of(value(sum.inputs[1])).as<int8_t>();
  conv.weights.assign(weights.begin(), weights.end());
  conv.groups = sum.attrs.get_int("group", 1);
  const int64_t channels = value(v.outputs[0]).type.shape[1];
  conv.bias.assign(static_cast<size_t>(channels), 0);
  for (int64_t c = 0; biased && c < channels; ++c) {
    const Array& bias = array_of(value(v.inputs[1]));
    conv.bias[static_cast<size_t>(c)] =
        static_cast<int32_t>(bias.get_int(bias.size() == 1 ? 0 : c));
  }
  conv.shift = static_cast<int>(v.attrs.get_int("shift", 0));
  return conv;
}

std::vector<int> launches_of(const graph::Graph& graph, const std::vector<bool>& on_device) {
  const std::vector<int> producer = graph::producers(graph);
  std::vector<int> level(graph.nodes.size(), 0), launch(graph.nodes.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const graph::ValueId id : graph.nodes[n].inputs) {
      const int p = id < 0 ? -1 : producer[static_cast<size_t>(id)];
      if (p < 0) continue;
      const auto from = static_cast<size_t>(p);
      level[n] = std::max(level[n], level[from] + (on_device[from] && !on_device[n] ? 1 : 0));
    }
    if (on_device[n]) launch[n] = level[n];
  }
  return launch;
}

LayerChoice choose_layers(const graph::QuantizedGraph& quantized,
                          const std::function<Status(int)>& supports,
                          const std::function<std::string(int)>& left_out) {
  const graph::Graph& graph = quantized.graph;
  LayerChoice choice;
  choice.on_device.resize(graph.nodes.size());
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const std::string& name = graph.nodes[static_cast<size_t>(n)].name;
    if (std::string why = left_out(n); !why.empty()) {
      choice.left_out.emplace(name, std::move(why));
      continue;
    }
    const std::vector<int> parts = layer_nodes(graph, n);
    const Status can = supports(n);
    if (can) {
      for (const int part : parts) choice.on_device[static_cast<size_t>(part)] = true;
      continue;
    }
    Error reason = can.error();
    // Why it is in f32 says more than that there is no such layer.
    const auto f32 = quantized.f32_reasons.find(name);
    if (f32 != quantized.f32_reasons.end()) reason.what = f32->second, reason.why.clear();
    choice.reasons.emplace(name, std::move(reason));
    // The sum inside of a layer is nothing by itself: the reason is the layer's.
    for (const int part : parts)
      if (part != n)
        choice.reasons[graph.nodes[static_cast<size_t>(part)].name] =
            Error{can.error().kind, fmt::format("one layer with {}", name)};
  }
  return choice;
}

std::vector<graph::Placement> placements_of(const graph::Graph& graph,
                                            const std::vector<int>& launch,
                                            const LayerChoice& choice, const std::string& between) {
  std::vector<graph::Placement> places;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    graph::Placement place;
    place.node = static_cast<int>(n);
    place.name = node.name;
    place.op = node.op;
    place.where = launch[n] >= 0 ? graph::Where::Accelerator : graph::Where::Cpu;
    const auto reason = choice.reasons.find(node.name);
    const auto left_out = choice.left_out.find(node.name);
    if (left_out != choice.left_out.end()) {
      place.why = left_out->second;
      place.meant = true;
    } else if (launch[n] < 0 && reason != choice.reasons.end()) {
      place.why = reason->second.what;
      if (!reason->second.why.empty()) place.why += ": " + reason->second.why;
      place.kind = reason->second.kind;
    } else if (launch[n] < 0) {
      place.why = between;
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace tilewright::compile
