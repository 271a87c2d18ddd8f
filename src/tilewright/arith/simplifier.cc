// The canonical form of an expression: sums over + - *, and what is made of them.
//
//   4*(x + 2) - x*4 + y      =>  y + 8          (collected as a sum of coefficient * term)
//   (16*k + i) / 16          =>  k              if 0 <= i < 16   (arith/divide.cc)
//   min(x, x + 3)            =>  x              (the difference is provably >= 0)
//
// Every node is simplified once per call (a memo by address). A condition holds for the side that
// it guards: `under` simplifies that side with the condition assumed. Only rules that are exact in
// wrapping arithmetic apply, unless the Context shows that nothing wraps.
#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

// Sums spelled out in one go; longer ones (or shared sub-expressions) go through the memo.
constexpr int kSumFuel = 96;
// Products of sums are multiplied out up to this many monomials.
constexpr size_t kMaxMonomials = 6;

bool reasonable(DType dtype) { return is_int(dtype) && dtype != DType::U64; }

size_t monomials(const Affine& a) { return a.terms.size() + (a.constant != 0); }

}  // namespace

Expr Simplifier::run(const Expr& e) {
  if (!e || e.as<IntImm>() || e.as<FloatImm>() || e.as<VarRef>()) return e;
  if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second.to;
  Expr out = dispatch(e);
  if (!same(out, e) && equal(out, e)) out = e;
  memo_.emplace(e.get(), Entry{e, out});
  return out;
}

Expr Simplifier::dispatch(const Expr& e) {
  return match(
      e, [&](const Unary& x) { return unary_node(e, x); },
      [&](const Binary& x) { return binary_node(e, x); },
      [&](const Select& x) { return select_node(e, x); },
      [&](const Cast& x) { return cast_node(e, x); }, [&](const Load&) { return children(e); },
      [&](const MathCall&) { return children(e); }, [&](const auto&) { return e; });
}

namespace {

bool run_all(Simplifier& s, const std::vector<Expr>& in, std::vector<Expr>& out) {
  bool changed = false;
  for (size_t i = 0; i < in.size(); ++i) {
    Expr next = s.run(in[i]);
    if (!changed && !same(next, in[i])) {
      out.assign(in.begin(), in.end());
      changed = true;
    }
    if (changed) out[i] = std::move(next);
  }
  return changed;
}

}  // namespace

Expr Simplifier::children(const Expr& e) {
  std::vector<Expr> out;
  if (const auto* l = e.as<Load>())
    return run_all(*this, l->indices, out) ? load(l->buffer, std::move(out)) : e;
  if (const auto* m = e.as<MathCall>())
    return run_all(*this, m->args, out) ? math(m->fn, std::move(out)) : e;
  if (const auto* u = e.as<Unary>()) {
    Expr a = run(u->a);
    return same(a, u->a) ? e : unary(u->op, std::move(a));
  }
  if (const auto* b = e.as<Binary>()) return rebuilt(e, run(b->a), run(b->b));
  return e;
}

/// The binary node with new operands; only identities that hold in wrapping arithmetic.
Expr Simplifier::rebuilt(const Expr& e, const Expr& a, const Expr& b) {
  const auto& x = *e.as<Binary>();
  if (!is_float(a.dtype())) {
    const auto ca = as_int(a), cb = as_int(b);
    if (ca && cb)
      if (const auto value = fold(x.op, *ca, *cb, a.dtype())) return int_imm(*value, e.dtype());
    if (x.op == BinaryOp::Mul && (ca == 0 || cb == 0)) return int_imm(0, e.dtype());
    if (cb == 0 && (x.op == BinaryOp::Add || x.op == BinaryOp::Sub)) return a;
    if (ca == 0 && x.op == BinaryOp::Add) return b;
    if (cb == 1 && (x.op == BinaryOp::Mul || x.op == BinaryOp::Div)) return a;
    if (ca == 1 && x.op == BinaryOp::Mul) return b;
  }
  return same(a, x.a) && same(b, x.b) ? e : binary(x.op, a, b);
}

Expr Simplifier::unary_node(const Expr& e, const Unary& x) {
  if (x.op == UnaryOp::Neg && reasonable(e.dtype())) return sum(e);
  const Expr a = run(x.a);
  if (x.op == UnaryOp::Not) {
    const Expr n = negated(a);
    const auto* u = n.as<Unary>();
    if (u != nullptr && u->op == UnaryOp::Not && same(u->a, x.a)) return e;
    return u != nullptr ? n : run(n);
  }
  if (const auto c = as_int(a); c && is_int(e.dtype()))
    return int_imm(
        wrap(x.op == UnaryOp::Neg ? static_cast<int64_t>(0 - static_cast<uint64_t>(*c)) : ~*c,
             e.dtype()),
        e.dtype());
  if (const auto* u = a.as<Unary>(); u && u->op == x.op && is_int(e.dtype())) return u->a;
  return same(a, x.a) ? e : unary(x.op, a);
}

