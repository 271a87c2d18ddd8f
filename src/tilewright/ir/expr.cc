#include "tilewright/ir/expr.h"

#include <bit>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright {
namespace {

template <class Op>
Expr node(DType dtype, Op op) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{dtype, ExprOp(std::move(op))}));
}

constexpr std::string_view kBinarySymbols[] = {"+",  "-",  "*", "/",  "%",  "min", "max",
                                               "==", "!=", "<", "<=", ">",  ">=",  "&&",
                                               "||", "&",  "|", "^",  "<<", ">>"};

struct MathRow {
  std::string_view name;
  int arity;
};
constexpr MathRow kMath[] = {
    {"abs", 1},     {"exp", 1},      {"log", 1},   {"sqrt", 1},      {"rsqrt", 1},    {"sin", 1},
    {"cos", 1},     {"tan", 1},      {"asin", 1},  {"acos", 1},      {"atan", 1},     {"sinh", 1},
    {"cosh", 1},    {"tanh", 1},     {"asinh", 1}, {"acosh", 1},     {"atanh", 1},    {"erf", 1},
    {"sigmoid", 1}, {"floor", 1},    {"ceil", 1},  {"round", 1},     {"trunc", 1},    {"isnan", 1},
    {"isinf", 1},   {"popcount", 1}, {"pow", 2},   {"trunc_div", 2}, {"trunc_mod", 2}};

bool equal_all(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}

}  // namespace

Buffer::Buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope)
    : node_(std::make_shared<const BufferNode>(
          BufferNode{std::move(name), dtype, std::move(shape), std::move(scope)})) {}
const std::string& Buffer::name() const { return node_->name; }
DType Buffer::dtype() const { return node_->dtype; }
const std::vector<Expr>& Buffer::shape() const { return node_->shape; }
const std::string& Buffer::scope() const { return node_->scope; }

Expr int_imm(int64_t value, DType dtype) {
  TW_CHECK(!is_float(dtype), "int_imm of {}", name(dtype));
  return node(dtype, IntImm{value});
}

Expr float_imm(double value, DType dtype) {
  TW_CHECK(is_float(dtype), "float_imm of {}", name(dtype));
  if (dtype == DType::F32) value = static_cast<float>(value);
  if (dtype == DType::F16) value = f16_to_f32(f32_to_f16(static_cast<float>(value)));
  if (dtype == DType::BF16) value = bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
  return node(dtype, FloatImm{value});
}

Expr bool_imm(bool value) { return node(DType::Bool, IntImm{value}); }

Expr const_of(DType dtype, double value) {
  if (is_float(dtype)) return float_imm(value, dtype);
  if (dtype == DType::Bool) return bool_imm(value != 0);
  return int_imm(static_cast<int64_t>(value), dtype);
}

Expr ref(const Var& var) { return node(var.dtype(), VarRef{var}); }

Expr unary(UnaryOp op, Expr a) {
  const DType dtype = a.dtype();
  TW_CHECK(op != UnaryOp::Not || dtype == DType::Bool, "! of {}", name(dtype));
  TW_CHECK(op != UnaryOp::BitNot || is_int(dtype), "~ of {}", name(dtype));
  TW_CHECK(op != UnaryOp::Neg || dtype != DType::Bool, "- of bool");
  return node(dtype, Unary{op, std::move(a)});
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  const DType dtype = a.dtype();
  TW_CHECK(dtype == b.dtype(), "operands of {} have types {} and {}", symbol(op), name(dtype),
           name(b.dtype()));
  const bool logical = op == BinaryOp::And || op == BinaryOp::Or;
  TW_CHECK(!logical || dtype == DType::Bool, "{} of {}", symbol(op), name(dtype));
  const bool bitwise = op >= BinaryOp::BitAnd;
  TW_CHECK(!bitwise || is_int(dtype), "{} of {}", symbol(op), name(dtype));
  const DType result = is_comparison(op) || logical ? DType::Bool : dtype;
  return node(result, Binary{op, std::move(a), std::move(b)});
}

