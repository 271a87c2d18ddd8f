#include "tilewright/arith/fetch.h"

#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/arith/simplifier.h"
#include "tilewright/ir/walk.h"

namespace tilewright::arith {
namespace {

void split_conjunction(const Expr& condition, std::vector<Expr>& out) {
  const auto* both = condition.as<Binary>();
  if (both == nullptr || both->op != BinaryOp::And) return out.push_back(condition);
  split_conjunction(both->a, out);
  split_conjunction(both->b, out);
}

/// The n for which `condition` is `index < n`. It may count in steps of several elements.
std::optional<int64_t> limit_by(const Expr& condition, const Expr& index, const Bounds& bounds) {
  const auto* less = condition.as<Binary>();
  const auto most = less && less->op == BinaryOp::Lt ? as_int(less->b) : std::nullopt;
  if (!most) return std::nullopt;
  const Affine at = as_affine(index), counted = as_affine(less->a);
  for (const auto& [term, step] : counted.terms)
    for (const auto& [other, wide] : at.terms) {
      if (!equal(term, other) || step < 1 || wide % step != 0 || wide < step) continue;
      const int64_t width = wide / step;
      const auto rest = const_range(simplify(index - less->a * width, bounds), bounds);
      if (rest && rest->second - rest->first < width) return *most * width + rest->first;
    }
  return std::nullopt;
}

}  // namespace

std::optional<Fetch> fetch_of(const Store& store, const std::vector<Expr>& guards,
                              const Bounds& bounds) {
  std::vector<Expr> conditions;
  Expr value = store.value;
  for (const Select* choice = value.as<Select>(); choice != nullptr; choice = value.as<Select>()) {
    if (!is_zero(choice->on_false)) return std::nullopt;
    split_conjunction(simplify(choice->condition, bounds), conditions);
    value = choice->on_true;
  }
  const auto* from = value.as<Load>();
  if (store.combine != Combine::Set || from == nullptr ||
      from->buffer.dtype() != store.buffer.dtype())
    return std::nullopt;
  // A guard leaves elements alone; only one that always holds is no condition.
  if (!std::all_of(guards.begin(), guards.end(),
                   [&](const Expr& guard) { return prove(guard, bounds); }))
    return std::nullopt;
  Fetch fetch{from->buffer, from->indices, {}};
  for (Expr& index : fetch.at) index = simplify(index, bounds);
  fetch.limits.resize(fetch.at.size());
  for (const Expr& condition : conditions) {
    bool found = prove(condition, bounds);
    for (size_t axis = 0; axis < fetch.at.size() && !found; ++axis)
      if (const auto limit = limit_by(condition, fetch.at[axis], bounds)) {
        fetch.limits[axis] = std::min(*limit, fetch.limits[axis].value_or(*limit));
        found = true;
      }
    if (!found) return std::nullopt;
  }
  return fetch;
}

std::optional<size_t> moved_axis(const Var& var, const std::vector<Expr>& indices) {
  std::optional<size_t> found;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (!uses(indices[axis], var)) continue;
    const Affine sum = as_affine(indices[axis]);
    const bool plain = std::none_of(sum.terms.begin(), sum.terms.end(), [&](const auto& term) {
      return !term.first.template as<VarRef>() && uses(term.first, var);
    });
    if (found || !plain || sum.coefficient(var) != 1) return std::nullopt;
    found = axis;
  }
  return found;
}

}  // namespace tilewright::arith
