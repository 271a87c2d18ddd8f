// Expressions: pure, typed, immutable. This header is the grammar; docs/ir.md is the meaning.
//
//   Expr = IntImm | FloatImm | VarRef | Unary | Binary | Select | Cast | Load | MathCall
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/dtype.h"

namespace tilewright {

struct ExprNode;
struct BufferNode;

/// A handle to an immutable expression; copying shares it. The empty handle means "absent".
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }

  DType dtype() const;
  /// The payload if it is of kind T, else null.
  template <class T>
  const T* as() const;
  const ExprNode* get() const { return node_.get(); }
  friend bool operator==(const Expr&, const Expr&) = delete;  // say same() or equal()

 private:
  std::shared_ptr<const ExprNode> node_;
};

/// A variable: loop, block iteration or scalar parameter. Identity is the node, not the name.
class Var {
 public:
  Var() = default;
  explicit Var(std::string name, DType dtype = DType::I64)
      : node_(std::make_shared<const Node>(Node{std::move(name), dtype})) {}
  explicit operator bool() const { return node_ != nullptr; }
  const std::string& name() const { return node_->name; }
  DType dtype() const { return node_->dtype; }
  const void* id() const { return node_.get(); }
  friend bool operator==(const Var& a, const Var& b) { return a.node_ == b.node_; }
  /// For ordered containers only; never lets output depend on it.
  friend bool operator<(const Var& a, const Var& b) { return a.node_ < b.node_; }

 private:
  struct Node {
    std::string name;
    DType dtype;
  };
  std::shared_ptr<const Node> node_;
};

/// A multi-dimensional array in some memory. Identity is the node; buffers never overlap.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope = "global");
  explicit operator bool() const { return node_ != nullptr; }
  const std::string& name() const;
  DType dtype() const;
  const std::vector<Expr>& shape() const;  ///< extents, i64; may refer to scalar parameters
  /// `global`, `shared`, `warp`, `local` or `<target>.<memory>`.
  const std::string& scope() const;
  size_t rank() const { return shape().size(); }
  const void* id() const { return node_.get(); }
  friend bool operator==(const Buffer& a, const Buffer& b) { return a.node_ == b.node_; }
  friend bool operator<(const Buffer& a, const Buffer& b) { return a.node_ < b.node_; }

 private:
  std::shared_ptr<const BufferNode> node_;
};

struct BufferNode {
  std::string name;
  DType dtype;
  std::vector<Expr> shape;
  std::string scope;
};

enum class UnaryOp { Neg, Not, BitNot };  ///< Not is logical (bool); BitNot is for integers

/// Div and Mod of integers are floor division and its remainder. And, Or are lazy.
enum class BinaryOp {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  Min,
  Max,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr
};

/// Functions of numbers. TruncDiv, TruncMod are C's integer `/` and `%` (TruncMod of floats: fmod).
enum class MathFn {
  Abs,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Sigmoid,
  Floor,
  Ceil,
  Round,
  Trunc,
  IsNan,
  IsInf,
  Popcount,
  Pow,
  TruncDiv,
  TruncMod
};

struct IntImm {
  int64_t value;
};  ///< integer or bool of the node's dtype (u64: its bit pattern)
struct FloatImm {
  double value;
};  ///< rounded to the node's dtype
struct VarRef {
  Var var;
};
struct Unary {
  UnaryOp op;
  Expr a;
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};  ///< both operands of one dtype
struct Select {
  Expr condition, on_true, on_false;
};  ///< lazy: only the chosen side is evaluated
struct Cast {
  Expr a;
  bool bits = false;
};  ///< to the node's dtype; bits: reinterpret
struct Load {
  Buffer buffer;
  std::vector<Expr> indices;
};
struct MathCall {
  MathFn fn;
  std::vector<Expr> args;
};

using ExprOp = std::variant<IntImm, FloatImm, VarRef, Unary, Binary, Select, Cast, Load, MathCall>;

struct ExprNode {
  DType dtype;
  ExprOp op;
};

inline DType Expr::dtype() const { return node_->dtype; }
template <class T>
const T* Expr::as() const {
  return std::get_if<T>(&node_->op);
}

