// Intervals of expressions, and proofs that a sum is never negative.
//
//   known: 16*o + i < 55, that is 54 - 16*o - i >= 0.   Is 60 - 16*o - i >= 0?
//   Without the known inequality 6 is left, so it is.
//
// `range` computes intervals bottom up. `nonneg` searches: it replaces a part of the sum by
// something provably not larger (a known inequality, a variable's bound, x for x % d, (x - d + 1) /
// d for a quotient) until the interval of what is left decides. Depth and number of attempts are
// bounded, so `no` only means that no proof was found.
#include "tilewright/arith/context.h"

#include <bit>
#include <numeric>

namespace tilewright::arith {
namespace {

// Ranges of variables may refer to each other; deeper chains answer "unknown".
constexpr int kMaxDepth = 24;
// Inequalities tried per proof: keeps every simplify call cheap.
constexpr int kProofBudget = 64;
constexpr int kProofDepth = 4;

/// Largest 2^k - 1 >= v, for v >= 0.
int64_t all_ones(int64_t v) {
  return v == kMaxInt
             ? kMaxInt
             : static_cast<int64_t>((uint64_t{1} << std::bit_width(static_cast<uint64_t>(v))) - 1);
}

}  // namespace

Context::Context(const Bounds& bounds) : outer_ranges_(bounds.ranges()) {
  for (const Expr& fact : bounds.facts()) assume(fact);
}

void Context::bind(const Var& var, const Expr& extent) {
  const DType dtype = extent.dtype();
  Expr hi;
  if (const auto n = as_int(extent); n && *n != kMinInt)
    hi = int_imm(*n - 1, dtype);
  else
    hi = extent - 1;
  ranges_[var] = {int_imm(0, dtype), hi};
}

void Context::bind_range(const Var& var, const Expr& lo, const Expr& hi) {
  ranges_[var] = {lo, hi};
}

const Bounds::Range* Context::find_range(const Var& var) const {
  if (const auto it = ranges_.find(var); it != ranges_.end()) return &it->second;
  const auto it = outer_ranges_.find(var);
  return it == outer_ranges_.end() ? nullptr : &it->second;
}

Bounds::Range Context::var_range(const Var& var) const {
  const Bounds::Range* range = find_range(var);
  return range == nullptr ? Bounds::Range{} : *range;
}

// --- Conditions.

void Context::assume(const Expr& condition) {
  if (const auto* b = condition.as<Binary>(); b && b->op == BinaryOp::And) {
    assume(b->a);
    assume(b->b);
    return;
  }
  known_.push_back(condition);
  memo_.clear();
  const auto* b = condition.as<Binary>();
  if (b == nullptr || !is_comparison(b->op) || !is_int(b->a.dtype())) return;
  const Affine left = affine(b->a), right = affine(b->b);
  const auto up = minus(left, right), down = minus(right, left);
  if (!up || !down) return;
  Affine a;
  switch (b->op) {
    case BinaryOp::Eq:
      add_inequality(*up);
      add_inequality(*down);
      return;
    case BinaryOp::Le:
      add_inequality(*down);
      return;
    case BinaryOp::Ge:
      add_inequality(*up);
      return;
    case BinaryOp::Lt:
      a = *down;
      break;
    case BinaryOp::Gt:
      a = *up;
      break;
    case BinaryOp::Ne:
      // Not 0 at the end of its range.
      if (range(*up).lo == 0)
        a = *up;
      else if (range(*down).lo == 0)
        a = *down;
      else
        return;
      break;
    default:
      return;
  }
  if (add_constant(a, -1)) add_inequality(a);
}

void Context::add_inequality(const Affine& a) {
  if (!a.terms.empty()) inequalities_.push_back({a, known_.size()});
}

void Context::rollback(size_t mark) {
  if (known_.size() == mark) return;
  known_.resize(mark);
  while (!inequalities_.empty() && inequalities_.back().owner > mark) inequalities_.pop_back();
  memo_.clear();
}

std::optional<bool> Context::stated(const Expr& condition) const {
  for (const Expr& fact : known_) {
    if (equal(fact, condition)) return true;
    if (const auto* u = fact.as<Unary>(); u && u->op == UnaryOp::Not && equal(u->a, condition))
      return false;
    if (const auto* u = condition.as<Unary>(); u && u->op == UnaryOp::Not && equal(u->a, fact))
      return false;
  }
  return std::nullopt;
}

// --- Intervals.

/// True if 64-bit wrapping is possible because loaded or computed data is in `e`.
bool Context::is_data(const Expr& e) {
  if (e.as<IntImm>() || e.as<VarRef>()) return false;
  if (e.as<Load>() || e.as<MathCall>() || e.as<Cast>()) return true;
  if (const auto it = data_.find(e.get()); it != data_.end()) return it->second.second;
  bool found = false;
  if (const auto* b = e.as<Binary>()) found = is_data(b->a) || is_data(b->b);
  if (const auto* u = e.as<Unary>()) found = is_data(u->a);
  if (const auto* s = e.as<Select>()) found = is_data(s->on_true) || is_data(s->on_false);
  data_.emplace(e.get(), std::pair(e, found));
  return found;
}

Affine Context::affine(const Expr& e) {
  if (e.as<VarRef>()) return term_affine(e);
  Affine out;
  if (e.dtype() == DType::U64 || e.dtype() == DType::Bool || !flatten(e, 1, out) ||
      !exact(out, e.dtype()))
    return as_int(e) ? constant_affine(*as_int(e)) : term_affine(e);
  return out;
}

bool Context::exact(const Affine& a, DType dtype) {
  if (a.terms.empty()) return wrap(a.constant, dtype) == a.constant;
  if (a.terms.size() == 1 && a.terms[0].second == 1 && a.constant == 0) return true;
  if (dtype != DType::I64) return range(a).inside(type_range(dtype));
  for (const auto& [term, c] : a.terms)
    if (is_data(term)) return range(a).bounded();
  return true;
}

Interval Context::range(const Affine& a) {
  Interval out{a.constant, a.constant};
  for (const auto& [term, c] : a.terms) out = add(out, scale(range(term), c));
  if (a.terms.size() >= 2) {
    out = intersect(out, pair_range(a));
    out = intersect(out, extremum_range(a));
  }
  if (a.terms.empty()) return out;
  // A known inequality over the same terms: a = k * fact + rest with k of either sign.
  for (const Fact& fact : inequalities_) {
    if (fact.sum.terms.size() != a.terms.size()) continue;
    const int64_t c = coefficient_of(a, fact.sum.terms[0].first);
    const int64_t f = fact.sum.terms[0].second;
    if (c == 0 || c == kMinInt || c % f != 0 || !includes(a, fact.sum, c / f)) continue;
    const int64_t k = c / f;
    int64_t rest;
    if (__builtin_mul_overflow(k, fact.sum.constant, &rest) ||
        __builtin_sub_overflow(a.constant, rest, &rest))
      continue;
    if (k > 0)
      out.lo = std::max(out.lo, rest);
    else
      out.hi = std::min(out.hi, rest);
  }
  return out;
}

// (X + a)/d - X/d lies in [floor(a/d), ceil(a/d)]: sizes of regions divided by a stride need it.
Interval Context::pair_range(const Affine& a) {
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const auto* x = a.terms[i].first.as<Binary>();
    if (x == nullptr || x->op != BinaryOp::Div || !as_int(x->b) || *as_int(x->b) <= 0) continue;
    for (size_t j = i + 1; j < a.terms.size(); ++j) {
      const auto* y = a.terms[j].first.as<Binary>();
      if (y == nullptr || y->op != BinaryOp::Div || !equal(x->b, y->b) ||
          a.terms[i].second != -a.terms[j].second)
        continue;
      const auto d = minus(affine(x->a), affine(y->a));
      if (!d || !d->terms.empty()) continue;
      const int64_t n = *as_int(x->b), lo = floor_div(d->constant, n);
      Interval out = scale({lo, lo + (d->constant % n != 0)}, a.terms[i].second);
      out = add(out, {a.constant, a.constant});
      for (size_t k = 0; k < a.terms.size(); ++k)
        if (k != i && k != j) out = add(out, scale(range(a.terms[k].first), a.terms[k].second));
      return out;
    }
  }
  return {};
}

