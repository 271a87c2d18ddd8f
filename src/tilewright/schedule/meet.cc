// Whether two accesses can touch the same element, and which loop variables must then agree.
//
//   A[16*i + j] and A[16*i' + j'] with j, j' in 0..15: the same element means
//   16*(i - i') + (j - j') = 0. As |j - j'| < 16, i = i'; what is left says j = j'.
//   A[2*i] and A[2*i' + 1] never meet: no multiple of 2 is 1.
//
// Each axis of the index lists gives one equation: a sum of coefficient * (difference of a variable
// or term) plus a rest of known range. If all others together are smaller than the largest
// coefficient, the difference at that coefficient is 0; it is dropped and the next one examined. An
// equation that no values within the ranges fulfil means that the accesses never meet. `/` and `%`
// are first replaced by independent digits (schedule/digits.h), each of which is such a term.
#include <algorithm>
#include <numeric>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/dependence.h"
#include "tilewright/schedule/digits.h"

namespace tilewright::schedule {
namespace {

using Wide = __int128;
constexpr Wide kUnbounded = Wide{1} << 80;

struct Range {
  Wide lo, hi;
};
Wide clamp(Wide x) { return std::clamp(x, -kUnbounded, kUnbounded); }
Wide magnitude(Wide x) { return x < 0 ? -x : x; }
Wide times(Wide x, Wide c) {
  const bool far = magnitude(x) >= kUnbounded;
  return far ? (c == 0 ? 0 : (x < 0) == (c < 0) ? kUnbounded : -kUnbounded) : clamp(x * c);
}
Range scaled(const Range& r, Wide c) {
  const Wide a = times(r.lo, c), b = times(r.hi, c);
  return {std::min(a, b), std::max(a, b)};
}
Range sum(const Range& a, const Range& b) { return {clamp(a.lo + b.lo), clamp(a.hi + b.hi)}; }
Range difference(const Range& a, const Range& b) {
  return {clamp(a.lo - b.hi), clamp(a.hi - b.lo)};
}

/// sum(coefficient * difference) + rest = 0 between two instances.
struct Equation {
  struct Pair {
    Wide coefficient;
    Range difference;
    Var same;  ///< the variable if it is the same one on both sides, else empty
  };
  std::vector<Pair> pairs;  ///< largest coefficient first
  Range rest{0, 0};
};

struct Term {
  Wide coefficient;
  Expr term;
};

class Solver {
 public:
  Solver(const std::set<Var>& varying, const arith::Bounds& bounds)
      : varying_(varying), bounds_(bounds) {}

  /// `simplify`: takes sums under `/` and `%` apart first.
  Meeting run(std::vector<Expr> a, std::vector<Expr> b, bool simplify) {
    for (std::vector<Expr>* side : {&a, &b})
      for (Expr& e : *side) {
        if (simplify) e = arith::simplify(e, bounds_);
        table_.find(e);
      }
    table_.make(bounds_, true);
    note_varying_digits();
    for (size_t d = 0; d < a.size(); ++d) add_equation(table_.expand(a[d]), table_.expand(b[d]));
    for (bool progress = true; progress && !never_;) {
      progress = false;
      for (size_t i = 0; i < equations_.size() && !never_; ++i) progress |= reduce(equations_[i]);
      progress |= resolve_names();
    }
    Meeting out;
    out.never = never_;
    for (const Var& v : varying_)
      if (known(v)) out.equal.insert(v);
    return out;
  }

 private:
  void note_varying_digits() {
    for (const Digits& d : table_.entries()) {
      if (!varies(d.base ? d.base : ref(d.var))) continue;
      if (d.base) names_.insert(d.var);
      names_.insert(d.digits.begin(), d.digits.end());
    }
  }

  Range range_of(const Expr& e) const {
    const auto r = arith::const_range(e, bounds_);
    if (!r) return {-kUnbounded, kUnbounded};
    return {r->first, r->second};
  }

  bool varies(const Expr& term) const {
    for (const Var& v : free_vars(term))
      if (varying_.contains(v) || names_.contains(v)) return true;
    return false;
  }
  static bool has_load(const Expr& term) {
    bool found = false;
    walk(term, [&](const Expr& x) { found |= x.as<Load>() != nullptr; });
    return found;
  }