/// `match(x, [](const IntImm& i) {...}, ...)`: every kind handled, or it does not compile.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;
template <class... F>
decltype(auto) match(const Expr& e, F&&... f) {
  return std::visit(Overloaded{std::forward<F>(f)...}, e.get()->op);
}

// --- Constructors. They check dtypes with TW_CHECK and fold nothing: what is built is what is
// printed.

Expr int_imm(int64_t value, DType dtype = DType::I64);
Expr float_imm(double value, DType dtype = DType::F32);
Expr bool_imm(bool value);
/// IntImm or FloatImm, whichever `dtype` needs.
Expr const_of(DType dtype, double value);
Expr ref(const Var& var);
Expr unary(UnaryOp op, Expr a);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr select(Expr condition, Expr on_true, Expr on_false);
Expr cast(DType dtype, Expr a);     ///< the same handle if `a` already has that dtype
Expr bitcast(DType dtype, Expr a);  ///< requires: equal bit widths
Expr load(const Buffer& buffer, std::vector<Expr> indices);
Expr math(MathFn fn, std::vector<Expr> args);

inline Expr operator-(Expr a) { return unary(UnaryOp::Neg, std::move(a)); }
#define TW_BINARY_OPERATOR(symbol, op)                       \
  inline Expr operator symbol(Expr a, Expr b) {              \
    return binary(BinaryOp::op, std::move(a), std::move(b)); \
  }                                                          \
  inline Expr operator symbol(Expr a, int64_t b) {           \
    Expr c = const_of(a.dtype(), static_cast<double>(b));    \
    return binary(BinaryOp::op, std::move(a), std::move(c)); \
  }
TW_BINARY_OPERATOR(+, Add)
TW_BINARY_OPERATOR(-, Sub)
TW_BINARY_OPERATOR(*, Mul)
TW_BINARY_OPERATOR(/, Div)
TW_BINARY_OPERATOR(%, Mod)
TW_BINARY_OPERATOR(<, Lt)
TW_BINARY_OPERATOR(<=, Le)
TW_BINARY_OPERATOR(>, Gt)
TW_BINARY_OPERATOR(>=, Ge)
#undef TW_BINARY_OPERATOR
// No operators for these: on handles !, && and || would be mistaken for tests of presence.
inline Expr logical_not(Expr a) { return unary(UnaryOp::Not, std::move(a)); }
inline Expr logical_and(Expr a, Expr b) {
  return binary(BinaryOp::And, std::move(a), std::move(b));
}
inline Expr logical_or(Expr a, Expr b) { return binary(BinaryOp::Or, std::move(a), std::move(b)); }
inline Expr eq(Expr a, Expr b) { return binary(BinaryOp::Eq, std::move(a), std::move(b)); }
inline Expr ne(Expr a, Expr b) { return binary(BinaryOp::Ne, std::move(a), std::move(b)); }
inline Expr min(Expr a, Expr b) { return binary(BinaryOp::Min, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return binary(BinaryOp::Max, std::move(a), std::move(b)); }

// --- Questions.

/// The value of an IntImm, else empty.
std::optional<int64_t> as_int(const Expr& e);
inline bool is_const_int(const Expr& e, int64_t value) { return as_int(e) == value; }
/// Whether `e` is the constant 0 of any type, -0 included.
inline bool is_zero(const Expr& e) {
  const auto* real = e.as<FloatImm>();
  return is_const_int(e, 0) || (real != nullptr && real->value == 0);
}
/// The same handle (cheap; equal expressions may answer false).
inline bool same(const Expr& a, const Expr& b) { return a.get() == b.get(); }
/// Structurally equal, variables and buffers by identity. NaN immediates are equal to themselves.
bool equal(const Expr& a, const Expr& b);

std::string_view symbol(BinaryOp op);  ///< `+`, `min`, `&&`, ...
bool is_comparison(BinaryOp op);
std::string_view name(MathFn fn);  ///< `exp`, `trunc_div`, ...
std::optional<MathFn> parse_math_fn(std::string_view text);
int arity(MathFn fn);

}  // namespace tilewright
