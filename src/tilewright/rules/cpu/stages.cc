#include "tilewright/rules/cpu/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {
namespace {

/// Terms that a copied element must serve: a copy across memory takes as long as about twenty
/// products in vectors gain over products one by one.
constexpr int64_t kUses = 24;
/// The same where products fill vectors along the terms of the sum, each result by itself: at about
/// half of the peak, as each product loads both factors. source: 256x512x256 and 8 of 197x64x197 on
/// a Zen 4, 45 and 47 % (bench/results/cpu.md).
constexpr int64_t kUsesAlongTerms = 64;
/// Elements at most: copies stay near the caches.
constexpr int64_t kMostCopied = int64_t{1} << 26;

/// Along which iteration neighbours of the result lie; none where it is shorter than half a vector.
const Iter* lane_iter(const BlockFacts& block, int64_t lanes) {
  const std::vector<Expr>& out = block.store->indices;
  for (size_t axis = out.size(); axis-- > 0;) {
    if (as_int(block.store->buffer.shape()[axis]) == int64_t{1}) continue;
    const VarRef* ref = out[axis].as<VarRef>();
    if (ref == nullptr || 2 * block.extent_of(ref->var) < lanes) return nullptr;
    return block.iter(ref->var);
  }
  return nullptr;
}

/// The iterations of `load`, as axes of its copy: those of the result, of the sum, the lanes.
std::vector<const Iter*> axes_of(const BlockFacts& block, const Load& load, const Var& lane) {
  std::vector<const Iter*> axes;
  for (const IterKind kind : {IterKind::Space, IterKind::Reduce})
    for (const Iter& iter : block.block->iters)
      if (iter.kind == kind && !(iter.var == lane) && mentions(load, iter.var))
        axes.push_back(&iter);
  axes.push_back(block.iter(lane));
  return axes;
}

/// The step that copies `load`; absent where its elements serve too few terms.
std::optional<schedule::Reindex> copy_of(const BlockFacts& block, const Load& load, const Var& lane,
                                         int64_t uses) {
  schedule::Reindex step{
      block.name, load.buffer.name(), fmt::format("{}.{}", block.name, load.buffer.name()), {}};
  int64_t copied = 1;
  for (const Iter* iter : axes_of(block, load, lane)) {
    copied *= std::max<int64_t>(block.extent_of(iter->var), 1);
    step.iters.push_back(iter->var.name());
  }
  if (copied > kMostCopied || copied * uses > block.work()) return std::nullopt;
  return step;
}

/// Whether all operands lie along terms of the sum that fill vectors.
bool lies_along_terms(const BlockFacts& block, int64_t lanes) {
  const std::vector<Iter>& iters = block.block->iters;
  return std::any_of(iters.begin(), iters.end(), [&](const Iter& term) {
    if (term.kind != IterKind::Reduce || block.extent_of(term.var) < 2 * lanes) return false;
    return std::all_of(block.loads.begin(), block.loads.end(), [&](const Load& load) {
      const std::optional<int64_t> stride = last_axis_stride(load, term.var, lanes);
      return stride && *stride >= 0 && *stride <= 1;
    });
  });
}

}  // namespace

bool stage_lanes(Draft& draft, const std::string& name, const hw::CpuTarget& target) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* block = find_block(blocks, name);
  if (block == nullptr || block->kind != BlockFacts::Kind::Reduce) return false;
  const MathMode math = draft.func().math;
  if (block->work() == 0 || tiled_block(*block, target, math)) return false;
  const int64_t lanes =
      std::max(1, target.lanes(bit_width(accumulator(block->store->buffer.dtype()))));
  const Iter* lane = lane_iter(*block, lanes);
  if (lane == nullptr || block->loop_of(lane->var).empty()) return false;
  const int64_t uses = lies_along_terms(*block, lanes) ? kUsesAlongTerms : kUses;
  std::vector<schedule::Reindex> steps;
  for (const Load& load : block->loads) {
    const std::optional<int64_t> stride = last_axis_stride(load, lane->var, lanes);
    if (stride && *stride >= 0 && *stride <= 2) continue;
    std::optional<schedule::Reindex> step = copy_of(*block, load, lane->var, uses);
    if (!step) return false;
    const bool known = std::any_of(steps.begin(), steps.end(), [&](const schedule::Reindex& s) {
      return s.buffer == step->buffer;
    });
    if (!known) steps.push_back(*std::move(step));
  }
  const Draft::Mark before = draft.mark();
  for (schedule::Reindex& step : steps)
    if (!draft.attempt(std::move(step))) return draft.revert(before), false;
  const std::vector<BlockFacts> after = draft.blocks();
  const BlockFacts* staged = find_block(after, name);
  if (staged != nullptr && tiled_block(*staged, target, math)) return true;
  draft.revert(before);
  return false;
}

}  // namespace tilewright::rules
