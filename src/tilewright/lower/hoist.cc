#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// `for i { if p and q(i) { S } }` => `if p { for i { if q(i) { S } } }`.
Stmt out_of_loop(const Stmt& s, const For& loop) {
  const If* branch = loop.body.as<If>();
  if (branch == nullptr || branch->else_body || loop.kind == ForKind::Bind) return s;
  std::vector<Expr> leave, stay;
  for (const Expr& term : conjuncts(branch->condition))
    (uses(term, loop.var) || reads_memory(term) ? stay : leave).push_back(term);
  if (leave.empty()) return s;
  For inner = loop;
  inner.body =
      stay.empty() ? branch->then_body : make(If{conjunction(stay), branch->then_body, Stmt()});
  return make(If{conjunction(leave), make(std::move(inner)), Stmt()});
}

/// `if p { S } if p { T }` => `if p { S T }`, with the allocations before and between them.
Stmt join(const Stmt& s, const Seq& list) {
  Expr shared;
  std::vector<Stmt> bodies;
  for (const Stmt& child : list.stmts) {
    if (child.as<Alloc>() != nullptr) {
      bodies.push_back(child);
      continue;
    }
    const Expr guard = lasting_guard(child);
    if (!guard || (shared && !equal(shared, guard))) return s;
    shared = guard;
    bodies.push_back(child.as<If>()->then_body);
  }
  if (!shared) return s;
  return make(If{shared, seq(std::move(bodies)), Stmt()});
}

}  // namespace

Result<Func> hoist_guards(const Func& func) {
  Func out = func;
  out.body = rewrite(func.body, [](const Stmt& s) -> Stmt {
    if (const For* loop = s.as<For>()) return out_of_loop(s, *loop);
    if (const Seq* list = s.as<Seq>()) return join(s, *list);
    return s;
  });
  return out;
}

}  // namespace tilewright::lower