Expr Simplifier::binary_node(const Expr& e, const Binary& x) {
  const DType dtype = x.a.dtype();
  if (x.op == BinaryOp::And || x.op == BinaryOp::Or) return logical(e, x);
  if (is_comparison(x.op)) return comparison(e, x);
  if (!reasonable(dtype)) return children(e);
  switch (x.op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul:
      return sum(e);
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return quotient(e, x);
    case BinaryOp::Min:
    case BinaryOp::Max:
      return extremum(e, x);
    default:
      return bits(e, x);
  }
}

Expr Simplifier::select_node(const Expr& e, const Select& x) {
  const Expr c = run(x.condition);
  if (const auto value = as_int(c)) return run(*value != 0 ? x.on_true : x.on_false);
  const Expr t = under(c, [&] { return run(x.on_true); });
  const Expr f = under(negated(c), [&] { return run(x.on_false); });
  if (equal(t, f)) return t;
  if (same(c, x.condition) && same(t, x.on_true) && same(f, x.on_false)) return e;
  return select(c, t, f);
}

Expr Simplifier::cast_node(const Expr& e, const Cast& x) {
  const Expr a = run(x.a);
  const DType to = e.dtype();
  if (!x.bits && !is_float(to) && !is_float(a.dtype())) {
    if (const auto c = as_int(a)) return int_imm(wrap(*c, to), to);
    const auto* inner = a.as<Cast>();
    if (inner != nullptr && !inner->bits && reasonable(inner->a.dtype()) && reasonable(a.dtype()) &&
        context_.range(inner->a).inside(type_range(a.dtype())))
      return cast(to, inner->a);
  }
  if (same(a, x.a)) return e;
  return x.bits ? bitcast(to, a) : cast(to, a);
}

// --- Sums and products.

Expr Simplifier::write(const Affine& a, DType dtype) {
  auto fits = [&](int64_t c) { return c != kMinInt && wrap(std::abs(c), dtype) == std::abs(c); };
  bool positive = a.constant > 0 || a.terms.empty();
  if (!fits(a.constant)) return Expr();
  for (const auto& [term, c] : a.terms) {
    if (!fits(c)) return Expr();
    positive |= c > 0;
  }
  if (is_unsigned_int(dtype) && !positive) return Expr();
  return to_expr(a, dtype);
}

Expr Simplifier::sum(const Expr& e) {
  const DType dtype = e.dtype();
  Affine a;
  int fuel = kSumFuel;
  if (!collect(e, 1, a, fuel) || !context_.exact(a, dtype)) return children(e);
  recombine(a, dtype);
  Expr out = write(a, dtype);
  return out ? out : children(e);
}

/// out += scale * e, with every summand simplified.
bool Simplifier::collect(const Expr& e, int64_t scale, Affine& out, int& fuel) {
  if (e.as<IntImm>() || e.as<VarRef>()) return flatten(e, scale, out);
  if (--fuel > 0) {
    if (const auto* u = e.as<Unary>(); u && u->op == UnaryOp::Neg && scale != kMinInt)
      return collect(u->a, -scale, out, fuel);
    const auto* b = e.as<Binary>();
    if (b != nullptr && b->op == BinaryOp::Add)
      return collect(b->a, scale, out, fuel) && collect(b->b, scale, out, fuel);
    if (b != nullptr && b->op == BinaryOp::Sub && scale != kMinInt)
      return collect(b->a, scale, out, fuel) && collect(b->b, -scale, out, fuel);
    if (b != nullptr && b->op == BinaryOp::Mul) {
      int64_t product;
      if (const auto c = as_int(b->b))
        return !__builtin_mul_overflow(*c, scale, &product) && collect(b->a, product, out, fuel);
      if (const auto c = as_int(b->a))
        return !__builtin_mul_overflow(*c, scale, &product) && collect(b->b, product, out, fuel);
      return collect_product(run(b->a), run(b->b), scale, out);
    }
  }
  return add_scaled(out, context_.affine(run(e)), scale);
}

bool Simplifier::collect_product(const Expr& a, const Expr& b, int64_t scale, Affine& out) {
  const Affine x = context_.affine(a), y = context_.affine(b);
  if (x.terms.empty() || y.terms.empty()) {
    int64_t k;
    const Affine& sum = x.terms.empty() ? y : x;
    const int64_t factor = x.terms.empty() ? x.constant : y.constant;
    return !__builtin_mul_overflow(scale, factor, &k) && add_scaled(out, sum, k);
  }
  const bool plain = monomials(x) == 1 && monomials(y) == 1;
  if (!plain && (a.dtype() != DType::I64 || monomials(x) * monomials(y) > kMaxMonomials))
    return add_term(out, binary(BinaryOp::Mul, a, b), scale);
  int64_t k;
  if (__builtin_mul_overflow(x.constant, scale, &k) || !add_scaled(out, y, k)) return false;
  for (const auto& [s, c] : x.terms) {
    if (__builtin_mul_overflow(c, scale, &k)) return false;
    int64_t product;
    if (__builtin_mul_overflow(y.constant, k, &product) || !add_term(out, s, product)) return false;
    for (const auto& [t, d] : y.terms)
      if (__builtin_mul_overflow(d, k, &product) || !add_term(out, monomial(s, t), product))
        return false;
  }
  return true;
}

