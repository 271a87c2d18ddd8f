// The step Split: for i in 10 { S }  =>  for i.o in 3, i.i in 4 { S where 4*i.o + i.i < 10 }
#include <fmt/format.h>

#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {
namespace {

/// Extents that depend on `var` stop at 0: past the loop's old end they might be negative, and a
/// guard keeps blocks from running there, not loops.
Stmt clamp_extents(const Stmt& body, const Var& var) {
  return rewrite(body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    if (loop == nullptr || !uses(loop->extent, var)) return s;
    For out = *loop;
    out.extent = max(loop->extent, int_imm(0));
    return make(std::move(out));
  });
}

}  // namespace

Result<Func> run(const Split& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  const For& loop = tree.loop(id);
  if (step.factor <= 0)
    return fail(ErrorKind::Invalid, "requirement 2 does not hold",
                fmt::format("the factor is {}, it must be positive", step.factor));
  if (loop.kind != ForKind::Serial)
    return refuse(3, fmt::format("loop {} is {}", step.loop, name(loop.kind)));
  if (step.factor > kLargestExtent)
    return refuse(2, fmt::format("the factor {} is out of range", step.factor));
  NamePool names(tree);
  const Var outer(names.loop(step.loop + ".o")), inner(names.loop(step.loop + ".i"));
  arith::Bounds bounds = tree.bounds_at(id);
  const Expr factor = int_imm(step.factor);
  const Expr count = arith::simplify((loop.extent + (step.factor - 1)) / factor, bounds);
  const bool exact = arith::prove(eq(loop.extent % factor, int_imm(0)), bounds);
  bounds.bind(outer, count);
  bounds.bind(inner, factor);
  const Expr value = loop_value(outer, count) * factor + loop_value(inner, factor);
  const Stmt body = replace_loop_var(exact ? loop.body : clamp_extents(loop.body, loop.var),
                                     loop.var, value, exact ? Expr() : value < loop.extent, bounds);
  Edit edit(tree);
  edit.replace(id, make(For{outer, count, ForKind::Serial, "", loop.marks,
                            make(For{inner, factor, ForKind::Serial, "", {}, body})}));
  return edit.func();
}

}  // namespace tilewright::schedule
