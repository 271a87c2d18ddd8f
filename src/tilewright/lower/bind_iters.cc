#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {

Result<Func> bind_iters(const Func& func, const hw::CpuTarget&) {
  Func out = func;
  out.body = rewrite(func.body, [](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block == nullptr) return s;
    VarMap bindings;
    for (const Iter& iter : block->iters) bindings[iter.var] = iter.binding;
    const Stmt body = substitute(block->body, bindings);
    return block->guard ? make(If{block->guard, body, Stmt()}) : body;
  });
  return out;
}

}  // namespace tilewright::lower
