#include "tilewright/graph/ir/fold.h"

#include <algorithm>
#include <set>

#include "tilewright/graph/ir/known.h"

namespace tilewright::graph {
namespace {

Array shape_slice(const tensor::OpCall& call, const Shape& type) {
  const Shape& shape = call.inputs[0].shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t begin = clamp(call.attrs.get_int("start", 0));
  Array out(DType::I64, type);
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, shape[static_cast<size_t>(begin + i)]);
  return out;
}

std::optional<Array> filled(const tensor::OpCall& call, const tensor::TensorType& type,
                            int64_t max_fill) {
  if (!checked_bytes(type.dtype, type.shape) || element_count(type.shape) > max_fill)
    return std::nullopt;
  Array out(type.dtype, type.shape);
  const auto found = call.attrs.values.find("value");
  if (found == call.attrs.values.end()) return out;
  const Array* value = std::get_if<Array>(&found->second);
  if (value == nullptr || value->size() != 1 || value->dtype() != type.dtype) return std::nullopt;
  for (int64_t i = 0; i < out.size(); ++i) copy_element(out, i, *value, 0);
  return out;
}

}  // namespace

bool is_view(const Node& node) {
  static const std::set<std::string> kViews = {"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                               "Identity"};
  return node.domain.empty() && kViews.contains(node.op);
}

std::optional<std::vector<Array>> fold_trivially(const tensor::OpCall& call,
                                                 const std::vector<tensor::TensorType>& types,
                                                 int64_t max_fill) {
  if (!call.domain.empty() || types.size() != 1) return std::nullopt;
  const tensor::TensorType& type = types[0];
  if (call.op == "Shape" && type.shape.size() == 1)
    return std::vector{shape_slice(call, type.shape)};
  if (call.op == "Size") {
    Array out(DType::I64, {});
    out.set_int(0, element_count(call.inputs[0].shape));
    return std::vector{out};
  }
  if (call.op == "ConstantOfShape") {
    if (auto out = filled(call, type, max_fill)) return std::vector{*out};
    return std::nullopt;
  }
  Node node;
  node.op = call.op;
  const tensor::InputInfo* input = call.input(0);
  if (!is_view(node) || input == nullptr || !input->value || input->dtype != type.dtype)
    return std::nullopt;
  return std::vector{input->value->reshaped(type.shape)};
}

std::optional<std::vector<Array>> known_inputs(const Graph& graph, const Node& node) {
  std::vector<Array> arrays;
  for (ValueId id : node.inputs) {
    if (id < 0) {
      arrays.emplace_back();
      continue;
    }
    const Value& value = graph.values[static_cast<size_t>(id)];
    if (!value.constant) return std::nullopt;
    arrays.push_back(*value.constant);
  }
  return arrays;
}

}  // namespace tilewright::graph
