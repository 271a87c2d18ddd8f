// Loop variables under `/` and `%` as sums of digits, as in a number of mixed radix.
//
//   x in 0..31, used as x / 8 and x % 8  =>  x = 8*hi + lo, hi in 0..3, lo in 0..7;
//                                            x / 8 = hi, x % 8 = lo
//
// Cuts that divide each other (8 and 2) give one digit each; others (8 and 3) leave x whole.
#include "tilewright/schedule/digits.h"

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::schedule {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;

/// `base / lo % (hi / lo)`: a run of digits. hi 0: no upper end.
struct Run {
  Expr base;
  int64_t lo = 1, hi = 0;
  bool aligned = true;
};

/// Strips `/ c` and `% c` with positive constants off `e`.
Run run_of(const Expr& e) {
  const Binary* b = e.as<Binary>();
  const bool strip = b && (b->op == BinaryOp::Div || b->op == BinaryOp::Mod) && is_int(e.dtype());
  const int64_t c = strip ? as_int(b->b).value_or(0) : 0;
  if (c <= 0 || c > kLargest) return {e};
  Run run = run_of(b->a);
  if (run.lo > kLargest / c) return {e};
  if (b->op == BinaryOp::Div) {
    run.lo *= c;
    if (run.hi != 0) run.aligned &= run.lo <= run.hi && run.hi % run.lo == 0;
    return run;
  }
  const int64_t hi = run.lo * c;
  if (run.hi != 0) run.aligned &= run.hi % hi == 0 || hi % run.hi == 0;
  run.hi = run.hi == 0 ? hi : std::min(run.hi, hi);
  return run;
}

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found |= x.as<Load>() != nullptr; });
  return found;
}

}  // namespace

const Digits* DigitTable::of_base(const Expr& base) const {
  const VarRef* v = base.as<VarRef>();
  for (const Digits& d : entries_)
    if (d.base ? equal(d.base, base) : v && v->var == d.var) return &d;
  return nullptr;
}

const Digits* DigitTable::of(const Var& var) const {
  for (const Digits& d : entries_)
    if (d.var == var) return &d;
  return nullptr;
}

void DigitTable::find(const Expr& e) {
  walk(e, [&](const Expr& x) {
    const Run run = run_of(x);
    if (same(run.base, x) || has_load(run.base)) return;
    Digits* d = const_cast<Digits*>(of_base(run.base));
    if (d == nullptr) {
      const VarRef* v = run.base.as<VarRef>();
      entries_.push_back({v ? v->var : Var("digits"), v ? Expr() : run.base, {1}, {}, false});
      d = &entries_.back();
    }
    if (!run.aligned) d->cuts.push_back(0);
    d->cuts.push_back(run.lo);
    if (run.hi != 0) d->cuts.push_back(run.hi);
  });
}

void DigitTable::make(arith::Bounds& bounds, bool sums) {
  for (Digits& d : entries_) {
    std::sort(d.cuts.begin(), d.cuts.end());
    d.cuts.erase(std::unique(d.cuts.begin(), d.cuts.end()), d.cuts.end());
    const auto range = arith::const_range(d.base ? d.base : ref(d.var), bounds);
    bool fits = range && range->first >= 0 && range->second >= 0 && range->second < kLargest &&
                d.cuts.front() == 1 && (sums || !d.base);
    for (size_t i = 1; fits && i < d.cuts.size(); ++i) fits = d.cuts[i] % d.cuts[i - 1] == 0;
    if (d.base && range) bounds.bind_range(d.var, int_imm(range->first), int_imm(range->second));
    if (!fits) continue;
    const int64_t most = range->second;
    while (d.cuts.size() > 1 && d.cuts.back() > most) d.cuts.pop_back();
    d.ragged = (most + 1) % d.cuts.back() != 0;
    for (size_t i = 0; i < d.cuts.size(); ++i) {
      const Var digit("digit");
      const bool top = i + 1 == d.cuts.size();
      bounds.bind(digit, int_imm(top ? most / d.cuts[i] + 1 : d.cuts[i + 1] / d.cuts[i]));
      d.digits.push_back(digit);
    }
  }
}

Expr DigitTable::expand(const Expr& e) const {
  const Run run = run_of(e);
  const Digits* d = of_base(run.base);
  const bool bare_sum = d && d->base && same(run.base, e);
  if (d != nullptr && !d->digits.empty() && run.aligned && !bare_sum) {
    Expr total;
    for (size_t i = 0; i < d->digits.size(); ++i) {
      if (d->cuts[i] < run.lo || (run.hi != 0 && d->cuts[i] >= run.hi)) continue;
      Expr term = ref(d->digits[i]) * (d->cuts[i] / run.lo);
      total = total ? total + term : term;
    }
    return total ? total : int_imm(0);
  }
  return expand_base(e);
}

Expr DigitTable::expand_base(const Expr& e) const {
  const Binary* b = e.as<Binary>();
  if (b == nullptr || !is_int(e.dtype())) return e;
  const bool affine = b->op == BinaryOp::Add || b->op == BinaryOp::Sub ||
                      (b->op == BinaryOp::Mul && (as_int(b->a) || as_int(b->b)));
  return affine ? binary(b->op, expand(b->a), expand(b->b)) : e;
}

}  // namespace tilewright::schedule
