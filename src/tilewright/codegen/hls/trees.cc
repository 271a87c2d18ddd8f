#include "tilewright/codegen/hls/trees.h"

#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Longer sums stay loops: their text would be no help to anybody.
constexpr int64_t kMostTerms = 256;

Expr balanced(const std::vector<Expr>& terms, size_t begin, size_t end) {
  if (end - begin == 1) return terms[begin];
  const size_t middle = begin + (end - begin + 1) / 2;
  return balanced(terms, begin, middle) + balanced(terms, middle, end);
}

/// The block with its reduction over `loop` as one sum; empty if it is no such block.
Stmt summed(const Block& block, const For& loop, int64_t trips, MathMode math) {
  const auto* store = block.body.as<Store>();
  if (store == nullptr || store->combine != Combine::Add) return {};
  const DType type = store->buffer.dtype();
  if (is_float(type) && math == MathMode::Exact) return {};
  if (block.guard && uses(block.guard, loop.var)) return {};
  std::vector<Expr> terms;
  VarMap iters;
  for (const Iter& iter : block.iters) {
    if (!uses(iter.binding, loop.var)) continue;
    if (iter.kind != IterKind::Reduce) return {};
    for (const Expr& index : store->indices)
      if (uses(index, iter.var)) return {};
    iters[iter.var] = iter.binding;
  }
  if (iters.empty()) return {};
  // An iteration that runs over this loop only keeps its variable for what is left of it.
  for (int64_t i = 0; i < trips; ++i) {
    VarMap at;
    for (const auto& [var, binding] : iters)
      at[var] = ref(var) + (substitute(binding, {{loop.var, int_imm(i)}}) -
                            substitute(binding, {{loop.var, int_imm(0)}}));
    terms.push_back(substitute(store->value, at));
  }
  Block out = block;
  for (Iter& iter : out.iters)
    if (iters.contains(iter.var)) iter.binding = substitute(iter.binding, {{loop.var, int_imm(0)}});
  Store sum = *store;
  sum.value = balanced(terms, 0, terms.size());
  out.body = make(std::move(sum));
  return make(std::move(out));
}

/// `body` summed over `loop`, perhaps below other unrolled loops; empty if it cannot be.
Stmt summed_below(const Stmt& body, const For& loop, int64_t trips, MathMode math) {
  if (const auto* block = body.as<Block>()) return summed(*block, loop, trips, math);
  const auto* inner = body.as<For>();
  if (inner == nullptr || inner->kind != ForKind::Unroll || uses(inner->extent, loop.var))
    return {};
  const Stmt below = summed_below(inner->body, loop, trips, math);
  if (!below) return {};
  For out = *inner;
  out.body = below;
  return make(std::move(out));
}

}  // namespace

Stmt balance_sums(const Stmt& body, MathMode math) {
  return rewrite(body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Unroll) return s;
    const auto trips = as_int(loop->extent);
    if (!trips || *trips < 2 || *trips > kMostTerms) return s;
    const Stmt out = summed_below(loop->body, *loop, *trips, math);
    return out ? out : s;
  });
}

}  // namespace tilewright::codegen