/// min(p, q) + r is min(p + r, q + r), where p and r may cancel.
Interval Context::extremum_range(const Affine& a) {
  for (const auto& entry : a.terms) {
    const auto* b = entry.first.as<Binary>();
    if (b == nullptr || (b->op != BinaryOp::Min && b->op != BinaryOp::Max)) continue;
    if (depth_ >= kMaxDepth / 4) return {};
    Affine rest = a;
    if (!add_term(rest, entry.first, -entry.second)) return {};
    Affine p = rest, q = rest;
    if (!add_scaled(p, affine(b->a), entry.second) || !add_scaled(q, affine(b->b), entry.second))
      return {};
    depth_ += 2;
    const Interval x = range(p), y = range(q);
    depth_ -= 2;
    if ((b->op == BinaryOp::Min) == (entry.second > 0))
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
  return {};
}

Interval Context::var_interval(const Var& var) {
  Interval out = type_range(var.dtype());
  const Bounds::Range* range_of = find_range(var);
  if (range_of == nullptr) return out;
  if (const Expr& lo = range_of->lo) {
    const auto c = as_int(lo);
    out.lo = std::max(out.lo, c ? *c : range(affine(lo)).lo);
  }
  if (const Expr& hi = range_of->hi) {
    const auto c = as_int(hi);
    out.hi = std::min(out.hi, c ? *c : range(affine(hi)).hi);
  }
  return out;
}

Interval Context::range(const Expr& e) {
  if (const auto value = as_int(e)) {
    if (e.dtype() == DType::U64) return {};
    return {*value, *value};
  }
  if (is_float(e.dtype()) || e.dtype() == DType::U64 || depth_ >= kMaxDepth)
    return type_range(e.dtype());
  if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second.interval;
  ++depth_;
  Interval out = compute_range(e);
  for (const Fact& fact : inequalities_) {
    if (fact.sum.terms.size() != 1 || !same_term(fact.sum.terms[0].first, e)) continue;
    const int64_t c = fact.sum.terms[0].second;
    if (c == kMinInt || fact.sum.constant == kMinInt) continue;
    if (c > 0)
      out.lo = std::max(out.lo, -floor_div(fact.sum.constant, c));
    else
      out.hi = std::min(out.hi, floor_div(fact.sum.constant, -c));
  }
  --depth_;
  // Near the depth limit the answer depends on how the question was reached.
  if (depth_ < kMaxDepth / 2) memo_.emplace(e.get(), Known{e, out});
  return out;
}

Interval Context::compute_range(const Expr& e) {
  const Interval all = type_range(e.dtype());
  const Interval found = match(
      e, [&](const VarRef& x) { return var_interval(x.var); },
      [&](const Unary& x) {
        if (x.op == UnaryOp::Neg) return scale(range(x.a), -1);
        if (x.op == UnaryOp::BitNot && is_signed_int(e.dtype()))
          return add(scale(range(x.a), -1), {-1, -1});
        return all;
      },
      [&](const Binary& x) { return sum_range(e, x); },
      [&](const Select& x) { return unite(range(x.on_true), range(x.on_false)); },
      [&](const Cast& x) {
        const bool integral = !x.bits && !is_float(x.a.dtype()) && x.a.dtype() != DType::U64 &&
                              e.dtype() != DType::Bool;
        return integral ? range(x.a) : all;
      },
      [&](const auto&) { return all; });
  // A value outside the type wraps around: then nothing is known.
  return found.inside(all) ? found : all;
}

Interval Context::sum_range(const Expr& e, const Binary& b) {
  const bool ring = b.op == BinaryOp::Add || b.op == BinaryOp::Sub || b.op == BinaryOp::Mul;
  if (!ring) return binary_range(b, e.dtype());
  Affine sum;
  const bool spelled =
      flatten(e, 1, sum) && (sum.terms.size() != 1 || !same(sum.terms[0].first, e));
  const Interval out = spelled ? range(sum) : binary_range(b, e.dtype());
  // Loaded 64-bit data may wrap; indices do not.
  return !out.bounded() && is_data(e) ? Interval{} : out;
}

Interval Context::binary_range(const Binary& b, DType dtype) {
  if (!is_int(dtype)) return type_range(dtype);
  const Interval x = range(b.a), y = range(b.b);
  const bool natural = x.lo >= 0 && y.lo >= 0;
  switch (b.op) {
    case BinaryOp::Add:
      return add(x, y);
    case BinaryOp::Sub:
      return add(x, scale(y, -1));
    case BinaryOp::Mul:
      return multiply(x, y);
    case BinaryOp::Div:
      return floor_div(x, y);
    case BinaryOp::Mod:
      return floor_mod(x, y);
    case BinaryOp::Min:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case BinaryOp::Max:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    case BinaryOp::BitAnd:
      if (x.lo >= 0) return {0, y.lo >= 0 ? std::min(x.hi, y.hi) : x.hi};
      return y.lo >= 0 ? Interval{0, y.hi} : Interval{};
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
      return natural ? Interval{0, all_ones(std::max(x.hi, y.hi))} : Interval{};
    case BinaryOp::Shl:
      if (y.lo < 0 || y.hi > 62 || y.hi >= bit_width(dtype)) return {};
      return multiply(x, {int64_t{1} << y.lo, int64_t{1} << y.hi});
    case BinaryOp::Shr:
      if (y.lo < 0 || y.hi > 62 || y.hi >= bit_width(dtype)) return {};
      return floor_div(x, {int64_t{1} << y.lo, int64_t{1} << y.hi});
    default:
      return {};
  }
}

// --- Proofs of a >= 0: replace parts of `a` by something provably not larger, until the interval
// of what is left decides.

bool Context::nonneg(const Affine& a) {
  budget_ = kProofBudget;
  return search(a, kProofDepth);
}

bool Context::search(const Affine& a, int depth) {
  const Interval interval = range(a);
  if (interval.lo >= 0) return true;
  if (interval.hi < 0 || depth == 0 || a.terms.empty() || --budget_ < 0) return false;
  if (search_facts(a, depth) || search_pair(a, depth)) return true;
  for (const auto& entry : a.terms) {
    const Expr& term = entry.first;
    if (term.as<VarRef>() ? search_variable(a, term, entry.second, depth)
                          : search_term(a, term, entry.second, depth))
      return true;
  }
  return false;
}

/// m * a - k * fact >= 0 with m, k > 0 cancelling a shared term implies a >= 0.
bool Context::search_facts(const Affine& a, int depth) {
  for (const Fact& fact : inequalities_) {
    for (const auto& entry : fact.sum.terms) {
      const int64_t f = entry.second, c = coefficient_of(a, entry.first);
      if (c == 0 || (c > 0) != (f > 0) || c == kMinInt || f == kMinInt) continue;
      const int64_t g = std::gcd(c, f);
      const int64_t m = std::abs(f / g);
      auto rest = times(a, m);
      // a is an integer: m * a > -m is enough.
      if (!rest || !add_scaled(*rest, fact.sum, -std::abs(c / g)) || !add_constant(*rest, m - 1))
        continue;
      if (search(*rest, depth - 1)) return true;
      break;  // other shared terms of one fact seldom help
    }
  }
  return false;
}

/// x/d - y/d >= 0 for x >= y: both quotients can go.
bool Context::search_pair(const Affine& a, int depth) {
  for (const auto& p : a.terms) {
    const auto* x = p.first.as<Binary>();
    if (p.second < 0 || x == nullptr || x->op != BinaryOp::Div) continue;
    for (const auto& q : a.terms) {
      const auto* y = q.first.as<Binary>();
      if (q.second != -p.second || y == nullptr || y->op != BinaryOp::Div ||
          !same_term(x->b, y->b) || range(x->b).lo <= 0)
        continue;
      const auto d = minus(affine(x->a), affine(y->a));
      Affine next = a;
      if (d && add_term(next, p.first, -p.second) && add_term(next, q.first, -q.second) &&
          search(*d, depth - 1) && search(next, depth - 1))
        return true;
    }
  }
  return false;
}

/// Replaces c * var by c * (its symbolic bound on the harmful side).
bool Context::search_variable(const Affine& a, const Expr& term, int64_t c, int depth) {
  const Bounds::Range r = var_range(term.as<VarRef>()->var);
  const Expr& bound = c > 0 ? r.lo : r.hi;
  if (!bound || as_int(bound)) return false;
  Affine next = a;
  return add_term(next, term, -c) && add_scaled(next, affine(bound), c) && search(next, depth - 1);
}

bool Context::search_term(const Affine& a, const Expr& term, int64_t c, int depth) {
  Affine rest = a;
  if (!add_term(rest, term, -c)) return false;
  auto with = [&](const Expr& e) {
    Affine next = rest;
    return add_scaled(next, affine(e), c) && search(next, depth - 1);
  };
  if (const auto* s = term.as<Select>()) return with(s->on_true) && with(s->on_false);
  const auto* b = term.as<Binary>();
  if (b == nullptr) return false;
  if (b->op == BinaryOp::Min || b->op == BinaryOp::Max) {
    const bool both = (b->op == BinaryOp::Min) == (c > 0);
    return both ? with(b->a) && with(b->b) : with(b->a) || with(b->b);
  }
  if (b->op == BinaryOp::Div) return search_quotient(a, term, c, depth);
  if (b->op == BinaryOp::Mul) return search_product(a, term, c, depth);
  // x % d <= x for x >= 0, and x % d <= d - 1, for d > 0
  if (b->op != BinaryOp::Mod || c > 0 || range(b->b).lo <= 0) return false;
  if (range(b->a).lo >= 0 && with(b->a)) return true;
  Affine next = rest, last = affine(b->b);
  return !as_int(b->b) && add_constant(last, -1) && add_scaled(next, last, c) &&
         search(next, depth - 1);
}

/// d * floor(x/d) lies in [x - d + 1, x].
bool Context::search_quotient(const Affine& a, const Expr& term, int64_t c, int depth) {
  const auto* b = term.as<Binary>();
  const auto d = as_int(b->b);
  if (!d) return search_symbolic_quotient(a, term, c, depth);
  if (*d <= 0) return false;
  auto next = times(a, *d);
  int64_t cd;
  if (!next || __builtin_mul_overflow(c, *d, &cd) || !add_term(*next, term, -cd) ||
      !add_scaled(*next, affine(b->a), c))
    return false;
  if (c > 0 && (__builtin_mul_overflow(c, *d - 1, &cd) || !add_constant(*next, -cd))) return false;
  return add_constant(*next, *d - 1) && search(*next, depth - 1);
}

/// floor(x/d) <= r if and only if x <= r*d + d - 1; r <= floor(x/d) if and only if r*d <= x.
bool Context::search_symbolic_quotient(const Affine& a, const Expr& term, int64_t c, int depth) {
  const auto* b = term.as<Binary>();
  if ((c != 1 && c != -1) || range(b->b).lo <= 0) return false;
  const Affine d = affine(b->b);
  if (d.terms.size() != 1 || d.terms[0].second != 1 || d.constant != 0) return false;
  Affine rest = a;
  if (!add_term(rest, term, -c)) return false;
  auto next = times(rest, d.terms[0].first);
  if (!next || !add_scaled(*next, affine(b->a), c)) return false;
  if (c < 0 && (!add_scaled(*next, d, 1) || !add_constant(*next, -1))) return false;
  return search(*next, depth - 1);
}

/// A product with a factor whose symbolic bound helps, or (x/d) * d, which is at most x.
bool Context::search_product(const Affine& a, const Expr& term, int64_t c, int depth) {
  std::vector<Expr> parts;
  factors(term, parts);
  for (const Expr& f : parts) {
    const Expr others = without_factor(term, f);
    if (range(others).lo < 0) continue;
    Affine next = a;
    if (!add_term(next, term, -c)) return false;
    if (const auto* v = f.as<VarRef>()) {
      const Bounds::Range r = var_range(v->var);
      const Expr& bound = c > 0 ? r.lo : r.hi;
      if (!bound || as_int(bound)) continue;
      const auto product = times(affine(bound), others);
      if (product && add_scaled(next, *product, c) && search(next, depth - 1)) return true;
    }
    const auto* q = f.as<Binary>();
    if (c > 0 || q == nullptr || q->op != BinaryOp::Div || range(q->b).lo <= 0) continue;
    const Expr rest = without_factor(others, q->b);
    if (!rest) continue;
    const auto product =
        as_int(rest) ? times(affine(q->a), *as_int(rest)) : times(affine(q->a), rest);
    if (range(rest).lo >= 0 && product && add_scaled(next, *product, c) && search(next, depth - 1))
      return true;
  }
  return false;
}

}  // namespace tilewright::arith
