#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// Negative zero: added to a sum, it leaves even the sign of a zero.
bool adds_nothing(const Expr& e) {
  const auto* number = e.as<FloatImm>();
  return number != nullptr && number->value == 0 && std::signbit(number->value);
}

bool runs_along_lanes(const Expr& condition, const std::vector<Var>& lanes) {
  return std::any_of(lanes.begin(), lanes.end(),
                     [&](const Var& lane) { return uses(condition, lane); });
}

/// `C += select(p, v, -0.0)` => `if p { C += v }`, where all lanes do the same.
Stmt lift_condition(const Stmt& s, const std::vector<Var>& lanes) {
  const auto* store = s.as<Store>();
  if (store == nullptr || store->combine != Combine::Add) return s;
  const auto* choice = store->value.as<Select>();
  if (choice == nullptr || !adds_nothing(choice->on_false)) return s;
  if (runs_along_lanes(choice->condition, lanes)) return s;
  Store bare = *store;
  bare.value = choice->on_true;
  return make(If{choice->condition, make(std::move(bare)), Stmt()});
}

std::vector<Var> lanes_of(const Func& func) {
  std::vector<Var> lanes;
  walk(func.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop != nullptr && loop->kind == ForKind::Vector) lanes.push_back(loop->var);
  });
  return lanes;
}

/// A block marked atomic inside of a parallel loop: threads would update the same element, and code
/// for that exists nowhere. Empty if there is none.
std::string shared_update(const Stmt& s, bool parallel = false) {
  if (const auto* loop = s.as<For>()) parallel |= loop->kind == ForKind::Parallel;
  if (const auto* block = s.as<Block>(); block != nullptr && parallel)
    for (const Mark& mark : block->marks)
      if (mark.kind == MarkKind::Atomic) return block->name;
  for (const Stmt& child : children(s))
    if (std::string name = shared_update(child, parallel); !name.empty()) return name;
  return "";
}

}  // namespace

Result<Func> bind_iters(const Func& func) {
  if (const std::string name = shared_update(func.body); !name.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("block '{}' is updated by several threads at once", name),
                "there is no code for the mark atomic", "make the loop around it serial");
  Func out = func;
  const std::vector<Var> lanes = lanes_of(func);
  out.body = rewrite(func.body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block == nullptr) return s;
    VarMap bindings;
    for (const Iter& iter : block->iters) bindings[iter.var] = iter.binding;
    const Stmt body = lift_condition(substitute(block->body, bindings), lanes);
    return block->guard ? make(If{block->guard, body, Stmt()}) : body;
  });
  return out;
}

}  // namespace tilewright::lower
