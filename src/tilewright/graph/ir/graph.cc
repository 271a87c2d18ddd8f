#include "tilewright/graph/ir/graph.h"

#include <fmt/format.h>

#include <cstring>

#include "tilewright/base/check.h"
#include "tilewright/graph/ir/borders.h"
#include "tilewright/graph/ir/known.h"

namespace tilewright::graph {

const Array& array_of(const Value& value) {
  TW_CHECK(value.constant.has_value(), "'{}', {}, is used as a constant", value.name,
           to_string(value.type));
  return *value.constant;
}

void copy_element(Array& to, int64_t i, const Array& from, int64_t k) {
  TW_CHECK(from.dtype() == to.dtype(), "{} -> {}", name(from.dtype()), name(to.dtype()));
  const auto bytes = static_cast<size_t>(bit_width(to.dtype()) / 8);
  std::memcpy(static_cast<char*>(to.data()) + static_cast<size_t>(i) * bytes,
              static_cast<const char*>(from.data()) + static_cast<size_t>(k) * bytes, bytes);
}

ValueId Graph::add_value(std::string value_name, tensor::TensorType type,
                         std::optional<Array> constant) {
  values.push_back({std::move(value_name), std::move(type), std::move(constant)});
  return static_cast<ValueId>(values.size()) - 1;
}

/// Whether `after` is `before`, or says how many there are along the axis of which only a bound was
/// known.
static bool same_or_known(const tensor::TensorType& before, const tensor::TensorType& after) {
  if (after.dynamic_axis >= 0 || before.dynamic_axis < 0)
    return to_string(before) == to_string(after);
  tensor::TensorType known = before;
  const auto axis = static_cast<size_t>(before.dynamic_axis);
  known.dynamic_axis = -1;
  if (axis >= after.shape.size() || after.shape[axis] > before.shape[axis]) return false;
  known.shape[axis] = after.shape[axis];
  return to_string(known) == to_string(after);
}

std::string border_difference(const Graph& before, const Graph& after) {
  for (const bool in : {true, false}) {
    const std::vector<ValueId>& old = in ? before.inputs : before.outputs;
    const std::vector<ValueId>& now = in ? after.inputs : after.outputs;
    const char* side = in ? "input" : "output";
    if (old.size() != now.size())
      return fmt::format("{} {}s instead of {}", now.size(), side, old.size());
    for (size_t i = 0; i < old.size(); ++i) {
      const Value& a = before.values[static_cast<size_t>(old[i])];
      const Value& b = after.values[static_cast<size_t>(now[i])];
      const bool same = in ? to_string(a.type) == to_string(b.type) : same_or_known(a.type, b.type);
      if (a.name != b.name || !same)
        return fmt::format("{} {} is '{}', {}, instead of '{}', {}", side, i, b.name,
                           to_string(b.type), a.name, to_string(a.type));
    }
  }
  return {};
}

tensor::OpCall op_call(const Graph& graph, const Node& node) {
  tensor::OpCall call;
  call.domain = node.domain;
  call.op = node.op;
  call.attrs = node.attrs;
  call.num_outputs = static_cast<int>(node.outputs.size());
  for (ValueId id : node.inputs) {
    tensor::InputInfo info;
    info.present = id >= 0;
    if (info.present) {
      const Value& value = graph.values[static_cast<size_t>(id)];
      info.dtype = value.type.dtype;
      info.shape = value.type.shape;
      info.value = value.constant;
    }
    call.inputs.push_back(std::move(info));
  }
  return call;
}

std::optional<int64_t> checked_bytes(DType dtype, const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count) || count > kMaxBytes) {
      return std::nullopt;
    }
  }
  if (empty) return 0;
  const int64_t bytes = storage_bytes(dtype, count);
  if (bytes > kMaxBytes) return std::nullopt;
  return bytes;
}

}  // namespace tilewright::graph
