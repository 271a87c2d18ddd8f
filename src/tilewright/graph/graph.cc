#include "tilewright/graph/graph.h"

#include "tilewright/base/check.h"

namespace tilewright::graph {

ValueId Graph::add_value(std::string value_name, tensor::TensorType type,
                         std::optional<Array> constant) {
  values.push_back({std::move(value_name), std::move(type), std::move(constant)});
  return static_cast<ValueId>(values.size()) - 1;
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
