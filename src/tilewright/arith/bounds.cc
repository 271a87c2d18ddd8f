#include "tilewright/arith/bounds.h"

#include <algorithm>

#include "tilewright/arith/simplifier.h"

namespace tilewright::arith {
namespace {

// Rounds until nothing changes; almost always the second one already finds nothing to do.
constexpr int kMaxRounds = 4;

Expr fixpoint(Simplifier& simplifier, const Expr& e) {
  Expr out = simplifier.run(e);
  for (int round = 1; round < kMaxRounds && !same(out, e); ++round) {
    Expr next = simplifier.run(out);
    if (same(next, out)) break;
    out = std::move(next);
  }
  return !same(out, e) && equal(out, e) ? e : out;
}

/// Replaces everything that mentions `vars` by its smallest or largest value.
class Eliminator {
 public:
  Eliminator(const std::vector<Var>& vars, const Bounds& bounds)
      : vars_(vars), simplifier_(bounds) {}

  std::optional<Expr> run(const Expr& e, bool upper) {
    auto out = bound(fixpoint(simplifier_, e), upper, 0);
    if (!out) return std::nullopt;
    return fixpoint(simplifier_, *out);
  }

 private:
  std::optional<Expr> bound(const Expr& e, bool upper, int depth) {
    if (!uses_any(e, vars_)) return e;
    if (depth > 16) return std::nullopt;
    Context& context = simplifier_.context();
    Affine a = context.affine(e), out = constant_affine(a.constant);
    if (a.terms.size() == 1 && same(a.terms[0].first, e)) return term(e, upper, depth);
    for (const auto& entry : a.terms) {
      const int64_t c = entry.second;
      const auto b = uses_any(entry.first, vars_) ? term(entry.first, upper == (c > 0), depth + 1)
                                                  : std::optional<Expr>(entry.first);
      if (!b || !add_scaled(out, context.affine(*b), c)) return constant(e, upper);
    }
    const Expr sum = fixpoint(simplifier_, to_expr(out, e.dtype()));
    const auto rest = bound(sum, upper, depth + 1);
    return rest ? tightened(*rest, e, upper) : constant(e, upper);
  }

  /// The better one of a symbolic bound and the constant one, where both are constants.
  Expr tightened(const Expr& b, const Expr& e, bool upper) {
    const auto c = as_int(b);
    const Interval r = simplifier_.context().range(e);
    if (!c) return b;
    if (upper ? r.hi < *c : r.lo > *c) return int_imm(upper ? r.hi : r.lo, e.dtype());
    return b;
  }

  std::optional<Expr> constant(const Expr& e, bool upper) {
    const Interval r = simplifier_.context().range(e);
    if (upper ? r.hi == kMaxInt : r.lo == kMinInt) return std::nullopt;
    return int_imm(upper ? r.hi : r.lo, e.dtype());
  }

  std::optional<Expr> term(const Expr& e, bool upper, int depth) {
    if (const auto* r = e.as<VarRef>()) {
      const Bounds::Range range = simplifier_.context().var_range(r->var);
      const Expr& end = upper ? range.hi : range.lo;
      const auto b = end ? bound(fixpoint(simplifier_, end), upper, depth + 1) : std::nullopt;
      return b ? tightened(*b, e, upper) : constant(e, upper);
    }
    if (const auto* s = e.as<Select>()) {
      const auto t = bound(s->on_true, upper, depth + 1), f = bound(s->on_false, upper, depth + 1);
      if (!t || !f) return constant(e, upper);
      return fixpoint(simplifier_, upper ? max(*t, *f) : min(*t, *f));
    }
    if (const auto* b = e.as<Binary>())
      if (auto out = binary_term(*b, upper, depth)) return tightened(*out, e, upper);
    return constant(e, upper);
  }