// --- Division, modulo.

Expr Simplifier::quotient(const Expr& e, const Binary& x) {
  const Expr a = run(x.a), b = run(x.b);
  const DType dtype = e.dtype();
  const auto d = as_int(b);
  if (as_int(a) && d) return rebuilt(e, a, b);
  if (!d) return quotient_by_term(rebuilt(e, a, b), a, b, x.op == BinaryOp::Mod);
  if (*d <= 0) return rebuilt(e, a, b);
  const Affine n = context_.affine(a);
  auto result = x.op == BinaryOp::Div ? divide(n, *d, dtype) : modulo(n, *d, dtype);
  if (!result) return rebuilt(e, a, b);
  recombine(*result, dtype);
  const Expr out = write(*result, dtype);
  return out ? out : rebuilt(e, a, b);
}

/// (q*b + r) / b = q + r/b and its remainder, for a positive divisor that is not a constant.
Expr Simplifier::quotient_by_term(const Expr& e, const Expr& a, const Expr& b, bool mod) {
  const DType dtype = e.dtype();
  if (dtype != DType::I64 || !e.as<Binary>() || context_.range(b).lo <= 0) return e;
  const Affine n = context_.affine(a);
  Affine q, r{n.constant, {}};
  for (const auto& [term, c] : n.terms) {
    const Expr part = without_factor(term, b);
    if (!(part ? flatten(part, c, q) : add_term(r, term, c))) return e;
  }
  auto room = minus(context_.affine(b), r);
  const bool small =
      room && add_constant(*room, -1) && context_.nonneg(r) && context_.nonneg(*room);
  if (!small && q.terms.empty() && q.constant == 0) return e;
  const Expr rest = write(r, dtype);
  if (!rest) return e;
  if (mod) return small ? rest : binary(BinaryOp::Mod, rest, b);
  if (!small && !add_term(q, binary(BinaryOp::Div, rest, b), 1)) return e;
  const Expr out = write(q, dtype);
  return out ? out : e;
}

// --- min, max.

Expr Simplifier::extremum(const Expr& e, const Binary& x) {
  const Expr a = run(x.a), b = run(x.b);
  if (as_int(a) && as_int(b)) return rebuilt(e, a, b);
  const bool is_min = x.op == BinaryOp::Min;
  // True if p is the chosen one of p and q.
  auto wins = [&](const Expr& p, const Expr& q) {
    const auto d = is_min ? minus(context_.affine(q), context_.affine(p))
                          : minus(context_.affine(p), context_.affine(q));
    return d && context_.nonneg(*d);
  };
  if (wins(a, b)) return a;
  if (wins(b, a)) return b;
  if (const auto* n = a.as<Binary>(); n != nullptr && n->op == x.op) {
    if (wins(n->a, b) || wins(n->b, b)) return a;
    if (wins(b, n->a)) return run(binary(x.op, n->b, b));
    if (wins(b, n->b)) return run(binary(x.op, n->a, b));
  }
  if (const auto* n = b.as<Binary>(); n != nullptr && n->op == x.op) {
    if (wins(n->a, a) || wins(n->b, a)) return b;
    if (wins(a, n->a)) return run(binary(x.op, a, n->b));
    if (wins(a, n->b)) return run(binary(x.op, a, n->a));
  }
  return rebuilt(e, a, b);
}

// --- Bits.

Expr Simplifier::bits(const Expr& e, const Binary& x) {
  const Expr a = run(x.a), b = run(x.b);
  const auto cb = as_int(b);
  const Interval range = context_.range(a);
  if (cb && !as_int(a)) {
    const bool shift = x.op == BinaryOp::Shl || x.op == BinaryOp::Shr;
    const bool joins = x.op == BinaryOp::BitOr || x.op == BinaryOp::BitXor;
    if (*cb == 0 && (shift || joins)) return a;
    if (*cb == 0 && x.op == BinaryOp::BitAnd) return b;
    if (x.op == BinaryOp::BitAnd && *cb > 0 && (*cb & (*cb + 1)) == 0 && range.lo >= 0 &&
        range.hi <= *cb)
      return a;
    if (x.op == BinaryOp::Shr && *cb > 0 && range.lo >= 0 && range.bounded() &&
        (*cb >= 63 || range.hi >> *cb == 0))
      return int_imm(0, e.dtype());
  }
  return rebuilt(e, a, b);
}

}  // namespace tilewright::arith
