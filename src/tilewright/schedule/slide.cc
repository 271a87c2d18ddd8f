// The step Slide: a producer inside a loop makes only what earlier iterations have not made.
//
//   for t in 8 { alloc P  for p in 3 { P[t + p] = f(t + p) }  use P[t .. t + 2] }
//   =>
//   alloc P  for t in 8 { for p in 3 { P[t + p] = f(t + p) where t == 0 || p >= 2 }  use .. }
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/regenerate.h"

namespace tilewright::schedule {
namespace {

/// The condition that the iteration's value was not made by an earlier iteration of the loop.
/// errors: NotApplicable (5) if the values of successive iterations are not overlapping windows.
Result<Expr> new_values_only(const Tree& tree, Id block_id, Id loop_id, size_t iter) {
  const Block& block = tree.block(block_id);
  const For& loop = tree.loop(loop_id);
  const arith::Bounds bounds = tree.bounds_at(block_id);
  const std::vector<Var> own = vars_of(tree, loops_below(tree, block_id, loop_id));
  std::vector<Expr> bindings;
  for (const Iter& i : block.iters) bindings.push_back(i.binding);
  const arith::Box box = box_of(bindings, own, bounds);
  const auto window = [&](const std::string& why) {
    return refuse(5, fmt::format("iteration {} of block {} {}", block.iters[iter].var.name(),
                                 block.name, why));
  };
  if (!residual_guard(block, bounds).empty())
    return refuse(5, fmt::format("block {} has a guard of its own", block.name));
  for (size_t i = 0; i < box.dims.size(); ++i)
    if (i != iter && (uses(box.dims[i].begin, loop.var) || uses(box.dims[i].size, loop.var)))
      return refuse(5, fmt::format("iteration {} of block {} moves with loop {} too",
                                   block.iters[i].var.name(), block.name, loop.var.name()));
  const arith::Affine begin = arith::as_affine(box.dims[iter].begin);
  const auto size = as_int(box.dims[iter].size);
  const int64_t step = begin.coefficient(loop.var);
  for (const auto& [term, c] : begin.terms)
    if (!term.as<VarRef>() && uses(term, loop.var)) return window("is not affine in the loop");
  if (!size || !box.exact) return window("does not run over a window of constant size");
  if (step <= 0) return window("does not move forward with the loop");
  if (step > *size) return window(fmt::format("moves by {}, its window is {}", step, *size));
  const Expr previous_end =
      substitute(box.dims[iter].begin, {{loop.var, ref(loop.var) - 1}}) + *size;
  const Expr fresh = arith::simplify(bindings[iter] - previous_end, bounds);
  return arith::simplify(logical_or(eq(ref(loop.var), int_imm(0)), fresh >= 0), bounds);
}

}  // namespace

Result<Func> run(const Slide& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Id loop_id = TW_TRY(tree.find_loop(step.loop));
  const For& loop = tree.loop(loop_id);
  const Store* store = single_store(tree.block(id));
  if (store == nullptr) return refuse(1, fmt::format("block {} is not a single store", step.block));
  const Buffer& buffer = store->buffer;
  const auto producer = producer_of(tree, uses, buffer);
  if (!producer || producer->main != id)
    return refuse(
        1, fmt::format("{} has other writers than {} and its init", buffer.name(), step.block));
  const Id alloc = tree.alloc_of(buffer);
  if (alloc == kNone || !tree.inside(alloc, loop_id) || tree.parent(tree.parent(alloc)) != loop_id)
    return refuse(
        2, fmt::format("{} is not allocated in the body of loop {}", buffer.name(), step.loop));
  if (loop.kind != ForKind::Serial && loop.kind != ForKind::Unroll)
    return refuse(3, fmt::format("loop {} is {}", step.loop, name(loop.kind)));
  std::vector<Id> writers{id};
  if (producer->init != kNone) writers.insert(writers.begin(), producer->init);
  Edit edit(tree);
  for (Id w : writers) {
    const Block& block = tree.block(w);
    const auto axes = axes_of(single_store(block)->indices, block);
    const auto it = std::find_if(block.iters.begin(), block.iters.end(),
                                 [&](const Iter& i) { return i.var.name() == step.iter; });
    if (it == block.iters.end() || !axes)
      return refuse(4, fmt::format("block {} has no iteration {} along an axis of {}", block.name,
                                   step.iter, buffer.name()));
    const size_t iter = static_cast<size_t>(it - block.iters.begin());
    const bool indexes = std::any_of(axes->begin(), axes->end(), [&](const Axis& a) {
      return a.iter == static_cast<int>(iter);
    });
    if (!indexes || it->kind != IterKind::Space)
      return refuse(4, fmt::format("iteration {} of block {} does not index {}", step.iter,
                                   block.name, buffer.name()));
    const Expr fresh = TW_TRY(new_values_only(tree, w, loop_id, iter));
    Block changed = block;
    std::vector<Expr> guard = conjuncts(block.guard);
    guard.push_back(fresh);
    changed.guard = conjunction(guard);
    edit.replace(w, make(std::move(changed)));
  }
  const Stmt decl = tree.stmt(alloc);
  edit.erase(alloc);
  edit.before(loop_id, {decl});
  return edit.func();
}

}  // namespace tilewright::schedule