  /// Cancels what both sides have in common; pairs the rest by coefficient.
  void add_equation(const Expr& a, const Expr& b) {
    const arith::Affine x = arith::as_affine(a), y = arith::as_affine(b);
    Equation eq;
    eq.rest.lo = eq.rest.hi = Wide{x.constant} - y.constant;
    std::vector<Term> left, right;
    for (const auto& [term, c] : x.terms) left.push_back({c, term});
    for (const auto& [term, c] : y.terms) right.push_back({c, term});
    std::erase_if(right, [&](const Term& r) {
      const auto it = std::find_if(left.begin(), left.end(),
                                   [&](const Term& l) { return equal(l.term, r.term); });
      if (it == left.end() || has_load(r.term)) return false;
      const Range range = range_of(r.term);
      if (!varies(r.term)) {
        eq.rest = sum(eq.rest, scaled(range, it->coefficient - r.coefficient));
      } else if (it->coefficient == r.coefficient) {
        Var var;
        if (const VarRef* v = r.term.as<VarRef>()) var = v->var;
        eq.pairs.push_back({r.coefficient, difference(range, range), var});
      } else {
        return false;
      }
      left.erase(it);
      return true;
    });
    for (const Term& r : right) {
      const Range range = range_of(r.term);
      const auto it = std::find_if(left.begin(), left.end(),
                                   [&](const Term& l) { return l.coefficient == r.coefficient; });
      if (it == left.end()) {
        eq.rest = sum(eq.rest, scaled(range, -r.coefficient));
        continue;
      }
      eq.pairs.push_back({r.coefficient, difference(range_of(it->term), range), Var()});
      left.erase(it);
    }
    for (const Term& l : left) eq.rest = sum(eq.rest, scaled(range_of(l.term), l.coefficient));
    std::sort(eq.pairs.begin(), eq.pairs.end(), [](const auto& p, const auto& q) {
      return magnitude(p.coefficient) > magnitude(q.coefficient);
    });
    equations_.push_back(std::move(eq));
  }

  /// Drops pairs that are known or can be shown to be equal; notes contradictions.
  bool reduce(Equation& eq) {
    std::erase_if(eq.pairs, [&](const Equation::Pair& p) { return p.same && known(p.same); });
    bool progress = false;
    while (!eq.pairs.empty()) {
      Range others = eq.rest;
      for (size_t i = 1; i < eq.pairs.size(); ++i)
        others = sum(others, scaled(eq.pairs[i].difference, eq.pairs[i].coefficient));
      const Equation::Pair& top = eq.pairs.front();
      const Wide c = magnitude(top.coefficient);
      if (others.lo <= -c || others.hi >= c) break;
      if (top.same) known_.insert(top.same);
      if (top.difference.lo > 0 || top.difference.hi < 0) never_ = true;
      eq.pairs.erase(eq.pairs.begin());
      progress = true;
    }
    Range total = eq.rest;
    int64_t divisor = 0;
    for (const auto& p : eq.pairs) {
      total = sum(total, scaled(p.difference, p.coefficient));
      divisor = std::gcd(divisor, static_cast<int64_t>(p.coefficient));
    }
    if (total.lo > 0 || total.hi < 0) never_ = true;
    if (divisor > 1 && eq.rest.lo == eq.rest.hi && eq.rest.lo % divisor != 0) never_ = true;
    return progress;
  }

  bool known(const Var& v) const {
    if (known_.contains(v)) return true;
    if (const Digits* d = table_.of(v); d != nullptr && !d->digits.empty())
      return std::all_of(d->digits.begin(), d->digits.end(),
                         [&](const Var& digit) { return known(digit); });
    const auto r = arith::const_range(ref(v), bounds_);
    return r && r->first >= r->second;
  }

  /// Sums whose digits are all known are known themselves: one more equation each.
  bool resolve_names() {
    bool progress = false;
    for (const Digits& d : table_.entries()) {
      if (!d.base || d.digits.empty() || resolved_.contains(d.var) || !known(d.var)) continue;
      resolved_.insert(d.var);
      const Expr value = table_.expand_base(d.base);
      add_equation(value, value);
      progress = true;
    }
    return progress;
  }

  const std::set<Var>& varying_;
  arith::Bounds bounds_;
  DigitTable table_;
  std::set<Var> names_;  ///< digits and names of sums that vary
  std::set<Var> known_, resolved_;
  std::vector<Equation> equations_;
  bool never_ = false;
};

}  // namespace

Meeting meet(const std::vector<Expr>& a, const std::vector<Expr>& b, const std::set<Var>& varying,
             const arith::Bounds& bounds) {
  Meeting found = Solver(varying, bounds).run(a, b, true);
  if (found.never || found.equal.size() == varying.size()) return found;
  // Indices that cut one sum in several ways tell more as long as it is one sum.
  Meeting whole = Solver(varying, bounds).run(a, b, false);
  found.never = whole.never;
  found.equal.merge(whole.equal);
  return found;
}

}  // namespace tilewright::schedule
