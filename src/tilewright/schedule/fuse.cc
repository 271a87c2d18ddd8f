// The step Fuse: for i in 4, j in 8 { S }  =>  for f in 32 { S[i := f / 8, j := f % 8] },
// f having the name `i*j`.
#include <fmt/format.h>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {

Result<Func> run(const Fuse& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.outer));
  const Id inner_id = TW_TRY(tree.find_loop(step.inner));
  const For &outer = tree.loop(id), &inner = tree.loop(inner_id);
  if (inner_id != id + 1)
    return refuse(
        1, fmt::format("loop {} is not the only statement in loop {}", step.inner, step.outer));
  for (const For* loop : {&outer, &inner})
    if (loop->kind != ForKind::Serial || !loop->marks.empty())
      return refuse(2, fmt::format("loop {} is {}{}", loop->var.name(), name(loop->kind),
                                   loop->marks.empty() ? "" : " and marked"));
  if (uses(inner.extent, outer.var))
    return refuse(3, fmt::format("the extent of {} depends on {}", step.inner, step.outer));
  NamePool names(tree);
  const Var fused(names.loop(step.outer + "*" + step.inner));
  arith::Bounds bounds = tree.bounds_at(id);
  const Expr extent = arith::simplify(outer.extent * inner.extent, bounds);
  bounds.bind(fused, extent);
  arith::Bounds half = bounds;
  half.bind(outer.var, outer.extent);
  Stmt body = replace_loop_var(inner.body, inner.var, ref(fused) % inner.extent, Expr(), half);
  body = replace_loop_var(body, outer.var, ref(fused) / inner.extent, Expr(), bounds);
  Edit edit(tree);
  edit.replace(id, make(For{fused, extent, ForKind::Serial, "", {}, body}));
  return edit.func();
}

}  // namespace tilewright::schedule
