#include "tilewright/ir/walk.h"
#include "tilewright/lower/passes.h"

namespace tilewright::lower {
namespace {

/// What is left of a guarded body once the guard is simplified.
Stmt settle_block(const Stmt& s, const Block& block) {
  if (!block.guard) return s;
  if (is_const_int(block.guard, 0)) return Stmt();
  if (!is_const_int(block.guard, 1)) return s;
  Block bare = block;
  bare.guard = Expr();
  return make(std::move(bare));
}

Stmt settle_if(const Stmt& s, const If& branch) {
  const auto value = as_int(branch.condition);
  if (!value) return s;
  return *value != 0 ? branch.then_body : branch.else_body;
}

/// Loops of extent 1 become their body, empty ones disappear.
Stmt settle_loop(const Stmt& s, const For& loop) {
  const auto extent = as_int(loop.extent);
  if (!extent || *extent > 1 || loop.kind == ForKind::Bind) return s;
  if (*extent <= 0) return Stmt();
  return substitute(loop.body, {{loop.var, int_imm(0)}});
}

}  // namespace

Stmt tidy(const Stmt& s, const arith::Bounds& bounds) {
  Stmt current = arith::simplify(s, bounds);
  for (int round = 0; round < 4; ++round) {
    const Stmt next = rewrite(current, [](const Stmt& x) -> Stmt {
      if (const auto* block = x.as<Block>()) return settle_block(x, *block);
      if (const auto* branch = x.as<If>()) return settle_if(x, *branch);
      if (const auto* loop = x.as<For>()) return settle_loop(x, *loop);
      return x;
    });
    if (!next) return seq({});
    if (next.get() == current.get()) break;
    current = arith::simplify(next, bounds);
  }
  return current;
}

Result<Func> simplify(const Func& func) {
  Func out = func;
  out.body = tidy(func.body, arith::Bounds(func));
  return out;
}

}  // namespace tilewright::lower
