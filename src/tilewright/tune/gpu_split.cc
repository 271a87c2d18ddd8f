#include "tilewright/tune/gpu_split.h"

#include <algorithm>

#include "tilewright/base/integers.h"

namespace tilewright::tune {
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

}  // namespace

std::string split_gpu_sum(Draft& draft, GpuTile& tile) {
  const size_t at = longest(tile);
  const int64_t splits = even_splits(tile, tile.splits), part = tile.extents[at] / splits;
  const std::string loop = tile.reduces[at];
  std::vector<std::string> before;
  for (const BlockFacts& block : draft.blocks()) before.push_back(block.name);
  if (splits < 2 || !draft.attempt(schedule::Split{loop, part}) ||
      !draft.attempt(schedule::RFactor{loop + ".o"}))
    return "";
  std::string partial;
  for (const BlockFacts& block : draft.blocks())
    if (block.kind == BlockFacts::Kind::Reduce &&
        std::find(before.begin(), before.end(), block.name) == before.end())
      partial = block.name;
  if (partial.empty() || !draft.attempt(schedule::CacheWrite{partial, partial + ".acc", ""}))
    return "";
  tile.axes.insert(tile.axes.begin(), {loop + ".o", splits, 1, 1});
  tile.reduces[at] = loop + ".i";
  tile.extents[at] = part;
  tile.steps[at] = std::min(tile.steps[at], part);
  return partial;
}

}  // namespace tilewright::tune
