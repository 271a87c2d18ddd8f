#include "tilewright/rules/cpu/strip_steps.h"

#include <algorithm>
#include <cstdlib>

#include "tilewright/arith/bounds.h"

namespace tilewright::rules {

bool channel_wise(const BlockFacts& sum) {
  const auto product = product_of(sum);
  const VarRef* lane =
      sum.store->indices.empty() ? nullptr : sum.store->indices.back().as<VarRef>();
  return product && lane != nullptr && mentions(product->a, lane->var) &&
         mentions(product->b, lane->var);
}

Load image_of(const BlockFacts& sum) {
  const auto product = product_of(sum);
  const VarRef* row = sum.store->indices[kRowAxis].as<VarRef>();
  return row != nullptr && mentions(product->b, row->var) ? product->b : product->a;
}

RowWindow row_window(const BlockFacts& sum) {
  RowWindow window;
  const VarRef* row = sum.store->indices[kRowAxis].as<VarRef>();
  const Load image = image_of(sum);
  if (row == nullptr || image.indices.size() <= kRowAxis) return window;
  const arith::Affine index = arith::as_affine(image.indices[kRowAxis]);
  window.step = std::max<int64_t>(1, index.coefficient(row->var));
  for (const Iter& iter : sum.block->iters)
    if (iter.kind == IterKind::Reduce)
      window.taps += std::abs(index.coefficient(iter.var)) * (sum.extent_of(iter.var) - 1);
  return window;
}

Answer<Done> all_or_nothing(Draft& draft, const std::function<bool()>& rule) {
  const Draft::Mark before = draft.mark();
  const std::set<std::string> done = draft.done;
  const std::vector<std::string> kept = draft.kept;
  if (rule()) return Done{};
  draft.revert(before);
  draft.done = done;
  draft.kept = kept;
  return decline("a step of its schedule does not apply to these loops");
}

std::string split_axis(Draft& draft, const std::string& name, size_t at, int64_t factor) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts& block = *find_block(blocks, name);
  const VarRef* var = block.store->indices[at].as<VarRef>();
  if (var == nullptr) return "";
  const std::string loop = block.loop_of(var->var);
  if (loop.empty() || factor == 1) return loop;
  return draft.attempt(schedule::Split{loop, factor}) ? loop + ".o" : "";
}

void keep_down_to(Draft& draft, const std::string& block, const std::string& loop) {
  const LoopNest nest = draft.nest_of(block);
  const auto end = std::find(nest.names.begin(), nest.names.end(), loop);
  draft.kept.assign(nest.names.begin(), end == nest.names.end() ? end : end + 1);
}

void share_out(Draft& draft, const std::string& block, const std::string& inner) {
  const std::string piece = draft.pieces_of(block)[0];
  std::string loop = draft.nest_of(piece).names[0];
  for (std::string next; loop != inner; loop = next) {
    const LoopNest nest = draft.nest_inside(piece, loop);
    if (nest.names.empty() || !draft.attempt(schedule::Fuse{loop, nest.names[0]})) break;
    next = loop + "*" + nest.names[0];
    if (nest.names[0] == inner) {
      loop = next;
      break;
    }
  }
  draft.attempt(schedule::Parallel{loop});
}

}  // namespace tilewright::rules
