#include "tilewright/rules/gpu/split_k.h"

#include <algorithm>
#include <set>

#include "tilewright/base/integers.h"

namespace tilewright::rules {
namespace {

/// The reduction loop with the most rounds.
size_t longest(const GpuTile& tile) {
  size_t best = 0;
  const auto rounds = [&](size_t i) { return ceil_div(tile.extents[i], tile.steps[i]); };
  for (size_t i = 1; i < tile.reduces.size(); ++i)
    if (rounds(i) > rounds(best)) best = i;
  return best;
}

/// The most parts of equal length, at most `wanted`, that the longest loop divides into.
int64_t even_splits(const GpuTile& tile, int64_t wanted) {
  const int64_t extent = tile.extents[longest(tile)];
  int64_t splits = std::clamp<int64_t>(wanted, 1, extent);
  while (extent % splits != 0) --splits;
  return splits;
}

/// Splits `loop` into parts of `part` terms each, summed by a new block, whose result is written
/// back by another; its name, or nothing.
std::string sum_parts(Draft& draft, const std::string& loop, int64_t part) {
  std::set<std::string> before;
  for (const BlockFacts& block : draft.blocks()) before.insert(block.name);
  if (!draft.attempt(schedule::Split{loop, part}) || !draft.attempt(schedule::RFactor{loop + ".o"}))
    return "";
  for (const BlockFacts& block : draft.blocks())
    if (const std::string partial = block.name;
        block.kind == BlockFacts::Kind::Reduce && !before.contains(partial))
      return draft.attempt(schedule::CacheWrite{partial, partial + ".acc", ""}) ? partial : "";
  return "";
}

}  // namespace

std::string split_gpu_sum(Draft& draft, GpuTile& tile) {
  const size_t at = longest(tile);
  const int64_t splits = even_splits(tile, tile.splits), part = tile.extents[at] / splits;
  const std::string loop = tile.reduces[at];
  const std::string partial = splits < 2 ? "" : sum_parts(draft, loop, part);
  if (partial.empty()) return "";
  tile.axes.insert(tile.axes.begin(), {loop + ".o", splits, 1, 1});
  tile.reduces[at] = loop + ".i";
  tile.extents[at] = part;
  tile.steps[at] = std::min(tile.steps[at], part);
  return partial;
}

std::string split_gpu_mma(Draft& draft, const std::string& name, GpuMma& mma,
                          const hw::GpuTarget& target) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* sum = find_block(blocks, name);
  std::string loop;
  for (const Iter& iter : sum->block->iters)
    if (iter.var.name() == mma.split) loop = sum->loop_of(iter.var);
  const std::string partial =
      loop.empty() ? "" : sum_parts(draft, loop, mma.split_extent / mma.splits);
  if (partial.empty()) return "";
  const std::vector<BlockFacts> after = draft.blocks();
  std::optional<GpuMma> part = find_gpu_mma(*find_block(after, partial), target);
  if (!part) return "";
  part->block_m = mma.block_m, part->block_n = mma.block_n, part->block_k = mma.block_k;
  part->warp_m = mma.warp_m, part->warp_n = mma.warp_n;
  part->groups = mma.groups, part->bulk = mma.bulk, part->raster = mma.raster;
  part->turns = mma.turns;
  part->depth = std::min(mma.depth, part->rounds());
  mma = *std::move(part);
  return partial;
}

}  // namespace tilewright::rules
