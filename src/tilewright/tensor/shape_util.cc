#include "tilewright/tensor/shape_util.h"

#include <algorithm>
#include <cctype>

#include "tilewright/base/check.h"

namespace tilewright::tensor {

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      return fail(ErrorKind::Invalid,
                  fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)),
                  fmt::format("axis {} of the result would be {} and {}", i, x, y));
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Result<Shape> broadcast_inputs(const OpCall& call, size_t first) {
  Shape shape;
  for (size_t i = first; i < call.inputs.size(); ++i)
    if (call.inputs[i].present) shape = TW_TRY(broadcast(shape, call.inputs[i].shape));
  return shape;
}

Indices broadcast_at(const Shape& shape, const Indices& at) {
  TW_CHECK(shape.size() <= at.size(), "rank {} is above {}", shape.size(), at.size());
  Indices out;
  const size_t skip = at.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    out.push_back(shape[i] == 1 ? int_imm(0) : at[i + skip]);
  return out;
}

std::vector<Dim> dims_of(const Shape& shape, const std::vector<std::string>& names) {
  std::vector<Dim> out;
  for (size_t i = 0; i < shape.size(); ++i)
    out.push_back({i < names.size() ? names[i] : "i" + std::to_string(i), shape[i]});
  return out;
}

Result<int64_t> normalize_axis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    return fail(ErrorKind::Invalid, fmt::format("axis {} is outside a tensor of rank {}", axis, n),
                fmt::format("axes run from {} to {}", -n, n - 1));
  return axis < 0 ? axis + n : axis;
}

Result<std::vector<int64_t>> normalize_axes(std::vector<int64_t> axes, size_t rank) {
  std::vector<bool> seen(rank);
  for (int64_t& axis : axes) {
    axis = TW_TRY(normalize_axis(axis, rank));
    if (seen[static_cast<size_t>(axis)])
      return fail(ErrorKind::Invalid, fmt::format("axis {} is named twice", axis));
    seen[static_cast<size_t>(axis)] = true;
  }
  return axes;
}

Expr flatten_index(const Indices& at, const Shape& shape) {
  Expr flat;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1) {
      Expr term = affine(at[i], stride);
      flat = flat ? std::move(term) + std::move(flat) : std::move(term);
    }
    stride *= shape[i];
  }
  return flat ? flat : int_imm(0);
}

Indices unflatten_index(const Expr& flat, const Shape& shape) {
  Indices out(shape.size());
  int64_t stride = 1;
  size_t outermost = 0;
  while (outermost < shape.size() && shape[outermost] == 1) ++outermost;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) {
      out[i] = int_imm(0);
      continue;
    }
    Expr at = stride == 1 ? flat : flat / stride;
    out[i] = i == outermost ? std::move(at) : std::move(at) % shape[i];
    stride *= shape[i];
  }
  return out;
}

Expr affine(const Expr& i, int64_t step, int64_t begin) {
  Expr scaled = step == 1 ? i : i * step;
  if (begin == 0) return scaled;
  return begin > 0 ? std::move(scaled) + begin : std::move(scaled) - -begin;
}

Expr inside(const Expr& i, int64_t lo, int64_t hi, int64_t extent) {
  Expr condition;
  if (lo < 0) condition = i >= 0;
  if (hi >= extent) condition = both(std::move(condition), i < extent);
  return condition;
}

Expr both(Expr a, Expr b) {
  if (!a) return b;
  if (!b) return a;
  return logical_and(std::move(a), std::move(b));
}

Expr guarded(Expr condition, Expr value, Expr otherwise) {
  if (!condition) return value;
  return select(std::move(condition), std::move(value), std::move(otherwise));
}

