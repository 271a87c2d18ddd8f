// Comparisons and conditions.
#include <numeric>

#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

/// True if evaluating `e` may be an error: a load out of bounds, a division by zero.
bool partial(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    found |= x.as<Load>() != nullptr;
    const auto* b = x.as<Binary>();
    if (b != nullptr && (b->op == BinaryOp::Div || b->op == BinaryOp::Mod))
      found |= !as_int(b->b) || *as_int(b->b) == 0;
  });
  return found;
}

/// d >= 0 over the integers, divided by the common factor of its coefficients.
void tighten(Affine& d) {
  const int64_t g = content(d);
  if (g <= 1) return;
  for (auto& entry : d.terms) entry.second /= g;
  d.constant = floor_div(d.constant, g);
}

/// d = positive - negative, both without negative coefficients or constants.
struct Sides {
  Affine positive, negative;
};
Sides sides_of(const Affine& d) {
  Sides out;
  for (const auto& [term, c] : d.terms)
    (c > 0 ? out.positive : out.negative).terms.emplace_back(term, std::abs(c));
  return out;
}

}  // namespace

BinaryOp opposite(BinaryOp op) {
  switch (op) {
    case BinaryOp::Eq:
      return BinaryOp::Ne;
    case BinaryOp::Ne:
      return BinaryOp::Eq;
    case BinaryOp::Lt:
      return BinaryOp::Ge;
    case BinaryOp::Le:
      return BinaryOp::Gt;
    case BinaryOp::Gt:
      return BinaryOp::Le;
    default:
      return BinaryOp::Lt;
  }
}

Expr Simplifier::negated(const Expr& e) {
  if (const auto c = as_int(e)) return bool_imm(*c == 0);
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Not) return u->a;
  if (const auto* b = e.as<Binary>()) {
    // NaN makes both `<` and `>=` false.
    if (is_comparison(b->op) && !is_float(b->a.dtype())) return binary(opposite(b->op), b->a, b->b);
    if (b->op == BinaryOp::And) return logical_or(negated(b->a), negated(b->b));
    if (b->op == BinaryOp::Or) return logical_and(negated(b->a), negated(b->b));
  }
  return logical_not(e);
}

Expr Simplifier::comparison(const Expr& e, const Binary& x) {
  const Expr a = run(x.a), b = run(x.b);
  const DType dtype = a.dtype();
  if (is_float(dtype)) return same(a, x.a) && same(b, x.b) ? e : binary(x.op, a, b);
  const Expr plain = rebuilt(e, a, b);
  if (!plain.as<Binary>()) return plain;
  if (equal(a, b))
    return bool_imm(x.op == BinaryOp::Eq || x.op == BinaryOp::Le || x.op == BinaryOp::Ge);
  if (const auto truth = context_.stated(plain)) return bool_imm(*truth);
  if (dtype == DType::Bool || dtype == DType::U64) return plain;
  const Affine left = context_.affine(a), right = context_.affine(b);
  const bool upward = x.op == BinaryOp::Lt || x.op == BinaryOp::Le;
  auto d = upward ? minus(right, left) : minus(left, right);
  if (!d) return plain;
  recombine(*d, dtype);
  if (x.op == BinaryOp::Eq || x.op == BinaryOp::Ne)
    return equality(plain, x.op, std::move(*d), dtype);
  if ((x.op == BinaryOp::Lt || x.op == BinaryOp::Gt) && !add_constant(*d, -1)) return plain;
  return ordering(plain, std::move(*d), dtype);
}

/// d >= 0, decided or in the form `terms < terms + c`, `terms < c` or `terms >= c`.
Expr Simplifier::ordering(const Expr& plain, Affine d, DType dtype) {
  if (d.terms.empty()) return bool_imm(d.constant >= 0);
  if (context_.nonneg(d)) return bool_imm(true);
  auto below = times(d, -1);
  if (below && add_constant(*below, -1) && context_.nonneg(*below)) return bool_imm(false);
  // d >= 0 if and only if floor(d / g) >= 0; try the factors that simplify it.
  for (size_t i = 0; i < d.terms.size(); ++i) {
    const int64_t g = std::abs(d.terms[i].second);
    if (g <= 1) continue;
    Affine common{floor_div(d.constant, g), {}}, rest{floor_mod(d.constant, g), {}};
    for (const auto& [term, c] : d.terms)
      (c % g == 0 ? common : rest).terms.emplace_back(term, c % g == 0 ? c / g : c);
    const Interval y = context_.range(rest);
    if (!y.bounded() || floor_div(y.lo, g) != floor_div(y.hi, g)) continue;
    if (!add_constant(common, floor_div(y.lo, g))) continue;
    d = std::move(common);
    i = static_cast<size_t>(-1);
  }
  tighten(d);
  Sides s = sides_of(d);
  Expr left, right;
  BinaryOp op = BinaryOp::Lt;
  if (s.negative.terms.empty()) {
    if (d.constant == kMinInt) return plain;
    op = BinaryOp::Ge;
    left = context_.exact(s.positive, dtype) ? write(s.positive, dtype) : Expr();
    right = write(constant_affine(-d.constant), dtype);
  } else {
    if (__builtin_add_overflow(d.constant, 1, &s.positive.constant)) return plain;
    const bool ok = context_.exact(s.negative, dtype) && context_.exact(s.positive, dtype);
    left = ok ? write(s.negative, dtype) : Expr();
    right = ok ? write(s.positive, dtype) : Expr();
  }
  if (!left || !right) return plain;
  const Expr out = binary(op, left, right);
  if (const auto truth = context_.stated(out)) return bool_imm(*truth);
  return out;
}

