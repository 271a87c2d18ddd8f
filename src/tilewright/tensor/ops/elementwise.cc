// Element-wise operators: one row per operator, all injective. Functions of f16 and bf16 values
// are evaluated in f32 and rounded once.
#include <cmath>
#include <numbers>

#include "tilewright/base/check.h"
#include "tilewright/tensor/op.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {
namespace {

using Tensors = std::vector<Tensor>;

Expr call1(MathFn fn, const Expr& x) { return math(fn, {x}); }
Expr clamp01(const Expr& x) { return max(num(x, 0), min(num(x, 1), x)); }

/// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) {
  return max(x, num(x, 0)) +
         call1(MathFn::Log, num(x, 1) + call1(MathFn::Exp, -call1(MathFn::Abs, x)));
}

Expr gelu(const Expr& x, const Attrs& attrs) {
  if (attrs.get_string("approximate", "none") == "tanh") {
    const Expr inner = num(x, std::sqrt(2 / std::numbers::pi)) * (x + num(x, 0.044715) * x * x * x);
    return num(x, 0.5) * x * (num(x, 1) + call1(MathFn::Tanh, inner));
  }
  return num(x, 0.5) * x * (num(x, 1) + call1(MathFn::Erf, x * num(x, std::numbers::sqrt2 / 2)));
}

Expr sign(const Expr& x) {
  const Expr zero = num(x, 0);
  // Zeros and NaN are returned as they are.
  const Expr rest = is_unsigned_int(x.dtype()) ? x : select(x < zero, num(x, -1), x);
  return select(x > zero, num(x, 1), rest);
}

Expr is_inf(const Expr& x, const Attrs& attrs) {
  const bool negative = attrs.get_int("detect_negative", 1) != 0;
  const bool positive = attrs.get_int("detect_positive", 1) != 0;
  if (negative && positive) return call1(MathFn::IsInf, x);
  if (!negative && !positive) return bool_imm(false);
  return eq(x, positive ? highest(x.dtype()) : lowest(x.dtype()));
}

Expr shrink(const Expr& x, const Attrs& attrs) {
  const double lambd = attrs.get_float("lambd", 0.5), bias = attrs.get_float("bias", 0);
  // Thresholds are real numbers also where x is an integer.
  const Expr wide = is_float(x.dtype()) ? x : cast(DType::F64, x);
  const Expr result = select(wide < num(wide, -lambd), wide + num(wide, bias),
                             select(wide > num(wide, lambd), wide - num(wide, bias), num(wide, 0)));
  return cast(x.dtype(), result);
}

Expr selu(const Expr& x, const Attrs& attrs) {
  const double alpha = attrs.get_float("alpha", 1.67326319217681884765625);
  const double gamma = attrs.get_float("gamma", 1.05070102214813232421875);
  return select(x > num(x, 0), num(x, gamma) * x,
                num(x, gamma) * (num(x, alpha) * call1(MathFn::Exp, x) - num(x, alpha)));
}

Expr celu(const Expr& x, const Attrs& attrs) {
  const double alpha = attrs.get_float("alpha", 1);
  const Expr negative = num(x, alpha) * (call1(MathFn::Exp, x / num(x, alpha)) - num(x, 1));
  return max(num(x, 0), x) + min(num(x, 0), negative);
}

/// One input, one output of the same shape. The function sees the compute type of the input.
struct UnaryRow {
  const char* name;
  Types types;
  Expr (*f)(const Expr& x, const Attrs& attrs);
  bool is_predicate = false;  ///< the output is bool
};

#define TW_MATH(op, fn) \
  {op, Types::Float, [](const Expr& x, const Attrs&) { return call1(MathFn::fn, x); }}