Expr select(Expr condition, Expr on_true, Expr on_false) {
  TW_CHECK(condition.dtype() == DType::Bool, "select on {}", name(condition.dtype()));
  TW_CHECK(on_true.dtype() == on_false.dtype(), "select of {} and {}", name(on_true.dtype()),
           name(on_false.dtype()));
  const DType dtype = on_true.dtype();
  return node(dtype, Select{std::move(condition), std::move(on_true), std::move(on_false)});
}

Expr cast(DType dtype, Expr a) {
  if (a.dtype() == dtype) return a;
  return node(dtype, Cast{std::move(a), false});
}

Expr bitcast(DType dtype, Expr a) {
  TW_CHECK(bit_width(dtype) == bit_width(a.dtype()), "bitcast {} to {}", name(a.dtype()),
           name(dtype));
  return node(dtype, Cast{std::move(a), true});
}

Expr load(const Buffer& buffer, std::vector<Expr> indices) {
  TW_CHECK(indices.size() == buffer.rank(), "{} indices for {} of rank {}", indices.size(),
           buffer.name(), buffer.rank());
  return node(buffer.dtype(), Load{buffer, std::move(indices)});
}

Expr math(MathFn fn, std::vector<Expr> args) {
  TW_CHECK(static_cast<int>(args.size()) == arity(fn), "{} with {} arguments", name(fn),
           args.size());
  DType dtype = args[0].dtype();
  for (const Expr& arg : args) TW_CHECK(arg.dtype() == dtype, "{} of mixed types", name(fn));
  if (fn == MathFn::IsNan || fn == MathFn::IsInf) dtype = DType::Bool;
  return node(dtype, MathCall{fn, std::move(args)});
}

std::optional<int64_t> as_int(const Expr& e) {
  if (const auto* imm = e.as<IntImm>()) return imm->value;
  return std::nullopt;
}

bool equal(const Expr& a, const Expr& b) {
  if (same(a, b)) return true;
  if (!a || !b || a.dtype() != b.dtype() || a.get()->op.index() != b.get()->op.index())
    return false;
  return match(
      a, [&](const IntImm& x) { return x.value == b.as<IntImm>()->value; },
      [&](const FloatImm& x) {
        return std::bit_cast<uint64_t>(x.value) == std::bit_cast<uint64_t>(b.as<FloatImm>()->value);
      },
      [&](const VarRef& x) { return x.var == b.as<VarRef>()->var; },
      [&](const Unary& x) { return x.op == b.as<Unary>()->op && equal(x.a, b.as<Unary>()->a); },
      [&](const Binary& x) {
        const auto& y = *b.as<Binary>();
        return x.op == y.op && equal(x.a, y.a) && equal(x.b, y.b);
      },
      [&](const Select& x) {
        const auto& y = *b.as<Select>();
        return equal(x.condition, y.condition) && equal(x.on_true, y.on_true) &&
               equal(x.on_false, y.on_false);
      },
      [&](const Cast& x) { return x.bits == b.as<Cast>()->bits && equal(x.a, b.as<Cast>()->a); },
      [&](const Load& x) {
        return x.buffer == b.as<Load>()->buffer && equal_all(x.indices, b.as<Load>()->indices);
      },
      [&](const MathCall& x) {
        return x.fn == b.as<MathCall>()->fn && equal_all(x.args, b.as<MathCall>()->args);
      });
}

std::string_view symbol(BinaryOp op) { return kBinarySymbols[static_cast<int>(op)]; }
bool is_comparison(BinaryOp op) { return op >= BinaryOp::Eq && op <= BinaryOp::Ge; }
std::string_view name(MathFn fn) { return kMath[static_cast<int>(fn)].name; }
int arity(MathFn fn) { return kMath[static_cast<int>(fn)].arity; }
std::optional<MathFn> parse_math_fn(std::string_view text) {
  for (size_t i = 0; i < std::size(kMath); ++i)
    if (kMath[i].name == text) return static_cast<MathFn>(i);
  return std::nullopt;
}

}  // namespace tilewright
