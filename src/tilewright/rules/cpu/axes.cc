#include "tilewright/rules/cpu/axes.h"

#include <algorithm>
#include <optional>

#include "tilewright/cost/tile_space.h"
#include "tilewright/ir/join_axes.h"
#include "tilewright/ir/split_axes.h"
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

/// Whether a reduction, and no product, has two axes or more: as one axis they are one long loop.
bool reduces_planes(const Func& func) {
  bool planes = false;
  for (const BlockFacts& block : collect_blocks(func)) {
    if (block.kind != BlockFacts::Kind::Reduce) continue;
    if (product_of(block)) return false;
    planes |=
        std::count_if(block.block->iters.begin(), block.block->iters.end(), [](const Iter& i) {
          return i.kind == IterKind::Reduce && as_int(i.extent) != int64_t{1};
        }) > 1;
  }
  return planes;
}

}  // namespace

Func with_best_axes(const Func& func, const hw::CpuTarget& target, int threads) {
  if (reduces_planes(func)) return join_axes(func);
  std::optional<double> least;
  Func best = func;
  for (const Func& form : {join_axes(func), split_axes(func)}) {
    if (equal(form, func)) continue;
    const std::optional<double> time = tiles_time(form, target, threads);
    if (!time || (least && *least <= *time)) continue;
    least = time;
    best = form;
  }
  const std::optional<double> as_it_is =
      least ? tiles_time(func, target, threads) : std::optional<double>();
  return as_it_is && *as_it_is < *least ? func : best;
}

}  // namespace tilewright::rules
