#include "tilewright/lower/initiation.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::lower {
namespace {

/// The first of `loops` that the element stored to does not depend on.
const For* repeated_in(const std::vector<const For*>& loops, const Store& store,
                       const VarMap& bindings) {
  for (const For* loop : loops) {
    if (is_const_int(loop->extent, 1)) continue;
    if (std::none_of(store.indices.begin(), store.indices.end(), [&](const Expr& index) {
          return uses(substitute(index, bindings), loop->var);
        }))
      return loop;
  }
  return nullptr;
}

std::optional<std::string> sums_in(const Stmt& s, std::vector<const For*>& unrolled,
                                   const VarMap& bindings) {
  if (const auto* store = s.as<Store>()) {
    const bool ordered = is_float(store->buffer.dtype()) &&
                         (store->combine == Combine::Add || store->combine == Combine::Mul);
    const For* loop = ordered ? repeated_in(unrolled, *store, bindings) : nullptr;
    if (loop == nullptr) return std::nullopt;
    return fmt::format(
        "the math is exact: several products of one reduction in one iteration (loop {}, of {}) "
        "need fast math or integers",
        loop->var.name(), store->buffer.name());
  }
  if (const auto* block = s.as<Block>()) {
    VarMap inside;
    for (const Iter& iter : block->iters) inside[iter.var] = iter.binding;
    return sums_in(block->body, unrolled, inside);
  }
  const auto* loop = s.as<For>();
  if (loop != nullptr) unrolled.push_back(loop);
  std::optional<std::string> why;
  for (const Stmt& child : children(s))
    if (child && !why) why = sums_in(child, unrolled, bindings);
  if (loop != nullptr) unrolled.pop_back();
  return why;
}

}  // namespace

std::optional<std::string> sums_out_of_order(const For& loop, MathMode math) {
  if (math == MathMode::Fast) return std::nullopt;
  std::vector<const For*> unrolled;
  return sums_in(loop.body, unrolled, {});
}

}  // namespace tilewright::lower
