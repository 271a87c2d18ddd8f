// Operators whose values, or shapes, are known at compile time.
#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

/// The tensor a constant operator yields: a copy of a table.
std::vector<Tensor> define_from_table(const OpCall& call, const Array& values) {
  const Tensor source = const_table(call.op + ".values", values);
  return {compute(call.op, dims_of(values.shape()), [&](const Indices& at) { return source(at); })};
}

Array of_ints(const std::vector<int64_t>& values, Shape shape) {
  Array out(DType::I64, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) out.set_int(static_cast<int64_t>(i), values[i]);
  return out;
}

Result<Array> constant_value(const OpCall& call) {
  const auto& values = call.attrs.values;
  auto get = [&]<class T>(const char* key, T*) -> const T* {
    const auto it = values.find(key);
    return it == values.end() ? nullptr : std::get_if<T>(&it->second);
  };
  if (const auto* array = get("value", static_cast<Array*>(nullptr))) return *array;
  if (call.attrs.has("value_int")) return of_ints({call.attrs.get_int("value_int", 0)}, {});
  if (call.attrs.has("value_float"))
    return Array::scalar(DType::F32, call.attrs.get_float("value_float", 0));
  if (call.attrs.has("value_ints")) {
    const std::vector<int64_t> ints = call.attrs.get_ints("value_ints");
    return of_ints(ints, {static_cast<int64_t>(ints.size())});
  }
  if (call.attrs.has("value_floats"))
    return Array::of(DType::F32, call.attrs.get_floats("value_floats"));
  for (const char* key : {"value_string", "value_strings", "sparse_value"})
    if (call.attrs.has(key)) return unsupported(call, fmt::format("{} is not supported", key));
  return invalid(call, "has no value");
}

Inferred infer_constant(const OpCall& call) {
  const Array value = TW_TRY(constant_value(call));
  return std::vector<TensorType>{{value.dtype(), value.shape()}};
}

std::vector<Tensor> define_constant(const OpCall& call, const std::vector<Tensor>&) {
  return define_from_table(call, *constant_value(call));
}

/// The single element of attribute `value`; f32 zero if absent.
Result<Array> fill_value(const OpCall& call) {
  if (!call.attrs.has("value")) return Array::scalar(DType::F32, 0);
  const Array value = TW_TRY(constant_value(call));
  if (value.size() != 1)
    return invalid(call, "value must have one element", "its shape is " + to_string(value.shape()));
  return value;
}

Inferred infer_constant_of_shape(const OpCall& call) {
  const Array value = TW_TRY(fill_value(call));
  const Shape shape = int_values(call, 0);
  for (const int64_t extent : shape)
    if (extent < 0) return invalid(call, "a size is negative", "shape " + to_string(shape));
  return one_output(call, value.dtype(), shape);
}

std::vector<Tensor> define_constant_of_shape(const OpCall& call, const std::vector<Tensor>&) {
  const Array value = *fill_value(call);
  const Expr fill = is_float(value.dtype()) ? float_imm(value.get(0), value.dtype())
                                            : int_imm(value.get_int(0), value.dtype());
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices&) { return fill; })};
}

Inferred infer_range(const OpCall& call) {
  TW_TRY_STATUS(require_same_dtypes(call));
  for (size_t i = 0; i < 3; ++i)
    if (call.inputs[i].value->size() != 1)
      return invalid(call, fmt::format("input {} must be one number", i),
                     "its shape is " + to_string(call.inputs[i].shape));
  const Array &start = *call.inputs[0].value, &limit = *call.inputs[1].value;
  const Array& delta = *call.inputs[2].value;
  const double step = delta.get(0);
  const double steps = std::ceil((limit.get(0) - start.get(0)) / step);
  if (step == 0 || !std::isfinite(steps))
    return invalid(call, "has no finite length",
                   fmt::format("start {}, limit {}, delta {}", start.get(0), limit.get(0), step));
  constexpr double kMost = 1e15;  // still exact in a double; one_output refuses far smaller sizes
  return one_output(call, start.dtype(), {static_cast<int64_t>(std::clamp(steps, 0.0, kMost))});
}

std::vector<Tensor> define_range(const OpCall& call, const std::vector<Tensor>&) {
  const Array &start = *call.inputs[0].value, &delta = *call.inputs[2].value;
  const DType dtype = start.dtype();
  auto number = [&](const Array& a) {
    return is_float(dtype) ? float_imm(a.get(0), dtype) : int_imm(a.get_int(0), dtype);
  };
  return {compute(call.op, dims_of((*infer(call))[0].shape), [&](const Indices& at) {
    return number(start) + cast(dtype, at[0]) * number(delta);
  })};
}

/// The sizes Shape reports.
std::vector<int64_t> reported_shape(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto rank = static_cast<int64_t>(shape.size());
  auto bound = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = bound(call.attrs.get_int("start", 0));
  const int64_t end = bound(call.attrs.get_int("end", rank));
  if (start >= end) return {};
  return {shape.begin() + start, shape.begin() + end};
}

Inferred infer_shape(const OpCall& call) {
  const auto count = static_cast<int64_t>(reported_shape(call).size());
  return std::vector<TensorType>{{DType::I64, {count}}};
}

std::vector<Tensor> define_shape(const OpCall& call, const std::vector<Tensor>&) {
  const std::vector<int64_t> shape = reported_shape(call);
  return define_from_table(call, of_ints(shape, {static_cast<int64_t>(shape.size())}));
}

Inferred infer_size(const OpCall&) { return std::vector<TensorType>{{DType::I64, {}}}; }

std::vector<Tensor> define_size(const OpCall& call, const std::vector<Tensor>&) {
  const int64_t count = element_count(call.inputs[0].shape);
  return {compute(call.op, {}, [&](const Indices&) { return int_imm(count); })};
}

Inferred infer_eye_like(const OpCall& call) {
  TW_TRY_STATUS(require_rank(call, 0, 2));
  const DType dtype = TW_TRY(dtype_attr(call, "dtype", call.inputs[0].dtype));
  return std::vector<TensorType>{{dtype, call.inputs[0].shape}};
}

std::vector<Tensor> define_eye_like(const OpCall& call, const std::vector<Tensor>&) {
  const TensorType type = (*infer(call))[0];
  const int64_t k = call.attrs.get_int("k", 0);
  return {compute(call.op, dims_of(type.shape), [&](const Indices& at) {
    return select(eq(at[1], affine(at[0], 1, k)), const_of(type.dtype, 1), const_of(type.dtype, 0));
  })};
}

}  // namespace

void add_constant_ops(std::vector<OpDef>& table) {
  table.push_back(movement_row("Constant", 0, 0, infer_constant, define_constant));
  table.push_back(movement_row("ConstantOfShape", 1, 1, infer_constant_of_shape,
                               define_constant_of_shape, {0}));
  table.push_back(movement_row("Range", 3, 3, infer_range, define_range, {0, 1, 2}));
  table.push_back(movement_row("Shape", 1, 1, infer_shape, define_shape));
  table.push_back(movement_row("Size", 1, 1, infer_size, define_size));
  table.push_back(movement_row("EyeLike", 1, 1, infer_eye_like, define_eye_like));
}

}  // namespace tilewright::tensor