  std::optional<Expr> binary_term(const Binary& b, bool upper, int depth) {
    if (!is_int(b.a.dtype())) return std::nullopt;
    const bool extremum = b.op == BinaryOp::Min || b.op == BinaryOp::Max;
    const bool quotient =
        b.op == BinaryOp::Div && !uses_any(b.b, vars_) && simplifier_.context().range(b.b).lo > 0;
    const bool product =
        b.op == BinaryOp::Mul && !uses_any(b.b, vars_) && simplifier_.context().range(b.b).lo >= 0;
    if (extremum) {
      const auto x = bound(b.a, upper, depth + 1), y = bound(b.b, upper, depth + 1);
      if (!x || !y) {
        // min is at most either side, max at least either side.
        const bool one = (b.op == BinaryOp::Min) == upper;
        return !one ? std::nullopt : (x ? x : y);
      }
      return fixpoint(simplifier_, binary(b.op, *x, *y));
    }
    if (b.op == BinaryOp::Mul && uses_any(b.b, vars_) && !uses_any(b.a, vars_))
      return binary_term(Binary{BinaryOp::Mul, b.b, b.a}, upper, depth);
    if (!quotient && !product) return std::nullopt;
    const auto x = bound(b.a, upper, depth + 1);
    if (!x) return std::nullopt;
    return fixpoint(simplifier_, binary(b.op, *x, b.b));
  }

  const std::vector<Var>& vars_;
  Simplifier simplifier_;
};

}  // namespace

Bounds::Bounds(const Func& func) {
  for (const Scalar& s : func.scalars)
    bind_range(s.var, int_imm(s.lo, s.var.dtype()), int_imm(s.hi, s.var.dtype()));
}

void Bounds::bind(const Var& var, const Expr& extent) {
  const DType dtype = extent.dtype();
  const auto n = extent.as<IntImm>() && as_int(extent) != kMinInt ? as_int(extent) : std::nullopt;
  ranges_[var] = {int_imm(0, dtype),
                  n ? int_imm(*n - 1, dtype) : to_expr(Affine{-1, {{extent, 1}}}, dtype)};
}

void Bounds::bind_range(const Var& var, const Expr& lo, const Expr& hi) {
  Range& range = ranges_[var];
  if (lo) range.lo = lo;
  if (hi) range.hi = hi;
}

void Bounds::assume(const Expr& condition) {
  if (!condition) return;
  // Canonical facts share terms with the canonical expressions they are used on.
  Simplifier simplifier(*this);
  const Expr fact = fixpoint(simplifier, condition);
  auto split = [&](auto&& self, const Expr& e) -> void {
    if (const auto* b = e.as<Binary>(); b != nullptr && b->op == BinaryOp::And) {
      self(self, b->a);
      self(self, b->b);
    } else if (!is_const_int(e, 1)) {
      facts_.push_back(e);
    }
  };
  split(split, fact);
}

Expr simplify(const Expr& e, const Bounds& bounds) {
  if (!e || e.as<IntImm>() || e.as<FloatImm>() || e.as<VarRef>()) return e;
  Simplifier simplifier(bounds);
  return fixpoint(simplifier, e);
}

bool prove(const Expr& condition, const Bounds& bounds) {
  if (!condition) return true;
  if (const auto c = as_int(condition)) return *c != 0;
  Simplifier simplifier(bounds);
  const Expr open = fixpoint(simplifier, condition);
  if (const auto c = as_int(open)) return *c != 0;
  // A known `p || q`: one case after the other.
  for (const Expr& fact : bounds.facts()) {
    const auto* b = fact.as<Binary>();
    if (b == nullptr || b->op != BinaryOp::Or) continue;
    auto holds = [&](const Expr& known) {
      const Expr s = simplifier.run(known);
      if (is_const_int(s, 0)) return true;
      return is_const_int(simplifier.under(s, [&] { return simplifier.run(open); }), 1);
    };
    if (holds(b->a) && holds(b->b)) return true;
  }
  return false;
}

std::optional<std::pair<int64_t, int64_t>> const_range(const Expr& e, const Bounds& bounds) {
  if (const auto c = as_int(e)) return std::pair(*c, *c);
  if (is_float(e.dtype()) || e.dtype() == DType::U64) return std::nullopt;
  Simplifier simplifier(bounds);
  const Expr s = fixpoint(simplifier, e);
  const Interval r = simplifier.context().range(s);
  if (!r.bounded()) return std::nullopt;
  return std::pair(r.lo, r.hi);
}

std::optional<Expr> lower_bound(const Expr& e, const std::vector<Var>& vars, const Bounds& bounds) {
  return Eliminator(vars, bounds).run(e, false);
}

std::optional<Expr> upper_bound(const Expr& e, const std::vector<Var>& vars, const Bounds& bounds) {
  return Eliminator(vars, bounds).run(e, true);
}

Affine as_affine(const Expr& e) { return Context(Bounds()).affine(e); }

}  // namespace tilewright::arith
