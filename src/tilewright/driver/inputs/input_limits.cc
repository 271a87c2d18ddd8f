#include "tilewright/driver/inputs/input_limits.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tilewright/tensor/value_limits.h"

namespace tilewright::driver {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

const Shape& shape_of(const Graph& graph, const Node& node, size_t input) {
  return graph.values[static_cast<size_t>(node.inputs[input])].type.shape;
}

DType dtype_of(const Graph& graph, const Node& node, size_t input) {
  return graph.values[static_cast<size_t>(node.inputs[input])].type.dtype;
}

/// From one to `most`, where there is one.
InputLimits one_to(int64_t most) { return {std::min<int64_t>(1, most), most}; }

/// Positions below `extent`.
InputLimits below(int64_t extent) { return {0, std::max<int64_t>(extent - 1, 0)}; }

int64_t extent_at(const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? shape[static_cast<size_t>(axis)] : 1;
}

/// What compiled code checks, narrowed: indices do not count from the end, sequences have a step.
InputLimits checked_limits(const tensor::ValueLimits& checked) {
  const int64_t most = *std::min_element(checked.most.begin(), checked.most.end());
  return checked.what == "length" ? one_to(most) : below(most + 1);
}

bool divides(const std::string& op) { return op == "Div" || op == "Mod"; }

/// What operand `input` of `node` may be; nothing if the operator takes any number.
std::optional<InputLimits> operand_limits(const Graph& graph, const Node& node, size_t input,
                                          const std::vector<tensor::ValueLimits>& checked) {
  const std::string& op = node.op;
  const auto shape = [&](size_t i) -> const Shape& { return shape_of(graph, node, i); };
  const auto axis = [&](int64_t fallback) { return node.attrs.get_int("axis", fallback); };
  // Of the positions in what a pool has read, the first: as many as there are.
  if (input == 1 && op == "MaxUnpool") return below(element_count(shape(0)));
  for (const tensor::ValueLimits& limits : checked)
    if (limits.input == input) return checked_limits(limits);
  if (input == 1 && op == "TopK") return one_to(extent_at(shape(0), axis(-1)));
  if (input == 2 && op == "NonMaxSuppression") return one_to(extent_at(shape(0), 1));
  if (input == 1 && op == "Trilu")
    return InputLimits{-extent_at(shape(0), -2), extent_at(shape(0), -1)};
  if (input == 1 && (op == "CumSum" || op == "CumProd"))
    return below(static_cast<int64_t>(shape(0).size()));
  if (is_float(dtype_of(graph, node, input))) return std::nullopt;
  if (input == 1 && divides(op)) return InputLimits{1, 9};
  if (input == 1 && op == "Pow") return InputLimits{0, 3};
  if (input == 1 && op == "BitShift")
    return below(std::min<int64_t>(10, 8 * storage_bytes(dtype_of(graph, node, 1), 1)));
  return std::nullopt;
}

/// Operators that hand on the values of their first operand, or of all (Concat, Where).
const std::set<std::string> kHandsOnFirst = {
    "Cast",     "Identity", "Reshape",  "Squeeze", "Unsqueeze",       "Flatten",   "Transpose",
    "Slice",    "Split",    "Expand",   "Tile",    "Gather",          "GatherND",  "GatherElements",
    "Compress", "CastLike", "Upsample", "Dropout", "ReverseSequence", "CheckRange"};
const std::set<std::string> kHandsOnAll = {"Concat", "Where",     "Max",
                                           "Min",    "ScatterND", "ScatterElements"};

bool hands_on(const Node& node, size_t input) {
  if (kHandsOnAll.contains(node.op)) {
    if (node.op == "Where") return input > 0;
    return !node.op.starts_with("Scatter") || input != 1;
  }
  return input == 0 && kHandsOnFirst.contains(node.op);
}

/// The number that `id` holds everywhere, if it is known.
std::optional<int64_t> known_number(const Graph& graph, ValueId id) {
  const auto& constant = graph.values[static_cast<size_t>(id)].constant;
  if (!constant || constant->size() == 0 || is_float(constant->dtype())) return std::nullopt;
  for (int64_t i = 1; i < constant->size(); ++i)
    if (constant->get_int(i) != constant->get_int(0)) return std::nullopt;
  return constant->get_int(0);
}

/// Limits of an operand whose result has the limits `result`.
std::optional<InputLimits> before(const Graph& graph, const Node& node, size_t input,
                                  const InputLimits& result) {
  if (hands_on(node, input)) return result;
  if ((node.op != "Add" && node.op != "Sub") || (node.op == "Sub" && input == 1))
    return std::nullopt;
  const std::optional<int64_t> number = known_number(graph, node.inputs[1 - input]);
  if (!number) return std::nullopt;
  const int64_t shift = node.op == "Add" ? -*number : *number;
  return InputLimits{result.low + shift, result.high + shift};
}

void narrow(std::optional<InputLimits>& limits, const InputLimits& also) {
  if (!limits) {
    limits = also;
    return;
  }
  const InputLimits both{std::max(limits->low, also.low), std::min(limits->high, also.high)};
  if (both.low <= both.high) limits = both;
}

}  // namespace

std::map<std::string, InputLimits> input_limits(const Graph& graph) {
  std::vector<std::optional<InputLimits>> limits(graph.values.size());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    std::optional<InputLimits> results;
    for (const ValueId id : node->outputs)
      if (id >= 0 && limits[static_cast<size_t>(id)])
        narrow(results, *limits[static_cast<size_t>(id)]);
    const auto checked = tensor::value_limits(graph::op_call(graph, *node));
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i] < 0) continue;
      auto& operand = limits[static_cast<size_t>(node->inputs[i])];
      if (const auto own = operand_limits(graph, *node, i, checked)) narrow(operand, *own);
      if (!results) continue;
      if (const auto handed = before(graph, *node, i, *results)) narrow(operand, *handed);
    }
  }
  std::map<std::string, InputLimits> named;
  for (const ValueId id : graph.inputs)
    if (limits[static_cast<size_t>(id)])
      named[graph.values[static_cast<size_t>(id)].name] = *limits[static_cast<size_t>(id)];
  return named;
}

}  // namespace tilewright::driver