const UnaryRow kUnary[] = {
    {"Identity", Types::Any, [](const Expr& x, const Attrs&) { return x; }},
    {"Neg", Types::Signed, [](const Expr& x, const Attrs&) { return -x; }},
    {"Abs", Types::Number,
     [](const Expr& x, const Attrs&) {
       return is_unsigned_int(x.dtype()) ? x : call1(MathFn::Abs, x);
     }},
    {"Sign", Types::Number, [](const Expr& x, const Attrs&) { return sign(x); }},
    {"Reciprocal", Types::Float, [](const Expr& x, const Attrs&) { return num(x, 1) / x; }},
    TW_MATH("Sqrt", Sqrt),
    TW_MATH("Exp", Exp),
    TW_MATH("Log", Log),
    TW_MATH("Floor", Floor),
    TW_MATH("Ceil", Ceil),
    TW_MATH("Round", Round),
    TW_MATH("Erf", Erf),
    TW_MATH("Sigmoid", Sigmoid),
    TW_MATH("Tanh", Tanh),
    TW_MATH("Sin", Sin),
    TW_MATH("Cos", Cos),
    TW_MATH("Tan", Tan),
    TW_MATH("Asin", Asin),
    TW_MATH("Acos", Acos),
    TW_MATH("Atan", Atan),
    TW_MATH("Sinh", Sinh),
    TW_MATH("Cosh", Cosh),
    TW_MATH("Asinh", Asinh),
    TW_MATH("Acosh", Acosh),
    TW_MATH("Atanh", Atanh),
    {"Relu", Types::Signed, [](const Expr& x, const Attrs&) { return max(x, num(x, 0)); }},
    {"LeakyRelu", Types::Float,
     [](const Expr& x, const Attrs& a) {
       return select(x < num(x, 0), num(x, a.get_float("alpha", 0.01)) * x, x);
     }},
    {"Elu", Types::Float,
     [](const Expr& x, const Attrs& a) {
       const Expr below = num(x, a.get_float("alpha", 1)) * (call1(MathFn::Exp, x) - num(x, 1));
       return select(x < num(x, 0), below, x);
     }},
    {"Selu", Types::Float, selu},
    {"Celu", Types::Float, celu},
    {"Softplus", Types::Float, [](const Expr& x, const Attrs&) { return softplus(x); }},
    {"Softsign", Types::Float,
     [](const Expr& x, const Attrs&) { return x / (num(x, 1) + call1(MathFn::Abs, x)); }},
    {"HardSigmoid", Types::Float,
     [](const Expr& x, const Attrs& a) {
       return clamp01(num(x, a.get_float("alpha", 0.2)) * x + num(x, a.get_float("beta", 0.5)));
     }},
    {"HardSwish", Types::Float,
     [](const Expr& x, const Attrs&) { return x * clamp01(num(x, 1.0 / 6) * x + num(x, 0.5)); }},
    {"ThresholdedRelu", Types::Float,
     [](const Expr& x, const Attrs& a) {
       return select(x > num(x, a.get_float("alpha", 1)), x, num(x, 0));
     }},
    {"Gelu", Types::Float, gelu},
    {"Mish", Types::Float,
     [](const Expr& x, const Attrs&) { return x * call1(MathFn::Tanh, softplus(x)); }},
    {"Swish", Types::Float,
     [](const Expr& x, const Attrs& a) {
       return x * call1(MathFn::Sigmoid, num(x, a.get_float("alpha", 1)) * x);
     }},
    {"Shrink", Types::Number, shrink},
    {"Not", Types::Bool, [](const Expr& x, const Attrs&) { return logical_not(x); }},
    {"BitwiseNot", Types::Int,
     [](const Expr& x, const Attrs&) { return unary(UnaryOp::BitNot, x); }},
    {"IsNaN", Types::Float, [](const Expr& x, const Attrs&) { return call1(MathFn::IsNan, x); },
     true},
    {"IsInf", Types::Float, is_inf, true},
};
#undef TW_MATH

OpDef unary_def(const UnaryRow& row) {
  OpDef def{"", row.name, 1, 1, Fusion::Injective};
  def.infer = [row](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, row.types));
    const DType out = row.is_predicate ? DType::Bool : call.inputs[0].dtype;
    return std::vector<TensorType>{{out, call.inputs[0].shape}};
  };
  def.define = [row](const OpCall& call, const Tensors& in) {
    return Tensors{compute(tensor_name(call), dims_of(in[0].shape()), [&](const Indices& at) {
      const DType dtype = in[0].dtype();
      const Expr y = row.f(cast(compute_type(dtype), in[0](at)), call.attrs);
      return row.is_predicate ? y : cast(dtype, y);
    })};
  };
  return def;
}

/// An integer quotient or remainder; 0 where the divisor is 0, for which ONNX has no rule.
template <class F>
Expr by_nonzero(const Expr& b, F&& quotient) {
  if (const std::optional<int64_t> known = as_int(b); known && *known != 0) return quotient(b);
  const Expr zero = eq(b, num(b, 0));
  return select(zero, num(b, 0), quotient(select(zero, num(b, 1), b)));
}

