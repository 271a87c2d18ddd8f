#include "tilewright/rules/cpu/blocking.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/rules/cpu/common_steps.h"
#include "tilewright/rules/cpu/strip_steps.h"
#include "tilewright/rules/cpu/tile.h"
#include "tilewright/rules/cpu/tile_padding.h"
#include "tilewright/rules/cpu/transpose.h"

namespace tilewright::rules {
namespace {

/// A copy into channel blocks and the sum that alone reads it, or alone reads what pads it.
struct BlockedPair {
  const BlockFacts* copy = nullptr;
  const BlockFacts* padding = nullptr;  ///< null where the sum reads the copy itself
  const BlockFacts* sum = nullptr;
};

const BlockFacts* sole_reader(const std::vector<BlockFacts>& blocks, const BlockFacts& block) {
  const std::vector<const BlockFacts*> next = readers(blocks, block.store->buffer);
  return next.size() == 1 ? next[0] : nullptr;
}

Answer<BlockedPair> find_blocked_pair(const Func& func, const std::vector<BlockFacts>& blocks) {
  std::string reason = "no block copies an operand into channel blocks";
  for (const BlockFacts& copy : blocks) {
    if (!turns(copy) || is_output(func, copy.store->buffer)) continue;
    reason =
        fmt::format("no depthwise sum alone reads what `{}` copies into channel blocks", copy.name);
    BlockedPair pair{&copy, nullptr, sole_reader(blocks, copy)};
    if (pair.sum != nullptr && pair.sum->kind == BlockFacts::Kind::Injective) {
      pair.padding = pair.sum;
      pair.sum = sole_reader(blocks, *pair.padding);
    }
    if (pair.sum == nullptr || !channel_wise(*pair.sum)) continue;
    if (pair.sum->store->indices.size() <= kRowAxis + 1) continue;
    const BlockFacts& operand = pair.padding != nullptr ? *pair.padding : copy;
    if (image_of(*pair.sum).buffer == operand.store->buffer) return pair;
  }
  return decline("{}", reason);
}

int64_t extent(const BlockFacts& block, size_t at) {
  return as_int(block.store->buffer.shape()[at]).value_or(0);
}

/// Whether what the window makes stays in blocks. Kernels that read blocks share out rows: a worker
/// that makes rows itself reads its own lines, and writes none that others have read.
bool stays_in_blocks(const Func& func, const std::vector<BlockFacts>& blocks) {
  return std::none_of(blocks.begin(), blocks.end(), [&](const BlockFacts& block) {
    return turns(block) && is_output(func, block.store->buffer);
  });
}

/// Rows of the result per strip; 0 if no strip fits. Rows that two strips read are copied twice.
/// `even`: each worker gets as many whole strips; `alike`: all strips have as many rows.
int64_t strip_rows(const BlockedPair& pair, const hw::CpuTarget& target, int threads, bool even,
                   bool alike) {
  const BlockFacts &sum = *pair.sum, &copy = *pair.copy;
  const RowWindow window = row_window(sum);
  const int64_t height = extent(sum, kRowAxis), source = extent(copy, kRowAxis);
  const int64_t around = extent(sum, kBatchAxis) * extent(sum, kBlockAxis);
  const bool image = sum.store->indices.size() > kRowAxis + 2;
  const int64_t row = storage_bytes(copy.store->buffer.dtype(), copy.work() / (around * source));
  const auto reach = [&](int64_t rows) { return std::min(window.reach(rows), source); };
  int64_t best = 0;
  double least = 0;
  for (int64_t rows = height; rows >= 1; --rows) {
    // Strips of a single axis would begin inside vectors.
    if (!image && rows < height) continue;
    if (2 * reach(rows) * row > target.l2_bytes || (alike && height % rows != 0)) continue;
    const int64_t strips = ceil_div(height, rows), pieces = around * strips;
    if (even && (height % rows != 0 || extent(sum, kBatchAxis) * strips % threads != 0)) continue;
    const double waiting =
        static_cast<double>(ceil_div(pieces, threads) * threads) / static_cast<double>(pieces);
    const double again =
        static_cast<double>(reach(rows) * strips) / static_cast<double>(reach(height));
    // Copying takes about as long as the window and storing what it makes.
    const double time = waiting * (1 + again);
    if (best == 0 || time < least) best = rows, least = time;
  }
  return best;
}

bool schedule_blocked_pair(Draft& draft, const BlockedPair& pair, const hw::CpuTarget& target,
                           int threads, bool alike) {
  const std::string sum = pair.sum->name, copy = pair.copy->name;
  const std::string padding = pair.padding != nullptr ? pair.padding->name : "";
  int64_t rows = 0;
  if (threads > 1 && stays_in_blocks(draft.func(), draft.blocks()))
    rows = strip_rows(pair, target, threads, true, alike);
  const bool by_rows = rows > 0;
  if (!by_rows) rows = strip_rows(pair, target, std::max(threads, 1), false, alike);
  if (rows == 0) return false;
  const bool whole = rows == extent(*pair.sum, kRowAxis);
  std::string outer = split_axis(draft, sum, whole ? kBlockAxis : kRowAxis, whole ? 1 : rows);
  if (outer.empty()) return false;
  if (by_rows && !whole) {
    const std::string blocks = split_axis(draft, sum, kBlockAxis, 1);
    if (blocks.empty() || !draft.attempt(schedule::Reorder{{outer, blocks}})) return false;
    outer = blocks;
  }
  keep_down_to(draft, sum, outer);
  if (!tile_by_model(draft, sum, target)) return false;
  if (!padding.empty() && !draft.done.contains(padding)) {
    if (!draft.attempt(schedule::ComputeAt{padding, outer})) return false;
    draft.done.insert(padding);
    vectorize_innermost(draft, padding, target);
    cut_padding(draft, padding);
  }
  if (!draft.attempt(schedule::ComputeAt{copy, outer})) return false;
  draft.done.insert(copy);
  if (!tile_transpose(draft, copy, target, outer)) vectorize_innermost(draft, copy, target);
  draft.kept.clear();
  if (threads > 1) share_out(draft, sum, outer);
  return true;
}

}  // namespace

Answer<Done> schedule_blocking(Draft& draft, const hw::CpuTarget& target, int threads) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const Answer<BlockedPair> pair = find_blocked_pair(draft.func(), blocks);
  if (!pair) return decline("{}", pair.error());
  if (strip_rows(*pair, target, std::max(threads, 1), false, false) == 0)
    return decline("no strip of the rows of `{}` fits L2", pair->copy->name);
  const auto attempt = [&](bool alike) {
    return all_or_nothing(
        draft, [&] { return schedule_blocked_pair(draft, *pair, target, threads, alike); });
  };
  // Not all steps apply where the last strip is shorter than the others.
  const Answer<Done> done = attempt(false);
  return done ? done : attempt(true);
}

}  // namespace tilewright::rules
