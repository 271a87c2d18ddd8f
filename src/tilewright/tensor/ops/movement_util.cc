// What the tables of data movement share.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/counted.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {

OpDef movement_row(const char* name, int min_inputs, int max_inputs, InferFn infer, DefineFn define,
                   std::vector<int> constant_inputs) {
  OpDef def;
  def.name = name;
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.fusion = Fusion::Injective;
  def.constant_inputs = std::move(constant_inputs);
  def.infer = infer;
  def.define = define;
  return def;
}

Result<DType> dtype_attr(const OpCall& call, const std::string& key, DType fallback) {
  switch (const int64_t number = call.attrs.get_int(key, 0)) {
    case 0:
      return fallback;
    case 1:
      return DType::F32;
    case 2:
      return DType::U8;
    case 3:
      return DType::I8;
    case 4:
      return DType::U16;
    case 5:
      return DType::I16;
    case 6:
      return DType::I32;
    case 7:
      return DType::I64;
    case 9:
      return DType::Bool;
    case 10:
      return DType::F16;
    case 11:
      return DType::F64;
    case 12:
      return DType::U32;
    case 13:
      return DType::U64;
    case 16:
      return DType::BF16;
    default:
      return unsupported(
          call, fmt::format("{} is ONNX element type {}", key, number),
          "strings, complex numbers, and floats of 8 bits or integers of less are not supported");
  }
}

Expr wrap_index(const Expr& value, int64_t extent) {
  const Expr i = cast(DType::I64, value);
  const Expr from_front = select(i < 0, i + int_imm(extent), i);
  return min(max(from_front, int_imm(0)), int_imm(std::max<int64_t>(extent - 1, 0)));
}

Expr index_value(const OpCall& call, size_t i, const Tensor& tensor, const Indices& at,
                 int64_t extent) {
  const std::optional<Array>& known = call.inputs[i].value;
  if (!known) return wrap_index(tensor(at), extent);
  if (known->size() == 1) {
    const int64_t v = known->get_int(0);
    return int_imm(v < 0 ? v + extent : v);
  }
  const std::vector<int64_t> values = known->to_ints();
  const bool wraps = std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
  return wraps ? wrap_index(tensor(at), extent) : cast(DType::I64, tensor(at));
}

Status require_int(const OpCall& call, size_t i) {
  if (const InputInfo* in = call.input(i); in && !is_int(in->dtype))
    return invalid(call, fmt::format("input {} must be of integer type", i),
                   fmt::format("it is {}", name(in->dtype)));
  return {};
}

Status require_indices(const OpCall& call, size_t i, int64_t extent) {
  const InputInfo* in = call.input(i);
  if (in == nullptr || !in->value) return {};
  for (const int64_t v : in->value->to_ints())
    if (v < -extent || v >= extent)
      return invalid(call, fmt::format("index {} is out of range", v),
                     "the axis has " + counted(extent, "element"));
  return {};
}

Tensor const_table(const std::string& name, const Array& values) {
  return placeholder(name, values.dtype(), values.shape(), ParamMode::Const, values);
}

Result<std::vector<TensorType>> one_output(const OpCall& call, DType dtype, const Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) || count > kMostElements || count < 0)
      return fail(ErrorKind::Capacity, fmt::format("{}: the result is too large", call.op),
                  fmt::format("shape {}", to_string(shape)));
  return std::vector<TensorType>{{dtype, shape}};
}

}  // namespace tilewright::tensor
