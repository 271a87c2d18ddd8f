// Dependence tests on top of meet (schedule/meet.cc): which accesses conflict, and which loop
// carries the conflict.
//
//   for i { A[i + 1] = A[i] }     loop i carries a conflict: iteration 0 writes what 1 reads
//   for i { A[i] = A[i] + 1 }     it carries none: the same element means the same iteration
#include "tilewright/schedule/dependence.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::schedule {
namespace {

struct Located {
  Id block;
  Access access;
};

/// Accesses of the blocks inside `id` to buffers that outlive one run of it, with the ranges of all
/// variables and the loops inside.
struct Scope {
  Scope(const Tree& tree, Id id) : bounds(tree.bounds_at(id)) {
    std::vector<Buffer> own;
    for (Id n = id; n < tree.end(id); ++n) {
      if (const For* loop = tree.as<For>(n)) {
        bounds.bind(loop->var, loop->extent);
        inside.insert(loop->var);
      }
      if (const Alloc* a = tree.as<Alloc>(n)) own.push_back(a->buffer);
    }
    for (Id b : tree.blocks_in(id))
      for (Access& a : accesses(tree.block(b))) {
        if (std::find(own.begin(), own.end(), a.buffer) != own.end()) continue;
        for (const auto& [var, extent] : a.inner) {
          bounds.bind(var, extent);
          inside.insert(var);
        }
        all.push_back({b, std::move(a)});
      }
  }

  arith::Bounds bounds;
  std::set<Var> inside;  ///< loops in the subtree, `id` itself included
  std::vector<Located> all;
};

bool conflicting(const Access& a, const Access& b) {
  return a.buffer == b.buffer && (a.write || b.write);
}

bool atomic(const Block& block) {
  return std::any_of(block.marks.begin(), block.marks.end(),
                     [](const Mark& m) { return m.kind == MarkKind::Atomic; });
}

std::string describe(const Tree& tree, const Located& a, const Located& b) {
  auto verb = [](const Access& x) { return x.update ? "updates" : x.write ? "writes" : "reads"; };
  if (a.block == b.block && a.access.write == b.access.write)
    return fmt::format("block {} {} one element of {} in several iterations",
                       tree.block(a.block).name, verb(a.access), a.access.buffer.name());
  return fmt::format("block {} {} an element of {} that block {} {} in another iteration",
                     tree.block(a.block).name, verb(a.access), a.access.buffer.name(),
                     tree.block(b.block).name, verb(b.access));
}

}  // namespace

std::optional<std::string> carried_by(const Tree& tree, Id loop, bool atomic_ok) {
  const Scope scope(tree, loop);
  const Var& var = tree.loop(loop).var;
  for (size_t i = 0; i < scope.all.size(); ++i)
    for (size_t j = i; j < scope.all.size(); ++j) {
      const Located &a = scope.all[i], &b = scope.all[j];
      if (!conflicting(a.access, b.access)) continue;
      if (atomic_ok && a.access.update && b.access.update && a.access.combine == b.access.combine &&
          atomic(tree.block(a.block)) && atomic(tree.block(b.block)))
        continue;
      const Meeting m = meet(a.access.indices, b.access.indices, scope.inside, scope.bounds);
      if (!m.never && !m.equal.contains(var)) return describe(tree, a, b);
    }
  return std::nullopt;
}

Status check_concurrency(const Func& func, const std::vector<std::string>& blocks,
                         int requirement) {
  bool any = false;
  const Tree tree(func);
  for (Id l : tree.loops()) {
    const ForKind kind = tree.loop(l).kind;
    any |= kind != ForKind::Serial && kind != ForKind::Unroll;
  }
  if (!any) return {};
  std::set<Id> checked;
  for (const std::string& name : blocks) {
    const auto block = tree.find_block(name);
    if (!block) continue;
    for (Id l : tree.loops_around(*block)) {
      const ForKind kind = tree.loop(l).kind;
      if (kind == ForKind::Serial || kind == ForKind::Unroll || !checked.insert(l).second) continue;
      if (auto conflict = carried_by(tree, l, true))
        return refuse(requirement, fmt::format("{} loop {}: {}", tilewright::name(kind),
                                               tree.loop(l).var.name(), *conflict));
    }
  }
  return {};
}

std::optional<std::string> reorder_conflict(const Tree& tree, const std::vector<Id>& before,
                                            const std::vector<Id>& after) {
  const Scope scope(tree, before.front());
  auto turned = [&](const std::set<Var>& equal) {
    std::vector<Id> x = before, y = after;
    auto fixed = [&](Id l) { return equal.contains(tree.loop(l).var); };
    std::erase_if(x, fixed), std::erase_if(y, fixed);
    return x != y;
  };
  for (size_t i = 0; i < scope.all.size(); ++i)
    for (size_t j = i; j < scope.all.size(); ++j) {
      const Located &a = scope.all[i], &b = scope.all[j];
      if (!conflicting(a.access, b.access)) continue;
      if (a.access.update && b.access.update && a.access.combine == b.access.combine &&
          !order_matters(tree.func().math, a.access.buffer.dtype(), a.access.combine))
        continue;
      const Meeting m = meet(a.access.indices, b.access.indices, scope.inside, scope.bounds);
      if (!m.never && turned(m.equal)) return describe(tree, a, b);
    }
  return std::nullopt;
}

bool may_conflict(const Tree& tree, Id a, Id b) {
  const Scope x(tree, a), y(tree, b);
  if (x.all.empty() || y.all.empty()) return false;
  arith::Bounds bounds = tree.bounds_at(a);
  std::set<Var> varying = x.inside;
  varying.insert(y.inside.begin(), y.inside.end());
  for (const Scope* s : {&x, &y})
    for (const auto& [var, range] : s->bounds.ranges()) bounds.bind_range(var, range.lo, range.hi);
  for (const Located& p : x.all)
    for (const Located& q : y.all) {
      if (!conflicting(p.access, q.access)) continue;
      if (p.access.update && q.access.update && p.access.combine == q.access.combine &&
          !order_matters(tree.func().math, p.access.buffer.dtype(), p.access.combine))
        continue;
      if (!meet(p.access.indices, q.access.indices, varying, bounds).never) return true;
    }
  return false;
}

}  // namespace tilewright::schedule