DType compute_type(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

Result<int64_t> positive_attr(const OpCall& call, const char* key) {
  const int64_t number = call.attrs.get_int(key, 0);
  if (number < 1) return invalid(call, fmt::format("the attribute {} is {}", key, number));
  return number;
}

Result<std::vector<int64_t>> axis_ints(const OpCall& call, const char* key, size_t rank,
                                       int64_t least) {
  std::vector<int64_t> values = call.attrs.get_ints(key);
  if (values.empty() || (rank > 0 && values.size() != rank) ||
      *std::min_element(values.begin(), values.end()) < least)
    return invalid(call, fmt::format("{} is {}", key, to_string(values)),
                   fmt::format("{}entries of at least {} are expected",
                               rank > 0 ? fmt::format("{} ", rank) : "", least));
  return values;
}

tl::unexpected<Error> invalid(const OpCall& call, const std::string& what, const std::string& why,
                              const std::string& fix) {
  return fail(ErrorKind::Invalid, call.op + ": " + what, why, fix);
}

tl::unexpected<Error> unsupported(const OpCall& call, const std::string& what,
                                  const std::string& why, const std::string& fix) {
  return fail(ErrorKind::Unsupported, call.op + ": " + what, why, fix);
}

Status require_same_dtypes(const OpCall& call, size_t first) {
  std::optional<size_t> seen;
  for (size_t i = first; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    if (!seen) seen = i;
    if (call.inputs[i].dtype != call.inputs[*seen].dtype)
      return invalid(
          call, fmt::format("inputs {} and {} differ in type", *seen, i),
          fmt::format("{} and {}", name(call.inputs[*seen].dtype), name(call.inputs[i].dtype)));
  }
  return {};
}

bool allows(Types types, DType dtype) {
  switch (types) {
    case Types::Any:
      return true;
    case Types::Float:
      return is_float(dtype);
    case Types::Number:
      return dtype != DType::Bool;
    case Types::Signed:
      return is_float(dtype) || is_signed_int(dtype);
    case Types::Int:
      return is_int(dtype);
    case Types::Unsigned:
      return is_unsigned_int(dtype);
    case Types::Bool:
      return dtype == DType::Bool;
  }
  return false;
}

Status require_types(const OpCall& call, size_t i, Types types) {
  static constexpr std::string_view kNames[] = {
      "any",        "a floating-point",    "a numeric", "a floating-point or signed integer",
      "an integer", "an unsigned integer", "bool"};
  const InputInfo* in = call.input(i);
  if (in == nullptr || allows(types, in->dtype)) return {};
  return invalid(call,
                 fmt::format("input {} must be of {} type", i, kNames[static_cast<int>(types)]),
                 fmt::format("it is {}", name(in->dtype)));
}

Status require_float(const OpCall& call, size_t i) { return require_types(call, i, Types::Float); }

std::string tensor_name(const OpCall& call) {
  std::string out;
  for (const char c : call.op) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    const bool after_lower =
        !out.empty() && std::islower(static_cast<unsigned char>(out.back())) != 0;
    if (upper && after_lower) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

Expr element(const OpCall& call, const std::vector<Tensor>& inputs, size_t i, const Indices& at) {
  const InputInfo& in = call.inputs[i];
  if (in.value && in.value->size() == 1) {
    if (is_float(in.dtype)) return float_imm(in.value->get(0), in.dtype);
    return int_imm(in.value->get_int(0), in.dtype);
  }
  return broadcast_load(inputs[i], at);
}

Expr convert(DType dtype, Expr a) {
  if (dtype != DType::Bool || a.dtype() == DType::Bool) return cast(dtype, std::move(a));
  const DType from = a.dtype();
  return ne(std::move(a), const_of(from, 0));
}

Result<DType> onnx_dtype(int64_t number) {
  static constexpr std::pair<int64_t, DType> kTypes[] = {
      {1, DType::F32},  {2, DType::U8},   {3, DType::I8},   {4, DType::U16},  {5, DType::I16},
      {6, DType::I32},  {7, DType::I64},  {9, DType::Bool}, {10, DType::F16}, {11, DType::F64},
      {12, DType::U32}, {13, DType::U64}, {16, DType::BF16}};
  for (const auto& [key, dtype] : kTypes)
    if (key == number) return dtype;
  return fail(ErrorKind::Unsupported, fmt::format("ONNX element type {} is not supported", number),
              number == 8                    ? "8 is string"
              : number == 14 || number == 15 ? "complex numbers"
              : number >= 17 && number <= 26 ? "it is a type of 8 bits or less"
              : number == 0                  ? "0 means that the type is not set"
                                             : "ONNX defines no such type");
}

Status require_rank(const OpCall& call, size_t i, size_t rank) {
  if (const InputInfo* in = call.input(i); in && in->shape.size() != rank)
    return invalid(call, fmt::format("input {} must have rank {}", i, rank),
                   fmt::format("its shape is {}", to_string(in->shape)));
  return {};
}

Status require_shape(const OpCall& call, size_t i, const Shape& shape) {
  if (const InputInfo* in = call.input(i); in && in->shape != shape)
    return invalid(call, fmt::format("input {} must have shape {}", i, to_string(shape)),
                   fmt::format("its shape is {}", to_string(in->shape)));
  return {};
}

std::vector<int64_t> int_values(const OpCall& call, size_t i) {
  const InputInfo* in = call.input(i);
  if (in == nullptr) return {};
  TW_CHECK(in->value, "{}: the value of input {} is not known", call.op, i);
  return in->value->to_ints();
}

}  // namespace tilewright::tensor
