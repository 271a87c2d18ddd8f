#include "tilewright/arith/exhaust.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tilewright/ir/walk.h"

namespace tilewright::arith {
namespace {

/// Points that are tried, at most.
constexpr int64_t kMostPoints = int64_t{1} << 17;

using Values = std::map<Var, int64_t>;

/// The value of an expression of + - * / % over known variables; absent for anything else.
std::optional<int64_t> value_of(const Expr& e, const Values& values) {
  if (const auto* i = e.as<IntImm>()) return i->value;
  if (const auto* v = e.as<VarRef>()) {
    const auto it = values.find(v->var);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  }
  const auto* b = e.as<Binary>();
  if (b == nullptr) return std::nullopt;
  const auto x = value_of(b->a, values), y = value_of(b->b, values);
  if (!x || !y) return std::nullopt;
  const bool divides = b->op == BinaryOp::Div || b->op == BinaryOp::Mod;
  if (divides && (*x < 0 || *y < 1)) return std::nullopt;
  switch (b->op) {
    case BinaryOp::Add:
      return *x + *y;
    case BinaryOp::Sub:
      return *x - *y;
    case BinaryOp::Mul:
      return *x * *y;
    case BinaryOp::Div:
      return *x / *y;
    case BinaryOp::Mod:
      return *x % *y;
    default:
      return std::nullopt;
  }
}

/// A sum, in two parts: variables of their own, and what is tied together by `/` and `%`.
struct Halves {
  std::vector<std::pair<Var, int64_t>> plain;
  Expr tied;
  std::vector<Var> vars;  ///< of `tied`
};

Halves parts_of(const Expr& e, const Bounds& bounds) {
  const Affine sum = as_affine(simplify(e, bounds));
  Halves out;
  out.tied = int_imm(sum.constant);
  for (const auto& [term, step] : sum.terms)
    if (!term.as<VarRef>()) out.tied = out.tied + term * step;
  out.vars = free_vars(out.tied);
  for (const auto& [term, step] : sum.terms) {
    const auto* var = term.as<VarRef>();
    if (var == nullptr) continue;
    if (std::find(out.vars.begin(), out.vars.end(), var->var) != out.vars.end())
      out.tied = out.tied + term * step;
    else
      out.plain.emplace_back(var->var, step);
  }
  return out;
}

/// Whether `holds` for all values of `vars`.
bool for_all(const std::vector<Var>& vars, const Bounds& bounds,
             const std::function<bool(Values&)>& holds) {
  Values values;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  int64_t points = 1;
  for (const Var& var : vars) {
    const auto range = const_range(ref(var), bounds);
    if (!range || range->second < range->first ||
        range->second - range->first >= kMostPoints / points)
      return false;
    points *= range->second - range->first + 1;
    ranges.push_back(*range);
    values[var] = range->first;
  }
  for (;;) {
    if (!holds(values)) return false;
    size_t i = 0;
    for (; i < vars.size(); ++i) {
      int64_t& value = values[vars[i]];
      if (++value <= ranges[i].second) break;
      value = ranges[i].first;
    }
    if (i == vars.size()) return true;
  }
}

}  // namespace

bool counts_up(const Expr& e, const Var& var, const Bounds& bounds) {
  const Halves parts = parts_of(e, bounds);
  if (std::find(parts.vars.begin(), parts.vars.end(), var) == parts.vars.end())
    return std::find(parts.plain.begin(), parts.plain.end(), std::pair(var, int64_t{1})) !=
           parts.plain.end();
  return for_all(parts.vars, bounds, [&](Values& at) {
    const int64_t own = at[var];
    const auto here = value_of(parts.tied, at);
    at[var] = 0;
    const auto first = value_of(parts.tied, at);
    at[var] = own;
    return here && first && *here - *first == own;
  });
}

bool is_multiple(const Expr& e, int64_t n, const Bounds& bounds) {
  const Halves parts = parts_of(e, bounds);
  if (!std::all_of(parts.plain.begin(), parts.plain.end(),
                   [&](const auto& term) { return term.second % n == 0; }))
    return false;
  return for_all(parts.vars, bounds, [&](Values& at) {
    const auto value = value_of(parts.tied, at);
    return value && *value % n == 0;
  });
}

}  // namespace tilewright::arith
