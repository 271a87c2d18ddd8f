// Quantisation: between real and integer tensors, and the quantised convolution and product, whose
// sums are 32-bit integers. source: ONNX operator definitions, opset 24.
#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/tensor/ops/movement.h"
#include "tilewright/tensor/shape_util.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {
namespace {

bool is_narrow_int(DType dtype) { return is_int(dtype) && bit_width(dtype) <= 16; }

/// How scale and zero point spread over a tensor.
struct Granularity {
  enum Kind { Tensor, Axis, Block } kind = Tensor;
  size_t axis = 0;
  int64_t block = 1;
};

/// errors: Invalid if the shape of the scale (input 1) or zero point (input 2) fits no granularity.
Result<Granularity> granularity_of(const OpCall& call) {
  const Shape &x = call.inputs[0].shape, &scale = call.inputs[1].shape;
  // One scale and one zero point: each is a scalar or an array of one element.
  const InputInfo* point = call.input(2);
  const bool one_point = !point || (point->shape.size() <= 1 && element_count(point->shape) == 1);
  if (scale.size() <= 1 && element_count(scale) == 1 && one_point) return Granularity{};
  TW_TRY_STATUS(require_shape(call, 2, scale));
  Granularity g;
  g.axis = static_cast<size_t>(TW_TRY(normalize_axis(call.attrs.get_int("axis", 1), x.size())));
  g.block = call.attrs.get_int("block_size", 0);
  const std::string shapes = fmt::format("input {}, scale {}, axis {}, block_size {}", to_string(x),
                                         to_string(scale), g.axis, g.block);
  if (scale.size() == 1 && g.block == 0) {
    g.kind = Granularity::Axis;
    if (scale[0] != x[g.axis]) return invalid(call, "the scale does not fit the axis", shapes);
    return g;
  }
  g.kind = Granularity::Block;
  bool fits = g.block > 0 && scale.size() == x.size();
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = scale[i] == (i == g.axis ? (x[i] + g.block - 1) / g.block : x[i]);
  if (!fits) return invalid(call, "the scale does not fit the input", shapes);
  return g;
}

/// The scale or zero point, input `i`, that applies to the element at `at`; an immediate if it is
/// one known number.
Expr parameter_at(const OpCall& call, const Granularity& g, const std::vector<Tensor>& in, size_t i,
                  const Indices& at) {
  if (g.kind == Granularity::Tensor) return element(call, in, i, Indices(in[i].rank(), int_imm(0)));
  if (g.kind == Granularity::Axis) return in[i]({at[g.axis]});
  Indices where = at;
  where[g.axis] = at[g.axis] / g.block;
  return in[i](where);
}

bool is_number(const Expr& e, int64_t number) {
  const auto* real = e.as<FloatImm>();
  return real != nullptr ? real->value == static_cast<double>(number) : is_const_int(e, number);
}

/// round(value) + zero point, saturated to `dtype`, as casts are. requires: `value` is f32 and at
/// most 16 bits are asked for, so that sums near the range are exact.
Expr saturate(DType dtype, const Expr& value, const Expr& zero_point) {
  Expr shifted = math(MathFn::Round, {value});
  if (zero_point && !is_number(zero_point, 0)) shifted = shifted + cast(DType::F32, zero_point);
  return cast(dtype, shifted);
}

/// ONNX leaves open what NaN becomes. As in ONNX Runtime it is the lowest number of the type, so
/// that bytes mean the same with and without a sign; a cast makes 0 of it.
Expr lowest_for_nan(DType dtype, const Expr& value) {
  if (is_unsigned_int(dtype)) return value;
  const Expr below = const_of(DType::F32, -1e6);  // of all numbers of 16 bits
  return select(value > below, value, below);
}

bool has(const std::vector<Tensor>& in, size_t i) { return i < in.size() && in[i]; }

Inferred infer_quantize(const OpCall& call) {
  const InputInfo &x = call.inputs[0], &scale = call.inputs[1];
  TW_TRY(granularity_of(call));
  if (!is_float(x.dtype) && x.dtype != DType::I32)
    return invalid(call, fmt::format("the input is {}", name(x.dtype)));
  if (!is_float(scale.dtype) && scale.dtype != DType::I32)
    return invalid(call, fmt::format("the scale is {}", name(scale.dtype)));
  const InputInfo* zero = call.input(2);
  const DType fallback = zero ? zero->dtype : DType::U8;
  const DType out = TW_TRY(dtype_attr(call, "output_dtype", fallback));
  if (zero && zero->dtype != out)
    return invalid(call, "output_dtype contradicts the zero point",
                   fmt::format("{} and {}", name(out), name(zero->dtype)));
  if (!is_narrow_int(out))
    return unsupported(call, fmt::format("quantising to {}", name(out)),
                       "supported are i8, u8, i16 and u16");
  TW_TRY(dtype_attr(call, "precision", DType::F32));
  return std::vector<TensorType>{{out, x.shape}};
}

std::vector<Tensor> define_quantize(const OpCall& call, const std::vector<Tensor>& in) {
  const Granularity g = *granularity_of(call);
  const TensorType out = (*infer(call))[0];
  // The division is made in the scale's type unless an attribute says otherwise.
  const DType scale_type = is_float(in[1].dtype()) ? in[1].dtype() : DType::F32;
  const DType precision = *dtype_attr(call, "precision", scale_type);
  return {compute(call.op, dims_of(out.shape), [&](const Indices& at) {
    Expr quotient = cast(precision, in[0](at));
    const Expr scale = parameter_at(call, g, in, 1, at);
    if (!is_number(scale, 1)) quotient = quotient / cast(precision, scale);
    const Expr zero = has(in, 2) ? parameter_at(call, g, in, 2, at) : Expr();
    return saturate(out.dtype, lowest_for_nan(out.dtype, cast(DType::F32, quotient)), zero);
  })};
}

Inferred infer_dequantize(const OpCall& call) {
  const InputInfo &x = call.inputs[0], &scale = call.inputs[1];
  TW_TRY(granularity_of(call));
  if (!is_narrow_int(x.dtype) && x.dtype != DType::I32)
    return invalid(call, fmt::format("the input is {}", name(x.dtype)));
  if (!is_float(scale.dtype))
    return invalid(call, fmt::format("the scale is {}", name(scale.dtype)));
  if (const InputInfo* zero = call.input(2); zero && zero->dtype != x.dtype)
    return invalid(call, "input and zero point differ in type",
                   fmt::format("{} and {}", name(x.dtype), name(zero->dtype)));
  const DType out = TW_TRY(dtype_attr(call, "output_dtype", scale.dtype));
  if (!is_float(out)) return invalid(call, fmt::format("output_dtype is {}", name(out)));
  return std::vector<TensorType>{{out, x.shape}};
}

std::vector<Tensor> define_dequantize(const OpCall& call, const std::vector<Tensor>& in) {
  const Granularity g = *granularity_of(call);
  const TensorType out = (*infer(call))[0];
  const DType acc = out.dtype == DType::F64 ? DType::F64 : DType::F32;
  return {compute(call.op, dims_of(out.shape), [&](const Indices& at) {
    Expr x = cast(DType::I32, in[0](at));
    const Expr zero = has(in, 2) ? parameter_at(call, g, in, 2, at) : Expr();
    if (zero && !is_number(zero, 0)) x = x - cast(DType::I32, zero);
    return cast(out.dtype, cast(acc, x) * cast(acc, parameter_at(call, g, in, 1, at)));
  })};
}

Inferred infer_dynamic_quantize(const OpCall& call) {
  if (call.inputs[0].dtype != DType::F32)
    return invalid(call, fmt::format("the input is {}, not f32", name(call.inputs[0].dtype)));
  std::vector<TensorType> out{{DType::U8, call.inputs[0].shape}, {DType::F32, {}}, {DType::U8, {}}};
  return out;
}

std::vector<Tensor> define_dynamic_quantize(const OpCall& call, const std::vector<Tensor>& in) {
  const std::vector<Dim> all = dims_of(in[0].shape());
  auto extreme = [&](const char* suffix, Combine combine) {
    // Starting from 0 makes the range include 0.
    return reduce(
        call.op + suffix, {}, all, combine,
        [&](const Indices&, const Indices& at) { return in[0](at); },
        [](const Indices&) { return float_imm(0); });
  };
  const Tensor lo = extreme(".min", Combine::Min), hi = extreme(".max", Combine::Max);
  const Tensor scale = compute(call.op + ".scale", {}, [&](const Indices&) {
    const Expr range = hi({}) - lo({});
    return select(eq(range, float_imm(0)), float_imm(1), range) / float_imm(255);
  });
  const Tensor zero = compute(call.op + ".zero", {}, [&](const Indices&) {
    return saturate(DType::U8, -lo({}) / scale({}), {});
  });
  const Tensor y = compute(call.op, all, [&](const Indices& at) {
    return saturate(DType::U8, in[0](at) / scale({}), zero({}));
  });
  return {y, scale, zero};
}

/// Checks the scalars of QLinearConv and QLinearMatMul: scales are floats, the zero point of each
/// operand has its type.
Status check_quantised(const OpCall& call, std::initializer_list<std::pair<size_t, size_t>> pairs) {
  for (const auto& [operand, zero] : pairs) {
    const DType dtype = call.inputs[operand].dtype;
    if (dtype != DType::I8 && dtype != DType::U8)
      return invalid(call, fmt::format("input {} is {}", operand, name(dtype)),
                     "expected i8 or u8");
    if (call.inputs[zero].dtype != dtype)
      return invalid(call, fmt::format("inputs {} and {} differ in type", operand, zero),
                     fmt::format("{} and {}", name(dtype), name(call.inputs[zero].dtype)));
    TW_TRY_STATUS(require_float(call, zero - 1));
  }
  TW_TRY_STATUS(require_float(call, 6));
  const DType out = call.inputs[7].dtype;
  if (out != DType::I8 && out != DType::U8)
    return invalid(call, fmt::format("the output's zero point is {}", name(out)));
  return {};
}

/// errors: Invalid unless input `i` has one element, or (if `channels` > 0) that many in one axis.
Status require_scalar_or(const OpCall& call, size_t i, int64_t channels) {
  const Shape& shape = call.inputs[i].shape;
  if (element_count(shape) == 1) return {};
  if (channels > 0 && shape == Shape{channels}) return {};
  return invalid(
      call, fmt::format("input {} has shape {}", i, to_string(shape)),
      channels > 0 ? fmt::format("expected one number or [{}]", channels) : "expected one number");
}

/// The single element, or the one of channel `k`.
Expr scalar_or(const Tensor& t, const Expr& k) {
  if (element_count(t.shape()) == 1) return t(Indices(t.rank(), int_imm(0)));
  return t({k});
}

/// The call as a plain convolution of x and w.
OpCall as_conv(const OpCall& call) {
  OpCall conv = call;
  conv.inputs = {call.inputs[0], call.inputs[3]};
  return conv;
}

Inferred infer_qlinear_conv(const OpCall& call) {
  TW_TRY_STATUS(check_quantised(call, {{0, 2}, {3, 5}}));
  const Shape &x = call.inputs[0].shape, &w = call.inputs[3].shape;
  const Window window = TW_TRY(conv_window(as_conv(call), x, w));
  for (const size_t i : {1, 2, 6, 7}) TW_TRY_STATUS(require_scalar_or(call, i, 0));
  for (const size_t i : {4, 5}) TW_TRY_STATUS(require_scalar_or(call, i, w[0]));
  TW_TRY_STATUS(require_shape(call, 8, {w[0]}));
  if (const InputInfo* bias = call.input(8); bias && bias->dtype != DType::I32)
    return invalid(call, fmt::format("the bias is {}, not i32", name(bias->dtype)));
  Shape shape{x[0], w[0]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  return one_output(call, call.inputs[7].dtype, shape);
}

/// x - zero point as i32, the zero point chosen by `zero_at`.
Tensor centred(const std::string& name_of, const Tensor& x,
               const std::function<Expr(const Indices&)>& zero_at) {
  return compute(name_of, dims_of(x.shape()), [&](const Indices& at) {
    return cast(DType::I32, x(at)) - cast(DType::I32, zero_at(at));
  });
}

std::vector<Tensor> define_qlinear_conv(const OpCall& call, const std::vector<Tensor>& in) {
  const Window window = *conv_window(as_conv(call), in[0].shape(), in[3].shape());
  const TensorType out = (*infer(call))[0];
  const Expr first = int_imm(0);
  const Tensor x =
      centred(call.op + ".x", in[0], [&](const Indices&) { return scalar_or(in[2], first); });
  const Tensor w =
      centred(call.op + ".w", in[3], [&](const Indices& at) { return scalar_or(in[5], at[0]); });
  const Tensor padded = pad_for(window, x, call.op + ".pad", int_imm(0, DType::I32));
  const Tensor sum =
      conv_sum(call.op + ".sum", padded, w, window, call.attrs.get_int("group", 1), DType::I32);
  const Tensor scale = compute(call.op + ".scale", {{"k", w.dim(0)}}, [&](const Indices& at) {
    return scalar_or(in[1], first) * scalar_or(in[4], at[0]) / scalar_or(in[6], first);
  });
  return {compute(call.op, dims_of(out.shape, {"n", "k"}), [&](const Indices& at) {
    Expr total = sum(at);
    if (has(in, 8)) total = total + in[8]({at[1]});
    const Expr real = cast(DType::F32, total) * cast(DType::F32, scale({at[1]}));
    return saturate(out.dtype, real, scalar_or(in[7], first));
  })};
}

/// A parameter of QLinearMatMul for the element at `at` of an operand or of the output: one number,
/// one per row (a) or column (b), or an array that broadcasts. `inner` is the axis that a vector of
/// parameters runs along, counted from the end.
Expr matmul_parameter(const Tensor& t, const Indices& at, size_t inner) {
  if (element_count(t.shape()) == 1) return t(Indices(t.rank(), int_imm(0)));
  if (t.rank() == 1) return t({at[at.size() - inner]});
  return broadcast_load(t, at);
}

/// errors: Invalid if parameter `i` fits no element of `shape` as matmul_parameter reads it.
Status require_matmul_parameter(const OpCall& call, size_t i, const Shape& shape, size_t inner) {
  const Shape& p = call.inputs[i].shape;
  if (element_count(p) == 1) return {};
  bool fits = p.size() <= shape.size() && shape.size() >= inner;
  if (fits && p.size() == 1) fits = p[0] == shape[shape.size() - inner];
  for (size_t k = 0; fits && p.size() > 1 && k < p.size(); ++k)
    fits = p[k] == 1 || p[k] == shape[shape.size() - p.size() + k];
  if (fits) return {};
  return invalid(call, fmt::format("input {} has shape {}", i, to_string(p)),
                 "it does not fit " + to_string(shape));
}

/// The shape of NumPy's matmul. errors: Invalid.
Result<Shape> matmul_shape(const OpCall& call, Shape a, Shape b) {
  const std::string shapes = fmt::format("{} and {}", to_string(a), to_string(b));
  if (a.empty() || b.empty()) return invalid(call, "operands are scalars", shapes);
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2])
    return invalid(call, "the inner sizes differ",
                   fmt::format("{}: {} and {}", shapes, a.back(), b[b.size() - 2]));
  Shape out = TW_TRY(broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return out;
}

Inferred infer_qlinear_matmul(const OpCall& call) {
  TW_TRY_STATUS(check_quantised(call, {{0, 2}, {3, 5}}));
  const Shape &a = call.inputs[0].shape, &b = call.inputs[3].shape;
  const Shape shape = TW_TRY(matmul_shape(call, a, b));
  for (const size_t i : {1, 2}) TW_TRY_STATUS(require_matmul_parameter(call, i, a, 2));
  for (const size_t i : {4, 5}) TW_TRY_STATUS(require_matmul_parameter(call, i, b, 1));
  for (const size_t i : {6, 7}) TW_TRY_STATUS(require_matmul_parameter(call, i, shape, 1));
  return one_output(call, call.inputs[7].dtype, shape);
}

std::vector<Tensor> define_qlinear_matmul(const OpCall& call, const std::vector<Tensor>& in) {
  const TensorType out = (*infer(call))[0];
  const Tensor a = centred(call.op + ".a", in[0],
                           [&](const Indices& at) { return matmul_parameter(in[2], at, 2); });
  const Tensor b = centred(call.op + ".b", in[3],
                           [&](const Indices& at) { return matmul_parameter(in[5], at, 1); });
  const Tensor sum = matmul_sum(call.op + ".sum", a, b, DType::I32);
  return {compute(call.op, dims_of(out.shape), [&](const Indices& at) {
    auto scale = [&](size_t i, size_t inner) {
      return cast(DType::F32, matmul_parameter(in[i], at, inner));
    };
    const Expr factor = scale(1, 2) * scale(4, 1) / scale(6, 1);
    return saturate(out.dtype, cast(DType::F32, sum(at)) * factor, matmul_parameter(in[7], at, 1));
  })};
}

}  // namespace

void add_quantize_ops(std::vector<OpDef>& table) {
  auto add = [&](const char* op, int min_inputs, int max_inputs, Fusion fusion, InferFn infer_fn,
                 DefineFn define) {
    OpDef def = movement_row(op, min_inputs, max_inputs, infer_fn, define);
    def.fusion = fusion;
    table.push_back(std::move(def));
  };
  add("QuantizeLinear", 2, 3, Fusion::Injective, infer_quantize, define_quantize);
  add("DequantizeLinear", 2, 3, Fusion::Injective, infer_dequantize, define_dequantize);
  add("DynamicQuantizeLinear", 1, 1, Fusion::Opaque, infer_dynamic_quantize,
      define_dynamic_quantize);
  add("QLinearConv", 8, 9, Fusion::Complex, infer_qlinear_conv, define_qlinear_conv);
  add("QLinearMatMul", 8, 8, Fusion::Complex, infer_qlinear_matmul, define_qlinear_matmul);
}

}  // namespace tilewright::tensor
