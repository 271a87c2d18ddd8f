#include "tilewright/codegen/fpga/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen::fpga_design {
namespace {

using fpga::Affine;
using fpga::Range;

/// What is missing counts as 0, so equal values have equal forms without zeros at their ends.
void trim(std::vector<int64_t>& coefficients) {
  while (!coefficients.empty() && coefficients.back() == 0) coefficients.pop_back();
}

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

/// Calls `f` with every coefficient that is not 0, as a reference, and its counter.
template <class A, class F>
void each(A& affine, const Loops& loops, const F& f) {
  for (size_t i = 0; i < affine.loops.size(); ++i)
    if (affine.loops[i] != 0) f(affine.loops[i], loops.loops[i]);
  for (size_t i = 0; i < affine.counters.size(); ++i)
    if (affine.counters[i] != 0) f(affine.counters[i], loops.counters[i]);
}

/// Conditions on one linear form: lo <= form <= hi.
struct Limits {
  Affine form;
  std::optional<int64_t> lo, hi;
};
using Forms = std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, Limits>;

/// The coefficient that is positive in the form that stands for both directions.
int64_t leading(const Affine& a) {
  if (!a.counters.empty()) return a.counters.back();
  return a.loops.empty() ? 0 : a.loops.back();
}

/// Adds `value >= 0`. False if it never holds.
bool at_least_zero(Affine value, const Loops& loops, Forms& forms) {
  if (value.is_constant()) return value.constant >= 0;
  int64_t divisor = 0;
  each(value, loops, [&](int64_t c, const Counter&) { divisor = std::gcd(divisor, c); });
  if (leading(value) < 0) divisor = -divisor;
  const int64_t constant = value.constant;
  value.constant = 0;
  each(value, loops, [&](int64_t& c, const Counter&) { c /= divisor; });
  Limits& limits = forms[{value.loops, value.counters}];
  limits.form = value;
  if (divisor > 0) {  // divisor * form >= -constant
    const int64_t lo = -floor_div(constant, divisor);
    limits.lo = std::max(limits.lo.value_or(lo), lo);
  } else {  // |divisor| * form <= constant
    const int64_t hi = floor_div(constant, -divisor);
    limits.hi = std::min(limits.hi.value_or(hi), hi);
  }
  return true;
}

tl::unexpected<Error> not_a_range(const Expr& condition) {
  return fail(ErrorKind::Unsupported,
              fmt::format("the condition `{}` is no comparison of loops", print(condition)));
}

/// Adds one condition. False if it never holds.
Result<bool> add(const Expr& condition, const Loops& loops, Forms& forms) {
  if (const auto value = as_int(condition)) return *value != 0;
  const auto* op = condition.as<Binary>();
  if (op == nullptr) return not_a_range(condition);
  if (op->op == BinaryOp::And) {
    const bool a = TW_TRY(add(op->a, loops, forms)), b = TW_TRY(add(op->b, loops, forms));
    return a && b;
  }
  if (!is_comparison(op->op) || op->op == BinaryOp::Ne || is_float(op->a.dtype()))
    return not_a_range(condition);
  const auto a = affine_of(op->a, loops), b = affine_of(op->b, loops);
  if (!a || !b) return not_a_range(condition);
  const auto below = [&](const Affine& x, const Affine& y, int64_t by) {
    Affine gap = plus(y, x, -1);
    gap.constant -= by;
    return at_least_zero(gap, loops, forms);
  };
  switch (op->op) {
    case BinaryOp::Lt:
      return below(*a, *b, 1);
    case BinaryOp::Le:
      return below(*a, *b, 0);
    case BinaryOp::Gt:
      return below(*b, *a, 1);
    case BinaryOp::Ge:
      return below(*b, *a, 0);
    default: {
      const bool least = below(*a, *b, 0), most = below(*b, *a, 0);
      return least && most;
    }
  }
}

/// `index` as quotient * divisor + remainder with 0 <= remainder < divisor.
struct Divided {
  Affine quotient, remainder;
  std::optional<CounterSplit> split;
};

Result<Divided> divide(const Affine& index, int64_t divisor, const Loops& loops,
                       const std::string& name) {
  Divided out{index, index, {}};
  out.quotient.constant = floor_div(index.constant, divisor);
  out.remainder.constant = index.constant - out.quotient.constant * divisor;
  const auto part = [&](std::vector<int64_t>& quotients, std::vector<int64_t>& remainders) {
    for (size_t i = 0; i < quotients.size(); ++i) {
      const bool whole = quotients[i] % divisor == 0;
      quotients[i] = whole ? quotients[i] / divisor : 0;
      if (whole) remainders[i] = 0;
    }
    trim(quotients), trim(remainders);
  };
  part(out.quotient.loops, out.remainder.loops);
  part(out.quotient.counters, out.remainder.counters);
  const IndexRange range = interval_of(out.remainder, loops);
  if (range.lo >= 0 && range.hi < divisor) return out;
  for (size_t i = 0; i < out.remainder.counters.size(); ++i) {
    const int64_t c = out.remainder.counters[i];
    if (c == 0) continue;
    const int64_t factor = divisor / std::gcd(divisor, c);
    if (factor < loops.counters[i].extent) {
      out.split = CounterSplit{loops.counters[i].var, factor};
      return out;
    }
  }
  return fail(ErrorKind::Unsupported,
              fmt::format("which bank of {} an access goes to is no sum of loops", name),
              "partition an axis whose index is a loop of its own, without an offset");
}

}  // namespace