Expr divide(const Expr& a, const Expr& b) {
  if (is_float(a.dtype())) return a / b;
  return by_nonzero(b, [&](const Expr& by) { return math(MathFn::TruncDiv, {a, by}); });
}

/// fmod=1: the sign of the dividend, as C. Otherwise the sign of the divisor, as Python; floats go
/// by C's remainder there, which is exact and keeps a finite number modulo infinity.
Expr modulo(const Expr& a, const Expr& b, const Attrs& attrs) {
  const bool truncated = attrs.get_int("fmod", 0) != 0;
  if (!is_float(a.dtype()))
    return by_nonzero(
        b, [&](const Expr& by) { return truncated ? math(MathFn::TruncMod, {a, by}) : a % by; });
  const Expr rest = math(MathFn::TruncMod, {a, b});
  if (truncated) return rest;
  const Expr zero = num(a, 0);
  const Expr opposite = ne(rest < zero, b < zero);
  const Expr signed_zero = select(b < zero, num(a, -0.0), zero);
  return select(eq(rest, zero), signed_zero, select(opposite, rest + b, rest));
}

/// Two inputs of one type, broadcast.
struct BinaryRow {
  const char* name;
  Types types;
  Expr (*f)(const Expr& a, const Expr& b, const Attrs& attrs);
  bool is_predicate = false;
};

#define TW_BINARY(op, types, value, ...) \
  {op, types, [](const Expr& a, const Expr& b, const Attrs&) { return value; }, ##__VA_ARGS__}

const BinaryRow kBinary[] = {
    TW_BINARY("Add", Types::Number, a + b),
    TW_BINARY("Sub", Types::Number, a - b),
    TW_BINARY("Mul", Types::Number, a* b),
    TW_BINARY("Div", Types::Number, divide(a, b)),
    {"Mod", Types::Number, modulo},
    TW_BINARY("And", Types::Bool, logical_and(a, b)),
    TW_BINARY("Or", Types::Bool, logical_or(a, b)),
    TW_BINARY("Xor", Types::Bool, ne(a, b)),
    TW_BINARY("Equal", Types::Any, eq(a, b), true),
    TW_BINARY("Less", Types::Number, a < b, true),
    TW_BINARY("LessOrEqual", Types::Number, a <= b, true),
    TW_BINARY("Greater", Types::Number, a > b, true),
    TW_BINARY("GreaterOrEqual", Types::Number, a >= b, true),
    TW_BINARY("BitwiseAnd", Types::Int, binary(BinaryOp::BitAnd, a, b)),
    TW_BINARY("BitwiseOr", Types::Int, binary(BinaryOp::BitOr, a, b)),
    TW_BINARY("BitwiseXor", Types::Int, binary(BinaryOp::BitXor, a, b)),
    {"BitShift", Types::Int,
     [](const Expr& a, const Expr& b, const Attrs& attrs) {
       const bool left = attrs.get_string("direction", "") == "LEFT";
       return binary(left ? BinaryOp::Shl : BinaryOp::Shr, a, b);
     }},
};
#undef TW_BINARY

Status check_binary_attrs(const OpCall& call) {
  if (call.op == "BitShift") {
    const std::string direction = call.attrs.get_string("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
      return invalid(call, fmt::format("direction is \"{}\"", direction), "LEFT or RIGHT is meant");
  }
  return {};
}

OpDef binary_def(const BinaryRow& row) {
  OpDef def{"", row.name, 2, 2, Fusion::Injective};
  def.infer = [row](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, row.types));
    TW_TRY_STATUS(require_same_dtypes(call));
    TW_TRY_STATUS(check_binary_attrs(call));
    const DType out = row.is_predicate ? DType::Bool : call.inputs[0].dtype;
    return std::vector<TensorType>{{out, TW_TRY(broadcast_inputs(call))}};
  };
  def.define = [row](const OpCall& call, const Tensors& in) {
    const Shape shape = *broadcast_inputs(call);
    return Tensors{compute(tensor_name(call), dims_of(shape), [&](const Indices& at) {
      return row.f(element(call, in, 0, at), element(call, in, 1, at), call.attrs);
    })};
  };
  return def;
}

