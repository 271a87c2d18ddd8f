#include "tilewright/schedule/loops.h"

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"

namespace tilewright::schedule {
namespace {

class Replacer {
 public:
  Replacer(const Var& var, const Expr& value, const Expr& guard)
      : var_(var), map_{{var, value}}, guard_(guard) {}

  Stmt run(const Stmt& s, const arith::Bounds& bounds) {
    return match(
        s,
        [&](const For& x) -> Stmt {
          Expr extent = swapped(x.extent, bounds);
          arith::Bounds inner = bounds;
          inner.bind(x.var, extent);
          Stmt body = run(x.body, inner);
          if (same(extent, x.extent) && body.get() == x.body.get()) return s;
          return make(For{x.var, extent, x.kind, x.axis, x.marks, body});
        },
        [&](const Block& x) { return block(s, x, bounds); },
        [&](const Seq& x) -> Stmt {
          std::vector<Stmt> stmts;
          bool changed = false;
          for (const Stmt& child : x.stmts) {
            stmts.push_back(run(child, bounds));
            changed |= stmts.back().get() != child.get();
          }
          return changed ? make(Seq{std::move(stmts)}) : s;
        },
        [&](const If& x) -> Stmt {
          return make(If{swapped(x.condition, bounds), run(x.then_body, bounds),
                         x.else_body ? run(x.else_body, bounds) : Stmt()});
        },
        [&](const auto&) { return s; });
  }

 private:
  Expr swapped(const Expr& e, const arith::Bounds& bounds) {
    if (!e || !uses(e, var_)) return e;
    return arith::simplify(substitute(e, map_), bounds);
  }

  Stmt block(const Stmt& s, const Block& x, const arith::Bounds& bounds) {
    Block out = x;
    bool changed = false;
    for (Iter& iter : out.iters) {
      Expr binding = swapped(iter.binding, bounds);
      changed |= !same(binding, iter.binding);
      iter.binding = binding;
    }
    std::vector<Expr> terms;
    for (const Expr& e : conjuncts(x.guard)) terms.push_back(swapped(e, bounds));
    if (guard_) {
      const Expr extra = arith::simplify(guard_, bounds);
      if (!is_const_int(extra, 1)) terms.push_back(extra);
    }
    out.guard = conjunction(terms);
    changed |= !out.guard != !x.guard || (out.guard && !same(out.guard, x.guard));
    return changed ? make(std::move(out)) : s;
  }

  const Var& var_;
  VarMap map_;
  Expr guard_;
};

/// The least c for which a conjunct implies `var < c`; absent where it implies none.
std::optional<int64_t> upper_limit(const Expr& e, const Var& var, const arith::Bounds& bounds) {
  const Binary* b = e.as<Binary>();
  if (b == nullptr || !is_int(b->a.dtype())) return std::nullopt;
  arith::Affine d;  // d < 0 or d <= 0
  bool strict = true;
  if (b->op == BinaryOp::Lt || b->op == BinaryOp::Le) {
    d = arith::as_affine(b->a - b->b);
    strict = b->op == BinaryOp::Lt;
  } else if (b->op == BinaryOp::Gt || b->op == BinaryOp::Ge) {
    d = arith::as_affine(b->b - b->a);
    strict = b->op == BinaryOp::Gt;
  } else {
    return std::nullopt;
  }
  const int64_t c = d.coefficient(var);
  if (c <= 0) return std::nullopt;
  for (const auto& [term, factor] : d.terms)
    if (term.as<VarRef>() == nullptr && uses(term, var)) return std::nullopt;
  const Expr others = substitute(arith::to_expr(d), {{var, int_imm(0)}});
  const auto range = arith::const_range(others, bounds);
  if (!range) return std::nullopt;
  // c * var - k < 0  <=>  var < ceil(k / c);  with <= it is var < floor(k / c) + 1.
  const int64_t k = -range->first;
  const auto floor_div = [](int64_t a, int64_t n) { return a >= 0 ? a / n : -((-a + n - 1) / n); };
  return strict ? floor_div(k + c - 1, c) : floor_div(k, c) + 1;
}

/// The largest limit of `var` over the blocks in `s`; absent if one of them has none.
std::optional<int64_t> limit_in(const Stmt& s, const Var& var, const arith::Bounds& bounds) {
  if (const Block* b = s.as<Block>()) {
    std::optional<int64_t> limit;
    for (const Expr& e : conjuncts(b->guard))
      if (const auto c = upper_limit(e, var, bounds)) limit = std::min(limit.value_or(*c), *c);
    return limit;
  }
  arith::Bounds inner = bounds;
  if (const For* loop = s.as<For>()) inner.bind(loop->var, loop->extent);
  std::optional<int64_t> limit = 0;
  bool any = false;
  for (const Stmt& child : children(s)) {
    if (child.as<Alloc>()) continue;
    const auto c = limit_in(child, var, inner);
    if (!c) return std::nullopt;
    limit = std::max(*limit, *c);
    any = true;
  }
  return any ? limit : std::nullopt;
}

Stmt without_proved(const Stmt& s, const Block& x, const arith::Bounds& bounds) {
  if (!x.guard) return s;
  Block out = x;
  std::vector<Expr> terms;
  for (const Expr& e : conjuncts(x.guard)) {
    const Expr simple = arith::simplify(e, bounds);
    if (!is_const_int(simple, 1) && !arith::prove(simple, bounds)) terms.push_back(simple);
  }
  out.guard = conjunction(terms);
  for (Iter& iter : out.iters) iter.binding = arith::simplify(iter.binding, bounds);
  return make(std::move(out));
}

}  // namespace

Stmt replace_loop_var(const Stmt& s, const Var& var, const Expr& value, const Expr& guard,
                      const arith::Bounds& bounds) {
  return Replacer(var, value, guard).run(s, bounds);
}

Stmt shrink_guarded(const Stmt& s, const arith::Bounds& bounds) {
  return match(
      s,
      [&](const For& x) -> Stmt {
        Expr extent = x.extent;
        const auto n = as_int(extent);
        if (const auto limit = limit_in(x.body, x.var, bounds); limit && n && *limit < *n)
          extent = int_imm(std::max<int64_t>(*limit, 0));
        arith::Bounds inner = bounds;
        inner.bind(x.var, extent);
        return make(For{x.var, extent, x.kind, x.axis, x.marks, shrink_guarded(x.body, inner)});
      },
      [&](const Block& x) { return without_proved(s, x, bounds); },
      [&](const Seq& x) -> Stmt {
        std::vector<Stmt> stmts;
        for (const Stmt& child : x.stmts) stmts.push_back(shrink_guarded(child, bounds));
        return make(Seq{std::move(stmts)});
      },
      [&](const If& x) -> Stmt {
        return make(If{x.condition, shrink_guarded(x.then_body, bounds),
                       x.else_body ? shrink_guarded(x.else_body, bounds) : Stmt()});
      },
      [&](const auto&) { return s; });
}

std::vector<Id> perfect_nest(const Tree& tree, Id outer) {
  std::vector<Id> loops{outer};
  while (tree.as<For>(loops.back() + 1)) loops.push_back(loops.back() + 1);
  return loops;
}

}  // namespace tilewright::schedule
