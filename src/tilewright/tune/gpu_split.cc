#include "tilewright/tune/gpu_split.h"

#include <algorithm>

namespace tilewright::tune {
namespace {

/// Rounds (iterations between two barriers) that a part has at least: fewer do not pay for writing
/// partial sums and reading them again.
constexpr int64_t kLeastRounds = 8;
/// Parts at most: the second kernel reads them one after the other.
constexpr int64_t kMostSplits = 32;

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t blocks_of(const GpuTile& tile) {
  int64_t blocks = 1;
  for (const GpuAxis& axis : tile.axes) blocks *= ceil_of(axis.extent, axis.tile());
  return blocks;
}

/// The reduction loop with the most rounds.
size_t longest(const GpuTile& tile) {
  size_t best = 0;
  const auto rounds = [&](size_t i) { return ceil_of(tile.extents[i], tile.steps[i]); };
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

int64_t choose_gpu_splits(const GpuTile& tile, const hw::GpuTarget& target) {
  // Groups of iterations make blocks that their axis does not show.
  if (tile.reduces.empty() || tile.group > 0) return 1;
  const int64_t blocks = blocks_of(tile);
  int64_t rounds = 1;
  for (size_t i = 0; i < tile.reduces.size(); ++i)
    rounds *= ceil_of(tile.extents[i], tile.steps[i]);
  const int64_t wanted = std::min({target.units / blocks, rounds / kLeastRounds, kMostSplits});
  return wanted < 2 ? 1 : even_splits(tile, wanted);
}

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
