// Operators the runtime executes on host arrays: loops express them badly, or their result's size
// depends on data. Here are only their shape rules; runtime/host_ops.h has the functions.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/ops/dynamic.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/value_limits.h"

namespace tilewright::tensor {
namespace {

/// The outputs asked for; at least the first.
std::vector<TensorType> asked(const OpCall& call, std::vector<TensorType> all) {
  const auto count = static_cast<size_t>(std::max(call.num_outputs, 1));
  if (count < all.size()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  return all;
}

Inferred infer_top_k(const OpCall& call) {
  const InputInfo& x = call.inputs[0];
  const std::vector<int64_t> k = int_values(call, 1);
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", -1), x.shape.size())));
  if (k.size() != 1 || k[0] < 0 || k[0] > x.shape[axis])
    return invalid(call, fmt::format("K is {}", to_string(k)),
                   fmt::format("axis {} has {}", axis, counted(x.shape[axis], "element")));
  Shape shape = x.shape;
  shape[axis] = k[0];
  return asked(call, {{x.dtype, shape}, {DType::I64, shape}});
}

Inferred infer_non_max_suppression(const OpCall& call) {
  const Shape& boxes = call.inputs[0].shape;
  const Shape& scores = call.inputs[1].shape;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    return invalid(call, "boxes and scores do not fit",
                   fmt::format("boxes {}, scores {}; expected [batch, boxes, 4] and [batch, "
                               "classes, boxes]",
                               to_string(boxes), to_string(scores)));
  TW_TRY_STATUS(require_float(call, 0));
  TW_TRY_STATUS(require_float(call, 1));
  const int64_t format = call.attrs.get_int("center_point_box", 0);
  if (format != 0 && format != 1)
    return invalid(call, fmt::format("center_point_box is {}", format));
  int64_t per_class = boxes[1];
  if (const InputInfo* most = call.input(2); !most) {
    per_class = 0;
  } else if (most->value) {
    if (most->value->size() != 1)
      return invalid(call, "max_output_boxes_per_class must be one number",
                     "its shape is " + to_string(most->shape));
    per_class = std::clamp<int64_t>(most->value->get_int(0), 0, boxes[1]);
  }
  const int64_t bound = scores[0] * scores[1] * per_class;
  return std::vector<TensorType>{{DType::I64, {bound, 3}, 0}};
}

Inferred infer_non_zero(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto rows = static_cast<int64_t>(std::max<size_t>(shape.size(), 1));
  return std::vector<TensorType>{{DType::I64, {rows, element_count(shape)}, 1}};
}

Inferred infer_unique(const OpCall& call) {
  const InputInfo& x = call.inputs[0];
  Shape shape{element_count(x.shape)};
  int64_t axis = 0;
  if (call.attrs.has("axis")) {
    axis = TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), x.shape.size()));
    shape = x.shape;
  }
  const Shape most{shape[static_cast<size_t>(axis)]};
  return asked(call, {{x.dtype, shape, static_cast<int>(axis)},
                      {DType::I64, most, 0},
                      {DType::I64, most, -1},
                      {DType::I64, most, 0}});
}

Inferred infer_compress(const OpCall& call) {
  const InputInfo &x = call.inputs[0], &condition = call.inputs[1];
  TW_TRY_STATUS(require_rank(call, 1, 1));
  if (condition.dtype != DType::Bool)
    return invalid(call, fmt::format("the condition is {}, not bool", name(condition.dtype)));
  Shape shape{element_count(x.shape)};
  int64_t axis = 0;
  if (call.attrs.has("axis")) {
    axis = TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), x.shape.size()));
    shape = x.shape;
  }
  int64_t& extent = shape[static_cast<size_t>(axis)];  // what a condition is too long for is unread
  extent = std::min(extent, condition.shape[0]);
  return std::vector<TensorType>{{x.dtype, shape, static_cast<int>(axis)}};
}

Status check_reduction(const OpCall& call) {
  TW_TRY_STATUS(require_int(call, 1));
  if (call.inputs[2].dtype != call.inputs[0].dtype)
    return invalid(
        call, "data and updates differ in type",
        fmt::format("{} and {}", name(call.inputs[0].dtype), name(call.inputs[2].dtype)));
  const std::string reduction = call.attrs.get_string("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (reduction == known) return {};
  return invalid(call, fmt::format("reduction is '{}'", reduction),
                 "expected none, add, mul, max or min");
}

Inferred infer_scatter_elements(const OpCall& call) {
  TW_TRY_STATUS(check_reduction(call));
  const Shape &data = call.inputs[0].shape, &indices = call.inputs[1].shape;
  const auto axis =
      static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 0), data.size())));
  TW_TRY_STATUS(require_shape(call, 2, indices));
  bool fits = indices.size() == data.size();
  for (size_t i = 0; fits && i < data.size(); ++i) fits = i == axis || indices[i] <= data[i];
  if (!fits)
    return invalid(
        call, "the indices do not fit the data",
        fmt::format("data {}, indices {}, axis {}", to_string(data), to_string(indices), axis));
  TW_TRY_STATUS(require_indices(call, 1, data[axis]));
  return std::vector<TensorType>{{call.inputs[0].dtype, data}};
}

Inferred infer_scatter_nd(const OpCall& call) {
  TW_TRY_STATUS(check_reduction(call));
  const Shape &data = call.inputs[0].shape, &indices = call.inputs[1].shape;
  if (indices.empty() || indices.back() < 0 || indices.back() > static_cast<int64_t>(data.size()))
    return invalid(call, "the index tuples do not fit the data",
                   fmt::format("data {}, indices {}", to_string(data), to_string(indices)));
  Shape updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), data.begin() + indices.back(), data.end());
  TW_TRY_STATUS(require_shape(call, 2, updates));
  return std::vector<TensorType>{{call.inputs[0].dtype, data}};
}

}  // namespace

void add_host_ops(std::vector<OpDef>& table) {
  struct Row {
    const char* name;
    int min_inputs, max_inputs;
    InferFn infer;
    std::vector<int> constant_inputs;
    const char* host;
  };
  const Row rows[] = {
      {"TopK", 2, 2, infer_top_k, {1}, "TopK"},
      {"NonMaxSuppression", 2, 5, infer_non_max_suppression, {}, "NonMaxSuppression"},
      {"NonZero", 1, 1, infer_non_zero, {}, "NonZero"},
      {"Unique", 1, 1, infer_unique, {}, "Unique"},
      {"Compress", 2, 2, infer_compress, {}, "Compress"},
      {"Scatter", 3, 3, infer_scatter_elements, {}, "ScatterElements"},
      {"ScatterElements", 3, 3, infer_scatter_elements, {}, "ScatterElements"},
      {"ScatterND", 3, 3, infer_scatter_nd, {}, "ScatterND"}};
  for (const Row& row : rows) {
    OpDef def = movement_row(row.name, row.min_inputs, row.max_inputs, row.infer, nullptr,
                             row.constant_inputs);
    def.fusion = Fusion::Opaque;
    def.host = row.host;
    table.push_back(std::move(def));
  }
  add_check_op(table);
  add_dynamic_ops(table);
}

}  // namespace tilewright::tensor
