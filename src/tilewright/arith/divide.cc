// Floor division and modulo of sums by a positive constant.
#include <numeric>

#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

/// n = d * quotient + rest with every |coefficient| of rest < d, signs kept, 0 <= constant < d.
/// Truncating coefficients gives divide and modulo the same rest.
struct Division {
  Affine quotient, rest;
};
Division split(const Affine& n, int64_t d) {
  Division out;
  out.quotient.constant = floor_div(n.constant, d);
  out.rest.constant = floor_mod(n.constant, d);
  for (const auto& [term, c] : n.terms) {
    if (c / d != 0) out.quotient.terms.emplace_back(term, c / d);
    if (c % d != 0) out.rest.terms.emplace_back(term, c % d);
  }
  return out;
}

/// a = common * g + rest: terms whose coefficient g divides, constant floored.
struct Common {
  Affine common, rest;
};
Common take_factor(const Affine& a, int64_t g) {
  Common out;
  out.common.constant = floor_div(a.constant, g);
  out.rest.constant = floor_mod(a.constant, g);
  for (const auto& [term, c] : a.terms) {
    if (c % g == 0)
      out.common.terms.emplace_back(term, c / g);
    else
      out.rest.terms.emplace_back(term, c);
  }
  return out;
}

/// The only term of `a` if its coefficient is 1 and it is `x op constant`.
const Binary* single(const Affine& a, BinaryOp op) {
  if (a.terms.size() != 1 || a.terms[0].second != 1) return nullptr;
  const auto* b = a.terms[0].first.as<Binary>();
  return b != nullptr && b->op == op && as_int(b->b) && *as_int(b->b) > 0 ? b : nullptr;
}

bool product_fits(int64_t a, int64_t b, DType dtype, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out) && *out <= type_range(dtype).hi;
}

}  // namespace

std::optional<Affine> Simplifier::divide(const Affine& n, int64_t d, DType dtype) {
  if (d == 1) return n;
  Division parts = split(n, d);
  const auto rest = divide_rest(parts.rest, d, dtype);
  if (!rest || !add_scaled(parts.quotient, *rest, 1)) return std::nullopt;
  return parts.quotient;
}

/// floor(r / d) for a rest that has no multiple of d in it.
std::optional<Affine> Simplifier::divide_rest(const Affine& r, int64_t d, DType dtype) {
  if (r.terms.empty()) return constant_affine(floor_div(r.constant, d));
  const Interval interval = context_.range(r);
  if (interval.bounded() && floor_div(interval.lo, d) == floor_div(interval.hi, d))
    return constant_affine(floor_div(interval.lo, d));
  if (auto out = divide_by_factor(r, d, dtype)) return out;
  // (x/a + c) / d = (x + a*c) / (a*d)
  if (const Binary* inner = single(r, BinaryOp::Div)) {
    const int64_t a = *as_int(inner->b);
    int64_t ad, ac;
    Affine x = context_.affine(inner->a);
    if (product_fits(a, d, dtype, &ad) && !__builtin_mul_overflow(a, r.constant, &ac) &&
        add_constant(x, ac) && context_.exact(x, dtype))
      return divide(x, ad, dtype);
  }
  // (x % m) / d = (x / d) % (m / d) for d dividing m
  if (const Binary* inner = single(r, BinaryOp::Mod); inner != nullptr && r.constant == 0) {
    const int64_t m = *as_int(inner->b);
    if (m % d == 0)
      if (const auto q = divide(context_.affine(inner->a), d, dtype))
        return modulo(*q, m / d, dtype);
  }
  const Expr numerator = context_.exact(r, dtype) ? write(r, dtype) : Expr();
  if (!numerator || wrap(d, dtype) != d) return std::nullopt;
  return term_affine(binary(BinaryOp::Div, numerator, int_imm(d, dtype)));
}

/// (g*x + y) / d = (x + y/g) / (d/g) where y stays within one multiple of g | d.
std::optional<Affine> Simplifier::divide_by_factor(const Affine& r, int64_t d, DType dtype) {
  int64_t best = 0;
  Affine best_sum;
  for (const auto& [term, c] : r.terms) {
    const int64_t g = std::gcd(c, d);
    if (g <= 1 || g <= best) continue;
    Common parts = take_factor(r, g);
    const Interval y = context_.range(parts.rest);
    if (!y.bounded() || floor_div(y.lo, g) != floor_div(y.hi, g)) continue;
    if (!add_constant(parts.common, floor_div(y.lo, g))) continue;
    best = g;
    best_sum = std::move(parts.common);
  }
  if (best == 0) return std::nullopt;
  return divide(best_sum, d / best, dtype);
}