/// Any number of inputs of one type, broadcast and folded from the left in the compute type.
struct VariadicRow {
  const char* name;
  Types types;
  Expr (*f)(Expr a, Expr b);
  bool average = false;
};

const VariadicRow kVariadic[] = {
    {"Min", Types::Number, [](Expr a, Expr b) { return min(std::move(a), std::move(b)); }},
    {"Max", Types::Number, [](Expr a, Expr b) { return max(std::move(a), std::move(b)); }},
    {"Sum", Types::Float, [](Expr a, Expr b) { return std::move(a) + std::move(b); }},
    {"Mean", Types::Float, [](Expr a, Expr b) { return std::move(a) + std::move(b); }, true},
};

OpDef variadic_def(const VariadicRow& row) {
  OpDef def{"", row.name, 1, -1, Fusion::Injective};
  def.infer = [row](const OpCall& call) -> Inferred {
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (!call.inputs[i].present) return invalid(call, fmt::format("input {} is missing", i));
    TW_TRY_STATUS(require_types(call, 0, row.types));
    TW_TRY_STATUS(require_same_dtypes(call));
    return std::vector<TensorType>{{call.inputs[0].dtype, TW_TRY(broadcast_inputs(call))}};
  };
  def.define = [row](const OpCall& call, const Tensors& in) {
    const Shape shape = *broadcast_inputs(call);
    return Tensors{compute(tensor_name(call), dims_of(shape), [&](const Indices& at) {
      const DType dtype = in[0].dtype(), wide = compute_type(dtype);
      Expr value = cast(wide, element(call, in, 0, at));
      for (size_t i = 1; i < in.size(); ++i)
        value = row.f(std::move(value), cast(wide, element(call, in, i, at)));
      if (row.average) value = value / const_of(wide, static_cast<double>(in.size()));
      return cast(dtype, std::move(value));
    })};
  };
  return def;
}

/// x to the power y in x's type; integers go through f64.
Expr power(const OpCall& call, const Expr& x, const Expr& y) {
  const auto& known = call.inputs[1].value;
  const double exponent = known && known->size() == 1 ? known->get(0) : 0;
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  const DType wide = is_float(x.dtype()) ? compute_type(x.dtype()) : DType::F64;
  const Expr base = cast(wide, x);
  if (exponent == 0.5) {
    // pow(-inf, 0.5) is inf and pow(-0, 0.5) is 0, which sqrt alone would not give.
    const Expr root = call1(MathFn::Sqrt, base + num(base, 0));
    return cast(x.dtype(), select(eq(base, lowest(wide)), highest(wide), root));
  }
  return cast(x.dtype(), math(MathFn::Pow, {base, cast(wide, y)}));
}

OpDef pow_def() {
  OpDef def{"", "Pow", 2, 2, Fusion::Injective};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Number));
    TW_TRY_STATUS(require_types(call, 1, Types::Number));
    return std::vector<TensorType>{{call.inputs[0].dtype, TW_TRY(broadcast_inputs(call))}};
  };
  def.define = [](const OpCall& call, const Tensors& in) {
    const Shape shape = *broadcast_inputs(call);
    return Tensors{compute("pow", dims_of(shape), [&](const Indices& at) {
      return power(call, element(call, in, 0, at), element(call, in, 1, at));
    })};
  };
  return def;
}

OpDef prelu_def() {
  OpDef def{"", "PRelu", 2, 2, Fusion::Injective};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Number));
    TW_TRY_STATUS(require_same_dtypes(call));
    const Shape& shape = call.inputs[0].shape;
    if (TW_TRY(broadcast_inputs(call)) != shape)
      return invalid(call, fmt::format("the slope of shape {} does not broadcast to the input's {}",
                                       to_string(call.inputs[1].shape), to_string(shape)));
    return std::vector<TensorType>{{call.inputs[0].dtype, shape}};
  };
  def.define = [](const OpCall& call, const Tensors& in) {
    return Tensors{compute("prelu", dims_of(in[0].shape()), [&](const Indices& at) {
      const Expr x = in[0](at);
      return select(x < num(x, 0), element(call, in, 1, at) * x, x);
    })};
  };
  return def;
}

