#include "tilewright/rules/cpu/borders.h"

#include <algorithm>
#include <map>

#include "tilewright/arith/bounds.h"
#include "tilewright/cost/tile_space.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

/// Borders up to this length are cut into single iterations.
constexpr int64_t kShortBorder = 2;

void collect_conjuncts(const Expr& condition, std::vector<Expr>& out) {
  const Binary* both = condition.as<Binary>();
  if (both != nullptr && both->op == BinaryOp::And) {
    collect_conjuncts(both->a, out);
    collect_conjuncts(both->b, out);
  } else {
    out.push_back(condition);
  }
}

/// `condition` as `result >= 0`, if it is an integer comparison.
Expr non_negative(const Expr& condition) {
  const Binary* b = condition.as<Binary>();
  if (b == nullptr || b->a.dtype() != DType::I64) return {};
  switch (b->op) {
    case BinaryOp::Lt:
      return b->b - b->a - 1;
    case BinaryOp::Le:
      return b->b - b->a;
    case BinaryOp::Gt:
      return b->a - b->b - 1;
    case BinaryOp::Ge:
      return b->a - b->b;
    default:
      return {};
  }
}

const For* find_loop(const Stmt& s, const std::string& name) {
  const For* found = nullptr;
  walk(s, [&](const Stmt& child) {
    const For* loop = child.as<For>();
    if (loop != nullptr && loop->var.name() == name) found = loop;
  });
  return found;
}

}  // namespace

std::vector<Expr> margins_of(const Expr& condition) {
  std::vector<Expr> conjuncts, margins;
  collect_conjuncts(condition, conjuncts);
  for (const Expr& conjunct : conjuncts)
    if (const Expr margin = non_negative(conjunct); margin) margins.push_back(margin);
  return margins;
}

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

Interior interior_of(const BlockFacts& block, const Func& func, const std::string& loop) {
  const For* own = find_loop(func.body, loop);
  const int64_t extent = own == nullptr ? 0 : as_int(own->extent).value_or(0);
  Interior interior{0, extent};
  if (extent == 0) return interior;
  std::map<Var, Expr> bindings;
  for (const Iter& iter : block.block->iters) bindings[iter.var] = iter.binding;
  arith::Bounds others(func);
  for (const std::string& name : block.loops)
    if (const For* around = find_loop(func.body, name); around != nullptr && name != loop)
      others.bind(around->var, around->extent);
  std::vector<Expr> conjuncts;
  walk(block.store->value, [&](const Expr& e) {
    if (const Select* select = e.as<Select>()) collect_conjuncts(select->condition, conjuncts);
  });
  for (const Expr& conjunct : conjuncts) {
    const Expr margin = non_negative(conjunct);
    if (!margin) continue;
    const arith::Affine affine = arith::as_affine(substitute(margin, bindings));
    const int64_t step = affine.coefficient(own->var);
    if (step == 0) continue;
    // The least margin over the other loops decides; a term in which this loop is hidden does not.
    const Expr rest = substitute(arith::to_expr(affine), {{own->var, int_imm(0)}});
    const bool plain = std::all_of(affine.terms.begin(), affine.terms.end(), [&](const auto& t) {
      return t.first.template as<VarRef>() != nullptr || !uses(t.first, own->var);
    });
    const auto range = arith::const_range(rest, others);
    if (!plain || !range) continue;
    if (step > 0) {
      interior.begin = std::max(interior.begin, -floor_div(range->first, step));
    } else {
      interior.end = std::min(interior.end, floor_div(range->first, -step) + 1);
    }
  }
  if (interior.begin >= interior.end) return {0, 0};
  return interior;
}

void cut_borders(Draft& draft, const std::string& block, const std::string& loop, bool ragged) {
  for (const std::string& part : draft.parts_of(loop)) {
    const std::vector<BlockFacts> blocks = draft.blocks();
    Interior interior;
    int64_t extent = 0;
    for (const std::string& piece : draft.pieces_of(block)) {
      const BlockFacts* facts = find_block(blocks, piece);
      if (std::find(facts->loops.begin(), facts->loops.end(), part) == facts->loops.end()) continue;
      interior = interior_of(*facts, draft.func(), part);
      extent = as_int(find_loop(draft.func().body, part)->extent).value_or(0);
    }
    if (extent < 2) continue;
    if (interior.begin == interior.end) interior = {0, extent};
    if (ragged) interior.end = std::min(interior.end, extent - 1);
    interior.begin = std::min(interior.begin, interior.end);
    schedule::Ints parts;
    auto border = [&](int64_t size) {
      if (size <= kShortBorder) {
        parts.insert(parts.end(), static_cast<size_t>(size), 1);
      } else {
        parts.push_back(size);
      }
    };
    border(interior.begin);
    if (interior.end > interior.begin) parts.push_back(interior.end - interior.begin);
    const int64_t after = extent - interior.end;
    if (ragged && after > 1 + kShortBorder) {
      parts.push_back(after - 1);
      parts.push_back(1);
    } else {
      border(after);
    }
    if (parts.size() > 1) draft.attempt(schedule::Cut{part, parts});
  }
}

bool cut_outside(Draft& draft, const std::string& block, const std::string& loop, int threads) {
  if (threads < 2) return false;
  const LoopNest nest = draft.nest_of(block);
  const auto at = std::find(nest.names.begin(), nest.names.end(), loop);
  int64_t around = 1;
  for (long i = 0; i < at - nest.names.begin(); ++i) around *= nest.extents[static_cast<size_t>(i)];
  // One piece for each thread: whole columns and the last one are shared out evenly as they are.
  if (around == threads) return false;
  if (around == 1 || around >= cost::kPiecesPerThread * threads) return false;
  std::vector<std::string> order = {loop};
  order.insert(order.end(), nest.names.begin(), at);
  if (!draft.attempt(schedule::Reorder{order})) return false;
  cut_borders(draft, block, loop, true);
  for (const std::string& piece : draft.pieces_of(block)) {
    const LoopNest part = draft.nest_of(piece);
    std::vector<std::string> back(part.names.begin(),
                                  part.names.begin() + static_cast<long>(order.size()));
    std::rotate(back.begin(), back.begin() + 1, back.end());
    draft.attempt(schedule::Reorder{back});
  }
  return true;
}

}  // namespace tilewright::rules