IndexRange interval_of(const Affine& affine, const Loops& loops) {
  IndexRange out{affine.constant, affine.constant};
  each(affine, loops, [&](int64_t c, const Counter& counter) {
    (c > 0 ? out.hi : out.lo) += c * (counter.extent - 1);
  });
  return out;
}

Affine plus(const Affine& a, const Affine& b, int64_t factor) {
  Affine out = a;
  const auto add = [factor](std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    to.resize(std::max(to.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) to[i] += factor * from[i];
    trim(to);
  };
  out.constant += factor * b.constant;
  add(out.loops, b.loops);
  add(out.counters, b.counters);
  return out;
}

Result<Affine> affine_of(const Expr& index, const Loops& loops) {
  const arith::Affine sum = arith::as_affine(index);
  Affine out{sum.constant, {}, {}};
  for (const auto& [term, coefficient] : sum.terms) {
    const auto* var = term.as<VarRef>();
    const auto find = [&](const std::vector<Counter>& in, std::vector<int64_t>& to) {
      for (size_t i = 0; i < in.size(); ++i) {
        if (var == nullptr || !(in[i].var == var->var)) continue;
        if (in[i].extent == 1) return true;  // it stays 0: what is equal has one form
        to.resize(std::max(to.size(), i + 1));
        to[i] += coefficient;
        return true;
      }
      return false;
    };
    if (!find(loops.loops, out.loops) && !find(loops.counters, out.counters))
      return fail(ErrorKind::Unsupported,
                  fmt::format("the index `{}` is no sum of loops", print(index)));
  }
  trim(out.loops), trim(out.counters);
  return out;
}

Result<std::vector<Range>> ranges_of(const std::vector<Expr>& conditions, const Loops& loops) {
  Forms forms;
  bool ever = true;
  for (const Expr& condition : conditions)
    if (!TW_TRY(add(condition, loops, forms))) ever = false;
  if (!ever) return std::vector<Range>{{{-1, {}, {}}, 1}};
  std::vector<Range> out;
  for (const auto& [_, limits] : forms) {
    const IndexRange all = interval_of(limits.form, loops);
    const int64_t lo = limits.lo.value_or(all.lo), hi = limits.hi.value_or(all.hi);
    if (lo <= all.lo && hi >= all.hi) continue;
    if (lo > hi) return std::vector<Range>{{{-1, {}, {}}, 1}};
    Range range{limits.form, hi - lo + 1};
    range.value.constant = -lo;
    out.push_back(range);
  }
  return out;
}

int64_t BankedBuffer::banks() const {
  int64_t n = 1;
  for (const lower::Banking& axis : banking) n *= axis.banks;
  return n;
}

int64_t BankedBuffer::words() const {
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) n *= ceil_div(shape[i], banking[i].banks);
  return n;
}

Result<Located> place_of(const BankedBuffer& chip, const std::string& name,
                         const std::vector<Expr>& indices, const Loops& loops) {
  Located out;
  out.place.memory = chip.memory;
  for (size_t i = 0; i < indices.size(); ++i) {
    const lower::Banking& axis = chip.banking[i];
    const int64_t words = ceil_div(chip.shape[i], axis.banks);
    const bool block = axis.kind == lower::Banking::Kind::Block;
    const Affine index = TW_TRY(affine_of(indices[i], loops));
    Divided divided{index, {}, {}};
    if (axis.banks > 1) divided = TW_TRY(divide(index, block ? words : axis.banks, loops, name));
    if (divided.split) {
      out.split = divided.split;
      return out;
    }
    if (block && axis.banks > 1) std::swap(divided.quotient, divided.remainder);
    out.place.word = plus(divided.quotient, out.place.word, words);
    out.place.bank = plus(divided.remainder, out.place.bank, axis.banks);
  }
  return out;
}

}  // namespace tilewright::codegen::fpga_design
