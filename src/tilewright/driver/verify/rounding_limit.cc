#include "tilewright/driver/verify/rounding_limit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace tilewright::driver {
namespace {

using graph::ValueId;

constexpr double kRelative = 1e-2;

/// Operators whose results are no further apart than their operands.
const std::set<std::string> kKeepsDistance = {
    "Clip",    "Concat",  "Expand",    "Flatten",   "Gather",    "Identity",
    "MaxPool", "Pad",     "ReduceMax", "Relu",      "Reshape",   "Slice",
    "Split",   "Squeeze", "Tile",      "Transpose", "Unsqueeze", "Upsample"};

/// Operators with products that matrix instructions may compute.
const std::set<std::string> kProducts = {"Attention", "Conv", "ConvTranspose", "GRU",
                                         "Gemm",      "LSTM", "MatMul",        "RNN"};

/// The largest of the scales a DequantizeLinear knows; 0 if they are computed.
double scale_of(const graph::Graph& graph, const graph::Node& node) {
  const auto& scale = graph.values[static_cast<size_t>(node.inputs[1])].constant;
  double largest = 0;
  for (int64_t i = 0; scale && i < scale->size(); ++i)
    largest = std::max(largest, std::abs(scale->get(i)));
  return largest;
}

/// Of output `output` of `node`. A computed scale is a float like others.
RoundingLimit limit_of(const graph::Graph& graph, const graph::Node& node, size_t output,
                       const RoundingLimit& operands) {
  const bool computed_scale = node.op == "DynamicQuantizeLinear" && output == 1;
  if (node.op == "QuantizeLinear" || (node.op == "DynamicQuantizeLinear" && !computed_scale))
    return {kRoundingSteps, 0};
  if (operands.absolute == 0 && operands.relative == 0) return {};
  if (kKeepsDistance.contains(node.op)) return operands;
  if (node.op == "DequantizeLinear")
    if (const double scale = scale_of(graph, node); scale > 0)
      return {operands.absolute * scale, operands.relative};
  const DType dtype = graph.values[static_cast<size_t>(node.outputs[output])].type.dtype;
  return {is_float(dtype) ? 0 : kRoundingSteps, kRelative};
}

/// The error allowed for what `node` computes in its own type of floats; operators with a type for
/// their sums (LayerNormalization) use that.
double own_limit(const graph::Graph& graph, const graph::Node& node, ValueId output, bool tf32) {
  const DType dtype = graph.values[static_cast<size_t>(output)].type.dtype;
  if (!is_float(dtype)) return 0;
  const bool stashes = node.op == "LayerNormalization" || node.op == "RMSNormalization";
  const bool in_f32 = stashes && node.attrs.get_int("stash_type", 1) == 1;
  const bool in_tf32 = tf32 && dtype == DType::F32 && kProducts.contains(node.op);
  return std::max({measure::error_limit(dtype, MathMode::Fast),
                   in_f32 ? measure::error_limit(DType::F32, MathMode::Fast) : 0,
                   in_tf32 ? measure::error_limit(DType::F16, MathMode::Fast) : 0});
}

/// Widens the limits of floats computed from floats of fewer bits.
void add_narrow_types(const graph::Graph& graph, bool tf32, std::vector<RoundingLimit>& limits) {
  std::vector<double> narrow(graph.values.size(), 0);
  for (const graph::Node& node : graph.nodes) {
    double operands = 0;
    for (const ValueId id : node.inputs)
      if (id >= 0) operands = std::max(operands, narrow[static_cast<size_t>(id)]);
    for (const ValueId id : node.outputs) {
      if (id < 0) continue;
      const DType dtype = graph.values[static_cast<size_t>(id)].type.dtype;
      if (!is_float(dtype)) continue;
      double& mine = narrow[static_cast<size_t>(id)];
      mine = std::max(operands, own_limit(graph, node, id, tf32));
      double& relative = limits[static_cast<size_t>(id)].relative;
      if (mine > measure::error_limit(dtype, MathMode::Fast)) relative = std::max(relative, mine);
    }
  }
}

/// Whether f32 may lose a bit that decides between two results. `computed`: values of nodes.
bool may_round(const graph::Node& node, const std::vector<bool>& computed) {
  // What floats were before depends on the order of their sums.
  if (node.op == "QuantizeLinear") return computed[static_cast<size_t>(node.inputs[0])];
  // A sum becomes a result of 8 bits by `shift`; times 26/256, with a sixteenth of a unit added to
  // keep off ties, up to six bits of shift fit, and two more stay away from any tie.
  constexpr int64_t kExactLeakyShift = 8;
  if (node.op == "RequantizeFixed" && node.attrs.get_int("leaky", 0) != 0)
    return node.attrs.get_int("shift", 0) > kExactLeakyShift;
  if (node.op != "AveragePoolFixed") return false;
  // 8 bits, and half a unit.
  constexpr int64_t kExactFactors = int64_t{1} << (24 - 8);
  const auto kernel = node.attrs.get_ints("kernel_shape");
  return kernel[0] * kernel[1] * node.attrs.get_int("factor", 0) >= kExactFactors;
}

}  // namespace

std::vector<RoundingLimit> rounding_limits(const graph::Graph& graph, bool tf32) {
  std::vector<RoundingLimit> limits(graph.values.size());
  for (const graph::Node& node : graph.nodes) {
    RoundingLimit operands;
    for (const graph::ValueId id : node.inputs) {
      if (id < 0) continue;
      const RoundingLimit& in = limits[static_cast<size_t>(id)];
      operands.absolute = std::max(operands.absolute, in.absolute);
      operands.relative = std::max(operands.relative, in.relative);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k)
      if (const graph::ValueId id = node.outputs[k]; id >= 0)
        limits[static_cast<size_t>(id)] = limit_of(graph, node, k, operands);
  }
  add_narrow_types(graph, tf32, limits);
  return limits;
}

std::vector<RoundingLimit> layer_limits(const graph::Graph& integer) {
  std::vector<RoundingLimit> limits(integer.values.size());
  std::vector<bool> computed(integer.values.size(), false);
  for (const graph::Node& node : integer.nodes) {
    if (may_round(node, computed)) limits[static_cast<size_t>(node.outputs[0])].absolute = 1;
    for (const ValueId id : node.outputs)
      if (id >= 0) computed[static_cast<size_t>(id)] = node.op != "DequantizeLinear";
  }
  return limits;
}

measure::Difference within(measure::Difference difference, const RoundingLimit& limit) {
  const double reference = difference.reference > 0 ? difference.reference : 1;
  // A step is as long as its scale up to the rounding of a float.
  difference.limit += limit.relative + limit.absolute * (1 + 1e-6) / reference;
  return difference;
}

}  // namespace tilewright::driver
