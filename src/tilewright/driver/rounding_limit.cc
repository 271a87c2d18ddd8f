#include "tilewright/driver/rounding_limit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace tilewright::driver {
namespace {

constexpr double kRelative = 1e-2;

/// Operators whose results are no further apart than their operands.
const std::set<std::string> kKeepsDistance = {
    "Clip",    "Concat",  "Expand",    "Flatten",   "Gather",    "Identity",
    "MaxPool", "Pad",     "ReduceMax", "Relu",      "Reshape",   "Slice",
    "Split",   "Squeeze", "Tile",      "Transpose", "Unsqueeze", "Upsample"};

/// The largest of the scales a DequantizeLinear knows; 0 if they are computed.
double scale_of(const graph::Graph& graph, const graph::Node& node) {
  const auto& scale = graph.values[static_cast<size_t>(node.inputs[1])].constant;
  double largest = 0;
  for (int64_t i = 0; scale && i < scale->size(); ++i)
    largest = std::max(largest, std::abs(scale->get(i)));
  return largest;
}

RoundingLimit limit_of(const graph::Graph& graph, const graph::Node& node,
                       const RoundingLimit& operands) {
  if (node.op == "QuantizeLinear" || node.op == "DynamicQuantizeLinear") return {kRoundingSteps, 0};
  if (operands.absolute == 0 && operands.relative == 0) return {};
  if (kKeepsDistance.contains(node.op)) return operands;
  if (node.op == "DequantizeLinear")
    if (const double scale = scale_of(graph, node); scale > 0)
      return {operands.absolute * scale, operands.relative};
  return {
      is_float(graph.values[static_cast<size_t>(node.outputs[0])].type.dtype) ? 0 : kRoundingSteps,
      kRelative};
}

}  // namespace

std::vector<RoundingLimit> rounding_limits(const graph::Graph& graph) {
  std::vector<RoundingLimit> limits(graph.values.size());
  for (const graph::Node& node : graph.nodes) {
    RoundingLimit operands;
    for (const graph::ValueId id : node.inputs) {
      if (id < 0) continue;
      const RoundingLimit& in = limits[static_cast<size_t>(id)];
      operands.absolute = std::max(operands.absolute, in.absolute);
      operands.relative = std::max(operands.relative, in.relative);
    }
    for (const graph::ValueId id : node.outputs)
      if (id >= 0) limits[static_cast<size_t>(id)] = limit_of(graph, node, operands);
  }
  return limits;
}

tune::Difference within(tune::Difference difference, const RoundingLimit& limit) {
  const double reference = difference.reference > 0 ? difference.reference : 1;
  // A step is as long as its scale up to the rounding of a float.
  difference.limit += limit.relative + limit.absolute * (1 + 1e-6) / reference;
  return difference;
}

}  // namespace tilewright::driver