OpDef clip_def() {
  OpDef def{"", "Clip", 1, 3, Fusion::Injective};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Number));
    TW_TRY_STATUS(require_same_dtypes(call));
    for (size_t i = 1; i < call.inputs.size(); ++i)
      if (const InputInfo* in = call.input(i); in && element_count(in->shape) != 1)
        return invalid(call, fmt::format("input {} must be a scalar", i),
                       fmt::format("its shape is {}", to_string(in->shape)));
    return std::vector<TensorType>{{call.inputs[0].dtype, call.inputs[0].shape}};
  };
  def.define = [](const OpCall& call, const Tensors& in) {
    return Tensors{compute("clip", dims_of(in[0].shape()), [&](const Indices& at) {
      Expr value = in[0](at);
      auto bound = [&](size_t i) {
        // A bound may have rank 1 while the input is a scalar.
        return element(call, in, i, Indices(in[i].rank(), int_imm(0)));
      };
      if (call.input(1)) value = max(std::move(value), bound(1));
      if (call.input(2)) value = min(std::move(value), bound(2));
      return value;
    })};
  };
  return def;
}

OpDef where_def() {
  OpDef def{"", "Where", 3, 3, Fusion::Injective};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_types(call, 0, Types::Bool));
    TW_TRY_STATUS(require_same_dtypes(call, 1));
    return std::vector<TensorType>{{call.inputs[1].dtype, TW_TRY(broadcast_inputs(call))}};
  };
  def.define = [](const OpCall& call, const Tensors& in) {
    const Shape shape = *broadcast_inputs(call);
    return Tensors{compute("where", dims_of(shape), [&](const Indices& at) {
      return select(element(call, in, 0, at), element(call, in, 1, at), element(call, in, 2, at));
    })};
  };
  return def;
}

/// Cast (type from the attribute) and CastLike (type of the second input).
OpDef cast_def(bool like) {
  OpDef def{"", like ? "CastLike" : "Cast", like ? 2 : 1, like ? 2 : 1, Fusion::Injective};
  auto target = [like](const OpCall& call) -> Result<DType> {
    if (like) return call.inputs[1].dtype;
    if (!call.attrs.has("to")) return invalid(call, "the attribute \"to\" is missing");
    return onnx_dtype(call.attrs.get_int("to", 0));
  };
  def.infer = [target](const OpCall& call) -> Inferred {
    return std::vector<TensorType>{{TW_TRY(target(call)), call.inputs[0].shape}};
  };
  def.define = [target](const OpCall& call, const Tensors& in) {
    const DType dtype = *target(call);
    return Tensors{compute("cast", dims_of(in[0].shape()),
                           [&](const Indices& at) { return convert(dtype, in[0](at)); })};
  };
  return def;
}

OpDef dropout_def() {
  OpDef def{"", "Dropout", 1, 3, Fusion::Injective, {1, 2}};
  def.infer = [](const OpCall& call) -> Inferred {
    TW_TRY_STATUS(require_float(call));
    const bool training = call.input(2) && call.inputs[2].value->get_int(0) != 0;
    const double ratio = call.input(1) ? call.inputs[1].value->get(0) : 0.5;
    if (training && ratio != 0)
      return unsupported(call, "training mode draws random numbers",
                         fmt::format("training_mode is true, ratio is {}", ratio),
                         "export the model for inference");
    const Shape& shape = call.inputs[0].shape;
    return std::vector<TensorType>{{call.inputs[0].dtype, shape}, {DType::Bool, shape}};
  };
  def.define = [](const OpCall&, const Tensors& in) {
    const std::vector<Dim> dims = dims_of(in[0].shape());
    return Tensors{compute("dropout", dims, [&](const Indices& at) { return in[0](at); }),
                   compute("mask", dims, [](const Indices&) { return bool_imm(true); })};
  };
  return def;
}

}  // namespace

void add_elementwise_ops(std::vector<OpDef>& table) {
  for (const UnaryRow& row : kUnary) table.push_back(unary_def(row));
  for (const BinaryRow& row : kBinary) table.push_back(binary_def(row));
  for (const VariadicRow& row : kVariadic) table.push_back(variadic_def(row));
  table.push_back(pow_def());
  table.push_back(prelu_def());
  table.push_back(clip_def());
  table.push_back(where_def());
  table.push_back(cast_def(false));
  table.push_back(cast_def(true));
  table.push_back(dropout_def());
}

}  // namespace tilewright::tensor