/// True if some modulus shows that the sum is never 0: `(x + 4) % 8` against `x % 8`.
bool Simplifier::never_zero(const Affine& a, DType dtype) {
  int64_t m = 0;
  for (const auto& [term, c] : a.terms) {
    const auto* b = term.as<Binary>();
    if (b == nullptr || b->op != BinaryOp::Mod || !as_int(b->b) || *as_int(b->b) <= 0) continue;
    int64_t cd;
    if (__builtin_mul_overflow(c, *as_int(b->b), &cd) || cd == kMinInt) return false;
    m = std::gcd(m, cd);
  }
  if (m <= 1) return false;
  Affine open;
  open.constant = a.constant;
  for (const auto& [term, c] : a.terms) {
    const auto* b = term.as<Binary>();
    const bool mod = b != nullptr && b->op == BinaryOp::Mod && as_int(b->b) && *as_int(b->b) > 0;
    if (!add_scaled(open, mod ? context_.affine(b->a) : term_affine(term), c)) return false;
  }
  const auto r = modulo(open, m, dtype);
  if (!r) return false;
  const Interval range = context_.range(*r);
  return range.lo > 0 || range.hi < 0;
}

/// d == 0 or d != 0.
Expr Simplifier::equality(const Expr& plain, BinaryOp op, Affine d, DType dtype) {
  const bool is_eq = op == BinaryOp::Eq;
  if (d.terms.empty()) return bool_imm((d.constant == 0) == is_eq);
  const int64_t g = content(d);
  if (d.constant % g != 0) return bool_imm(!is_eq);
  for (auto& entry : d.terms) entry.second /= g;
  d.constant /= g;
  auto negative = times(d, -1);
  if (!negative) return plain;
  const bool up = context_.nonneg(d), down = context_.nonneg(*negative);
  if (up && down) return bool_imm(is_eq);
  Affine above = d, below = *negative;
  if (add_constant(above, -1) && context_.nonneg(above)) return bool_imm(!is_eq);
  if (add_constant(below, -1) && context_.nonneg(below)) return bool_imm(!is_eq);
  if (never_zero(d, dtype)) return bool_imm(!is_eq);
  Sides s = sides_of(d);
  if (s.positive.terms.empty()) {
    std::swap(s.positive, s.negative);
    d.constant = negative->constant;
  }
  if (d.constant == kMinInt) return plain;
  s.negative.constant = -d.constant;
  if (!context_.exact(s.positive, dtype) || !context_.exact(s.negative, dtype)) return plain;
  const Expr left = write(s.positive, dtype), right = write(s.negative, dtype);
  if (!left || !right) return plain;
  const Expr out = binary(op, left, right);
  if (const auto truth = context_.stated(out)) return bool_imm(*truth);
  return out;
}

// --- && and ||: the right side is simplified knowing the left one.

/// Drops the parts of `conjunction` that `by` implies; empty if none is left.
Expr Simplifier::without_implied(const Expr& conjunction, const Expr& by) {
  if (const auto* b = conjunction.as<Binary>(); b != nullptr && b->op == BinaryOp::And) {
    const Expr left = without_implied(b->a, by), right = without_implied(b->b, by);
    if (same(left, b->a) && same(right, b->b)) return conjunction;
    if (!left || !right) return left ? left : right;
    return logical_and(left, right);
  }
  const Expr truth = under(by, [&] { return run(conjunction); });
  return is_const_int(truth, 1) ? Expr() : conjunction;
}

Expr Simplifier::logical(const Expr& e, const Binary& x) {
  const bool is_and = x.op == BinaryOp::And;
  const Expr a = run(x.a);
  if (const auto c = as_int(a)) return (*c != 0) == is_and ? run(x.b) : a;
  const Expr b = under(is_and ? a : negated(a), [&] { return run(x.b); });
  if (const auto c = as_int(b)) {
    // The left side is pure, so it may be dropped when the right side decides.
    return (*c != 0) == is_and ? a : b;
  }
  // A condition on the left may protect a load or a division on the right.
  if (is_and && !partial(b)) {
    const Expr kept = without_implied(a, b);
    if (!kept) return b;
    if (!same(kept, a)) return logical_and(kept, b);
  }
  return rebuilt(e, a, b);
}

}  // namespace tilewright::arith
