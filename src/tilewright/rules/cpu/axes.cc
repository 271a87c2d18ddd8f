#include "tilewright/rules/cpu/axes.h"

#include <optional>

#include "tilewright/cost/tile_space.h"
#include "tilewright/ir/join_axes.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {
namespace {

/// Time of the largest sum of products by its best tile; absent without one, or without tiles.
std::optional<double> tiles_time(const Func& func, const hw::CpuTarget& target, int threads) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const BlockFacts* largest = nullptr;
  for (const BlockFacts& block : blocks)
    if (block.kind == BlockFacts::Kind::Reduce && product_of(block) &&
        (largest == nullptr || block.work() > largest->work()))
      largest = &block;
  if (largest == nullptr) return std::nullopt;
  const Answer<TiledBlock> tiled = tiled_block(*largest, target, func.math);
  if (!tiled) return std::nullopt;
  return cost::rank_points(tiled->contraction, target, threads).front().time.total();
}

}  // namespace

Func with_best_axes(const Func& func, const hw::CpuTarget& target, int threads) {
  Func joined = join_axes(func);
  if (equal(joined, func)) return func;
  const std::optional<double> together = tiles_time(joined, target, threads);
  if (!together) return func;
  const std::optional<double> apart = tiles_time(func, target, threads);
  return apart && *apart < *together ? func : joined;
}

}  // namespace tilewright::rules
