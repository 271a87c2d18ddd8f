// Nodes whose inputs are all known become known values.
//
//   Reshape(w)         =>  the same bytes under another shape
//   PackConvWeight(w)  =>  the packed weight (pack.h)
//   Mul(a, b)          =>  what PassContext::evaluate gives
//
// A result that is large, and much larger than what it is made from, is left to the run.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/fold.h"
#include "tilewright/graph/passes/pack.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// Results up to this size are always stored; larger ones only if not much larger than the inputs.
constexpr int64_t kFreeBytes = 1 << 20;
/// Fills are stored up to this many elements: models without real weights use them for weights.
constexpr int64_t kMaxFill = 1 << 24;

int64_t bytes_of(const Graph& graph, const std::vector<ValueId>& ids) {
  int64_t bytes = 0;
  for (ValueId id : ids) {
    if (id < 0) continue;
    const tensor::TensorType& type = graph.values[static_cast<size_t>(id)].type;
    bytes += checked_bytes(type.dtype, type.shape).value_or(kMaxBytes);
  }
  return bytes;
}

}  // namespace

Result<Graph> fold_constants(const Graph& graph, PassContext& context) {
  Graph out = graph;
  int folded = 0;
  for (const Node& node : out.nodes) {
    const auto inputs = known_inputs(out, node);
    if (!inputs) continue;
    if (std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
          return out.values[static_cast<size_t>(id)].constant.has_value();
        }))
      continue;
    const tensor::OpCall call = op_call(out, node);
    std::vector<tensor::TensorType> types;
    for (ValueId id : node.outputs) types.push_back(out.values[static_cast<size_t>(id)].type);
    auto arrays = fold_trivially(call, types, kMaxFill);
    if (!arrays && types.size() == 1) {
      if (auto packed = pack_known(call, types[0])) arrays = std::vector{*std::move(packed)};
    }
    if (!arrays) {
      const int64_t from = bytes_of(out, node.inputs), to = bytes_of(out, node.outputs);
      if (!context.evaluate || (to > kFreeBytes && to > 2 * from)) continue;
      auto computed = context.evaluate(call, *inputs);
      if (!computed) {
        context.notes.push_back(fmt::format("'{}' stays: {}", node.name, computed.error().what));
        continue;
      }
      arrays = *std::move(computed);
    }
    for (size_t i = 0; i < node.outputs.size() && i < arrays->size(); ++i) {
      Value& value = out.values[static_cast<size_t>(node.outputs[i])];
      const Array& array = (*arrays)[i];
      const bool bounded = value.type.dynamic_axis >= 0;
      if (array.dtype() != value.type.dtype || (array.shape() != value.type.shape && !bounded))
        return fail(ErrorKind::Invalid,
                    fmt::format("{} '{}' gave {} instead of {}", node.op, node.name,
                                to_string(tensor::TensorType{array.dtype(), array.shape()}),
                                to_string(value.type)));
      value.type = {array.dtype(), array.shape(), -1};
      value.constant = array;
    }
    ++folded;
  }
  if (folded > 0) context.notes.push_back(fmt::format("{} nodes computed", folded));
  return compact(out);
}

}  // namespace tilewright::graph
