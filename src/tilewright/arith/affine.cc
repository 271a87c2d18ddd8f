// Intervals with infinities, and sums of coefficient * term.
//
//   3*x + 2*(y/4) - x + 5   <->   Affine{5, {x: 2, y/4: 2}}
//
// Terms are whatever is no sum itself: variables, quotients, products of variables. Every operation
// says whether a coefficient would overflow.
#include "tilewright/arith/affine.h"

#include <algorithm>
#include <numeric>

namespace tilewright::arith {
namespace {

bool infinite(int64_t v) { return v == kMinInt || v == kMaxInt; }

int64_t saturated(bool negative) { return negative ? kMinInt : kMaxInt; }

int64_t add_bound(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? saturated(a < 0) : out;
}

int64_t multiply_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t out;
  if (infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &out))
    return saturated((a < 0) != (b < 0));
  return out;
}

int64_t divide_bound(int64_t a, int64_t b) {
  if (infinite(a)) return saturated((a < 0) != (b < 0));
  if (infinite(b)) return a == 0 ? 0 : ((a < 0) != (b < 0) ? -1 : 0);
  if (a == kMinInt && b == -1) return kMaxInt;
  return floor_div(a, b);
}

bool is_product(const Expr& e) {
  const auto* b = e.as<Binary>();
  return b != nullptr && b->op == BinaryOp::Mul;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - ((a % b != 0 && ((a < 0) != (b < 0))) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

Interval add(const Interval& a, const Interval& b) {
  Interval out{add_bound(a.lo, b.lo), add_bound(a.hi, b.hi)};
  if (a.lo == kMinInt || b.lo == kMinInt) out.lo = kMinInt;
  if (a.hi == kMaxInt || b.hi == kMaxInt) out.hi = kMaxInt;
  return out;
}

Interval scale(const Interval& a, int64_t c) {
  const int64_t x = multiply_bound(a.lo, c), y = multiply_bound(a.hi, c);
  return c >= 0 ? Interval{x, y} : Interval{y, x};
}

Interval multiply(const Interval& a, const Interval& b) {
  const int64_t p[] = {multiply_bound(a.lo, b.lo), multiply_bound(a.lo, b.hi),
                       multiply_bound(a.hi, b.lo), multiply_bound(a.hi, b.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Interval floor_div(const Interval& a, const Interval& b) {
  if (b.lo <= 0 && b.hi >= 0) return {};
  const int64_t p[] = {divide_bound(a.lo, b.lo), divide_bound(a.lo, b.hi), divide_bound(a.hi, b.lo),
                       divide_bound(a.hi, b.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Interval floor_mod(const Interval& a, const Interval& b) {
  if (b.lo <= 0) return b.hi < 0 && b.lo != kMinInt ? Interval{b.lo + 1, 0} : Interval{};
  if (b.lo == b.hi && a.bounded()) {
    const int64_t cell = floor_div(a.lo, b.lo);
    if (cell == floor_div(a.hi, b.lo)) return {a.lo - cell * b.lo, a.hi - cell * b.lo};
  }
  Interval out{0, b.hi == kMaxInt ? kMaxInt : b.hi - 1};
  if (a.lo >= 0) {
    if (a.hi < b.lo) return a;
    out.hi = std::min(out.hi, a.hi);
  }
  return out;
}

Interval unite(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval intersect(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval type_range(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  const int bits = bit_width(dtype);
  if (!is_int(dtype) || bits == 64) return {};
  if (is_unsigned_int(dtype)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::I8:
      return static_cast<int8_t>(value);
    case DType::U8:
      return static_cast<uint8_t>(value);
    case DType::I16:
      return static_cast<int16_t>(value);
    case DType::U16:
      return static_cast<uint16_t>(value);
    case DType::I32:
      return static_cast<int32_t>(value);
    case DType::U32:
      return static_cast<uint32_t>(value);
    case DType::Bool:
      return value != 0;
    default:
      return value;
  }
}

namespace {

std::optional<int64_t> fold_bits(BinaryOp op, int64_t a, int64_t b, DType dtype) {
  const int bits = bit_width(dtype);
  switch (op) {
    case BinaryOp::BitAnd:
      return a & b;
    case BinaryOp::BitOr:
      return a | b;
    case BinaryOp::BitXor:
      return a ^ b;
    case BinaryOp::Shl:
      if (b < 0) return std::nullopt;
      return b >= bits ? 0 : wrap(static_cast<int64_t>(static_cast<uint64_t>(a) << b), dtype);
    case BinaryOp::Shr:
      if (b < 0) return std::nullopt;
      return b >= bits ? (a < 0 ? -1 : 0) : a >> b;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> fold(BinaryOp op, int64_t a, int64_t b, DType dtype) {
  if (dtype == DType::U64 && op != BinaryOp::Eq && op != BinaryOp::Ne) return std::nullopt;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::Add:
      return wrap(static_cast<int64_t>(ua + ub), dtype);
    case BinaryOp::Sub:
      return wrap(static_cast<int64_t>(ua - ub), dtype);
    case BinaryOp::Mul:
      return wrap(static_cast<int64_t>(ua * ub), dtype);
    case BinaryOp::Div:
      if (b == 0 || (b == -1 && a == kMinInt)) return std::nullopt;
      return wrap(floor_div(a, b), dtype);
    case BinaryOp::Mod:
      if (b == 0) return std::nullopt;
      return wrap(floor_mod(a, b), dtype);
    case BinaryOp::Min:
      return std::min(a, b);
    case BinaryOp::Max:
      return std::max(a, b);
    case BinaryOp::Eq:
      return a == b;
    case BinaryOp::Ne:
      return a != b;
    case BinaryOp::Lt:
      return a < b;
    case BinaryOp::Le:
      return a <= b;
    case BinaryOp::Gt:
      return a > b;
    case BinaryOp::Ge:
      return a >= b;
    case BinaryOp::And:
      return a != 0 && b != 0;
    case BinaryOp::Or:
      return a != 0 || b != 0;
    default:
      return fold_bits(op, a, b, dtype);
  }
}

void factors(const Expr& e, std::vector<Expr>& out) {
  if (is_product(e)) {
    factors(e.as<Binary>()->a, out);
    factors(e.as<Binary>()->b, out);
  } else {
    out.push_back(e);
  }
}

Expr monomial(const Expr& a, const Expr& b) {
  std::vector<Expr> right;
  factors(b, right);
  Expr out = a;
  for (const Expr& f : right) out = binary(BinaryOp::Mul, out, f);
  return out;
}

Expr without_factor(const Expr& term, const Expr& factor) {
  std::vector<Expr> parts;
  factors(term, parts);
  Expr out;
  bool found = false;
  for (const Expr& f : parts) {
    if (!found && same_term(f, factor))
      found = true;
    else
      out = out ? binary(BinaryOp::Mul, out, f) : f;
  }
  if (!found) return Expr();
  return out ? out : int_imm(1, term.dtype());
}

std::optional<Affine> times(const Affine& a, const Expr& factor) {
  Affine out;
  if (!add_term(out, factor, a.constant)) return std::nullopt;
  for (const auto& [term, c] : a.terms)
    if (!add_term(out, monomial(term, factor), c)) return std::nullopt;
  return out;
}

bool same_term(const Expr& a, const Expr& b) {
  if (same(a, b)) return true;
  if (a.dtype() != b.dtype() || a.get()->op.index() != b.get()->op.index()) return false;
  const auto* x = a.as<Binary>();
  if (x == nullptr) return equal(a, b);
  const auto* y = b.as<Binary>();
  if (x->op != y->op) return false;
  if (x->op == BinaryOp::Mul) {
    std::vector<Expr> left, right;
    factors(a, left);
    factors(b, right);
    if (left.size() != right.size()) return false;
    for (const Expr& f : left) {
      const auto it =
          std::find_if(right.begin(), right.end(), [&](const Expr& g) { return same_term(f, g); });
      if (it == right.end()) return false;
      right.erase(it);
    }
    return true;
  }
  if (x->op == BinaryOp::Min || x->op == BinaryOp::Max)
    return (same_term(x->a, y->a) && same_term(x->b, y->b)) ||
           (same_term(x->a, y->b) && same_term(x->b, y->a));
  if (x->op == BinaryOp::Add || x->op == BinaryOp::Sub) {
    if (!is_int(a.dtype())) return equal(a, b);
    Affine d;
    return flatten(a, 1, d) && flatten(b, -1, d) && d.terms.empty() && d.constant == 0;
  }
  return same_term(x->a, y->a) && same_term(x->b, y->b);
}

bool add_constant(Affine& a, int64_t c) {
  return !__builtin_add_overflow(a.constant, c, &a.constant);
}

bool add_term(Affine& a, const Expr& term, int64_t c) {
  if (c == 0) return true;
  for (auto it = a.terms.begin(); it != a.terms.end(); ++it) {
    if (!same_term(it->first, term)) continue;
    if (__builtin_add_overflow(it->second, c, &it->second)) return false;
    if (it->second == 0) a.terms.erase(it);
    return true;
  }
  a.terms.emplace_back(term, c);
  return true;
}

bool add_scaled(Affine& a, const Affine& b, int64_t c) {
  int64_t product;
  if (__builtin_mul_overflow(b.constant, c, &product) || !add_constant(a, product)) return false;
  for (const auto& [term, k] : b.terms)
    if (__builtin_mul_overflow(k, c, &product) || !add_term(a, term, product)) return false;
  return true;
}

std::optional<Affine> minus(const Affine& a, const Affine& b) {
  Affine out = a;
  if (!add_scaled(out, b, -1)) return std::nullopt;
  return out;
}

std::optional<Affine> times(const Affine& a, int64_t c) {
  Affine out;
  if (!add_scaled(out, a, c)) return std::nullopt;
  return out;
}

int64_t coefficient_of(const Affine& a, const Expr& term) {
  for (const auto& [t, c] : a.terms)
    if (same_term(t, term)) return c;
  return 0;
}

bool includes(const Affine& a, const Affine& b, int64_t c) {
  for (const auto& [term, k] : b.terms) {
    int64_t want;
    if (__builtin_mul_overflow(k, c, &want) || coefficient_of(a, term) != want) return false;
  }
  return true;
}

std::optional<Affine> splice(const Affine& a, const Affine& gone, const Affine& come) {
  Affine out;
  out.constant = a.constant;
  bool placed = false;
  for (const auto& [term, c] : a.terms) {
    if (!placed && coefficient_of(gone, term) != 0) {
      if (!add_scaled(out, come, 1)) return std::nullopt;
      placed = true;
    }
    if (!add_term(out, term, c)) return std::nullopt;
  }
  if (!placed && !add_scaled(out, come, 1)) return std::nullopt;
  if (!add_scaled(out, gone, -1)) return std::nullopt;
  return out;
}

int64_t content(const Affine& a) {
  int64_t g = 0;
  for (const auto& [term, c] : a.terms) g = std::gcd(g, c);
  return g;
}

bool flatten(const Expr& e, int64_t scale, Affine& out) {
  if (const auto value = as_int(e)) {
    int64_t product;
    return !__builtin_mul_overflow(*value, scale, &product) && add_constant(out, product);
  }
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Neg && scale != kMinInt)
    return flatten(u->a, -scale, out);
  if (const auto* b = e.as<Binary>()) {
    if (b->op == BinaryOp::Add) return flatten(b->a, scale, out) && flatten(b->b, scale, out);
    if (b->op == BinaryOp::Sub && scale != kMinInt)
      return flatten(b->a, scale, out) && flatten(b->b, -scale, out);
    if (b->op == BinaryOp::Mul) {
      int64_t product;
      if (const auto c = as_int(b->b))
        return !__builtin_mul_overflow(*c, scale, &product) && flatten(b->a, product, out);
      if (const auto c = as_int(b->a))
        return !__builtin_mul_overflow(*c, scale, &product) && flatten(b->b, product, out);
    }
  }
  return add_term(out, e, scale);
}

int64_t Affine::coefficient(const Var& var) const {
  for (const auto& [term, c] : terms)
    if (const auto* r = term.as<VarRef>(); r != nullptr && r->var == var) return c;
  return 0;
}

Expr to_expr(const Affine& a, DType dtype) {
  Expr out;
  auto scaled = [&](const Expr& term, int64_t c) {
    return c == 1 ? term : binary(BinaryOp::Mul, term, int_imm(c, dtype));
  };
  for (const auto& [term, c] : a.terms)
    if (c > 0) out = out ? binary(BinaryOp::Add, out, scaled(term, c)) : scaled(term, c);
  int64_t constant = a.constant;
  if (!out && constant > 0) {
    out = int_imm(constant, dtype);
    constant = 0;
  }
  for (const auto& [term, c] : a.terms) {
    if (c > 0) continue;
    if (!out)
      out = c == -1 ? unary(UnaryOp::Neg, term) : scaled(term, c);
    else if (c == kMinInt)
      out = binary(BinaryOp::Add, out, scaled(term, c));
    else
      out = binary(BinaryOp::Sub, out, scaled(term, -c));
  }
  if (!out) return int_imm(constant, dtype);
  if (constant > 0) return binary(BinaryOp::Add, out, int_imm(constant, dtype));
  if (constant == kMinInt) return binary(BinaryOp::Add, out, int_imm(constant, dtype));
  if (constant < 0) return binary(BinaryOp::Sub, out, int_imm(-constant, dtype));
  return out;
}

}  // namespace tilewright::arith