std::optional<Affine> Simplifier::modulo(const Affine& n, int64_t d, DType dtype) {
  if (d == 1) return constant_affine(0);
  Affine r = split(n, d).rest;
  // (x % m) is x where m is a multiple of d.
  for (size_t i = 0; i < r.terms.size(); ++i) {
    const auto* b = r.terms[i].first.as<Binary>();
    if (b == nullptr || b->op != BinaryOp::Mod || !as_int(b->b) || *as_int(b->b) <= 0) continue;
    int64_t cm;
    const int64_t c = r.terms[i].second;
    if (__builtin_mul_overflow(c, *as_int(b->b), &cm) || cm % d != 0) continue;
    const auto inner = times(context_.affine(b->a), c);
    const auto next = inner ? splice(r, Affine{0, {r.terms[i]}}, *inner) : std::nullopt;
    if (next && context_.exact(*next, dtype)) return modulo(*next, d, dtype);
  }
  if (r.terms.empty()) return constant_affine(floor_mod(r.constant, d));
  const Interval interval = context_.range(r);
  if (interval.bounded() && floor_div(interval.lo, d) == floor_div(interval.hi, d)) {
    if (!add_constant(r, -floor_div(interval.lo, d) * d)) return std::nullopt;
    return r;
  }
  if (auto out = modulo_by_factor(r, d, dtype)) return out;
  const Expr numerator = context_.exact(r, dtype) ? write(r, dtype) : Expr();
  if (!numerator || wrap(d, dtype) != d) return std::nullopt;
  return term_affine(binary(BinaryOp::Mod, numerator, int_imm(d, dtype)));
}

/// (g*x + y) % d = g * ((x + y/g) % (d/g)) + y % g where y stays within one multiple of g | d.
std::optional<Affine> Simplifier::modulo_by_factor(const Affine& r, int64_t d, DType dtype) {
  int64_t best = 0;
  Common best_parts;
  for (const auto& [term, c] : r.terms) {
    const int64_t g = std::gcd(c, d);
    if (g <= 1 || g <= best) continue;
    Common parts = take_factor(r, g);
    const Interval y = context_.range(parts.rest);
    if (!y.bounded() || floor_div(y.lo, g) != floor_div(y.hi, g)) continue;
    const int64_t cell = floor_div(y.lo, g);
    if (!add_constant(parts.common, cell) || !add_constant(parts.rest, -cell * g)) continue;
    best = g;
    best_parts = std::move(parts);
  }
  if (best == 0) return std::nullopt;
  const auto inner = modulo(best_parts.common, d / best, dtype);
  if (!inner) return std::nullopt;
  Affine out;
  if (!add_scaled(out, *inner, best) || !add_scaled(out, best_parts.rest, 1)) return std::nullopt;
  return out;
}

// --- x = d * (x/d) + x%d, read from right to left.

static bool assign(Affine& a, std::optional<Affine> next) {
  if (next) a = std::move(*next);
  return next.has_value();
}

void Simplifier::recombine(Affine& a, DType dtype) {
  bool again = a.terms.size() >= 2;
  for (int round = 0; again && round < 8; ++round) {
    again = false;
    for (size_t i = 0; i < a.terms.size() && !again; ++i) {
      const auto* b = a.terms[i].first.as<Binary>();
      if (b == nullptr) continue;
      if (b->op == BinaryOp::Mod && !as_int(b->b)) again = recombine_symbolic(a, i);
      if (!as_int(b->b) || *as_int(b->b) <= 0) continue;
      if (b->op == BinaryOp::Mod) again = recombine_mod(a, i, dtype);
      if (b->op == BinaryOp::Div) again = recombine_div(a, i, dtype);
    }
  }
}

/// c*(y % d) + c*(y / d)*d => c*y for a divisor that is no constant and not 0.
bool Simplifier::recombine_symbolic(Affine& a, size_t i) {
  const Expr term = a.terms[i].first;
  const int64_t c = a.terms[i].second;
  const auto* mod = term.as<Binary>();
  const Expr quotient = binary(BinaryOp::Div, mod->a, mod->b);
  const Expr product = binary(BinaryOp::Mul, quotient, mod->b);
  if (coefficient_of(a, product) != c || context_.range(mod->b).lo <= 0) return false;
  const auto come = times(context_.affine(mod->a), c);
  return come && assign(a, splice(a, Affine{0, {{term, c}, {product, c}}}, *come));
}

/// c*(y % d) + c*d*(y / d) => c*y
bool Simplifier::recombine_mod(Affine& a, size_t i, DType dtype) {
  const Expr term = a.terms[i].first;
  const int64_t c = a.terms[i].second, d = *as_int(term.as<Binary>()->b);
  const Affine y = context_.affine(term.as<Binary>()->a);
  int64_t cd;
  if (__builtin_mul_overflow(c, d, &cd)) return false;
  const auto q = divide(y, d, dtype);
  if (!q || q->terms.empty() || !includes(a, *q, cd)) return false;
  Affine gone{0, {{term, c}}};
  const auto come = times(y, c);
  return come && add_scaled(gone, *q, cd) && assign(a, splice(a, gone, *come));
}

/// c*d*(x / d) + c*(x % d) => c*x, and c*x - c*d*(x / d) => c*(x % d)
bool Simplifier::recombine_div(Affine& a, size_t i, DType dtype) {
  const Expr term = a.terms[i].first;
  const int64_t k = a.terms[i].second, d = *as_int(term.as<Binary>()->b);
  if (k % d != 0 || k == kMinInt) return false;
  const int64_t c = k / d;
  const Affine x = context_.affine(term.as<Binary>()->a);
  if (x.terms.empty()) return false;
  const auto m = modulo(x, d, dtype);
  if (!m || m->terms.empty()) return false;
  Affine gone{0, {{term, k}}};
  const int64_t sign = includes(a, *m, c) ? 1 : -1;
  if (sign < 0 && !includes(a, x, -c)) return false;
  const Affine& other = sign > 0 ? *m : x;
  const auto come = times(sign > 0 ? x : *m, sign * c);
  return come && add_scaled(gone, other, sign * c) && assign(a, splice(a, gone, *come));
}

}  // namespace tilewright::arith
