#include "tilewright/rules/cpu/channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/strip_steps.h"
#include "tilewright/rules/cpu/tile.h"
#include "tilewright/rules/cpu/tile_padding.h"

namespace tilewright::rules {
namespace {

/// A sum over channels, and the block that makes what it alone reads.
struct ChannelPair {
  const BlockFacts* maker = nullptr;
  const BlockFacts* sum = nullptr;
};

/// Whether data decides which element is read: no strip of rows is known to hold it.
bool looks_up(const Load& load) {
  bool found = false;
  for (const Expr& index : load.indices)
    walk(index, [&](const Expr& e) { found = found || e.as<Load>() != nullptr; });
  return found;
}

/// Whether one index of `load` moves with the channel block that `sum` writes and with its taps.
bool crosses_blocks(const BlockFacts& sum, const Load& load) {
  const VarRef* channel = sum.store->indices[kBlockAxis].as<VarRef>();
  if (channel == nullptr) return false;
  return std::any_of(load.indices.begin(), load.indices.end(), [&](const Expr& index) {
    if (!uses(index, channel->var)) return false;
    return std::any_of(sum.block->iters.begin(), sum.block->iters.end(), [&](const Iter& iter) {
      return iter.kind == IterKind::Reduce && uses(index, iter.var);
    });
  });
}

Answer<ChannelPair> find_channel_pair(const Func& func, const std::vector<BlockFacts>& blocks) {
  std::string reason = "no sum of single values runs over neighbouring channels";
  for (const BlockFacts& sum : blocks) {
    if (sum.kind != BlockFacts::Kind::Reduce || product_of(sum)) continue;
    if (sum.store->indices.size() <= kRowAxis + 1) continue;
    for (const Load& load : sum.loads) {
      if (!crosses_blocks(sum, load) || looks_up(load)) continue;
      reason = fmt::format("no block of the kernel makes `{}` for `{}` alone", load.buffer.name(),
                           sum.name);
      if (is_output(func, load.buffer)) continue;
      const auto maker = std::find_if(blocks.begin(), blocks.end(), [&](const BlockFacts& block) {
        return block.kind == BlockFacts::Kind::Injective && block.store->buffer == load.buffer;
      });
      if (maker != blocks.end() && readers(blocks, load.buffer).size() == 1)
        return ChannelPair{&*maker, &sum};
    }
  }
  return decline("{}", reason);
}

/// Rows of the result per strip: as many as fit half of L2, where that leaves each worker as much
/// as the others.
int64_t strip_rows(const ChannelPair& pair, const hw::CpuTarget& target, int threads) {
  const auto extent = [&](size_t axis) {
    return as_int(pair.sum->store->buffer.shape()[axis]).value_or(0);
  };
  const int64_t height = extent(kRowAxis), images = extent(kBatchAxis);
  if (height == 0 || images == 0) return 0;
  const int64_t row =
      storage_bytes(pair.maker->store->buffer.dtype(), pair.maker->work() / (height * images));
  int64_t best = 0, least = 0;
  for (int64_t rows = height; rows >= 1; --rows) {
    if (2 * rows * row > target.l2_bytes) continue;
    const int64_t strips = images * ceil_div(height, rows);
    const int64_t longest = ceil_div(strips, threads) * rows;
    if (best == 0 || longest < least) best = rows, least = longest;
  }
  return best;
}

bool schedule_channel_pair(Draft& draft, const ChannelPair& pair, const hw::CpuTarget& target,
                           int threads) {
  const std::string sum = pair.sum->name, maker = pair.maker->name;
  const int64_t rows = strip_rows(pair, target, std::max(threads, 1));
  if (rows == 0) return false;
  const std::string strip = split_axis(draft, sum, kRowAxis, rows);
  if (strip.empty() || !draft.move_outward(sum, strip)) return false;
  keep_down_to(draft, sum, strip);
  if (!tile_by_model(draft, sum, target)) return false;
  if (!draft.attempt(schedule::ComputeAt{maker, strip})) return false;
  draft.done.insert(maker);
  vectorize_innermost(draft, maker, target);
  cut_padding(draft, maker);
  draft.kept.clear();
  if (threads > 1) share_out(draft, sum, strip);
  return true;
}

}  // namespace

Answer<Done> schedule_channel_windows(Draft& draft, const hw::CpuTarget& target, int threads) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const Answer<ChannelPair> pair = find_channel_pair(draft.func(), blocks);
  if (!pair) return decline("{}", pair.error());
  if (strip_rows(*pair, target, std::max(threads, 1)) == 0)
    return decline("no strip of the rows that `{}` makes fits half of L2", pair->maker->name);
  return all_or_nothing(draft,
                        [&] { return schedule_channel_pair(draft, *pair, target, threads); });
}

}  // namespace tilewright::rules
