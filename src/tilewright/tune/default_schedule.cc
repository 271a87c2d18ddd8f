#include "tilewright/tune/default_schedule.h"

#include "tilewright/tune/draft.h"
#include "tilewright/tune/register_tile.h"
#include "tilewright/tune/row_rule.h"
#include "tilewright/tune/tile_rule.h"
#include "tilewright/tune/transpose_rule.h"
#include "tilewright/tune/winograd_schedule.h"

namespace tilewright::tune {
namespace {

/// Below this many operations a second thread costs more than it saves.
constexpr int64_t kParallelWork = 1 << 15;
/// A producer is recomputed at its uses rather than stored up to this cost and this many uses each.
constexpr int kCheapCost = 6;
constexpr int64_t kRecomputeLimit = 2;

class Scheduler {
 public:
  Scheduler(Func func, const hw::CpuTarget& target, int threads)
      : draft_(std::move(func)), target_(target), threads_(threads) {}

  schedule::Trace run() {
    inline_injective();
    stage_outputs();
    for (const std::string& block : open_blocks(BlockFacts::Kind::Reduce)) reduction(block);
    for (const std::string& block : open_blocks(BlockFacts::Kind::Injective)) injective(block);
    for (const std::string& block : open_blocks(BlockFacts::Kind::Init)) injective(block);
    return draft_.take();
  }

 private:
  std::vector<std::string> open_blocks(BlockFacts::Kind kind) const {
    std::vector<std::string> names;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == kind && !draft_.done.contains(block.name)) names.push_back(block.name);
    return names;
  }

  /// Recomputing is worth it where the value is cheap or read about once per element.
  bool worth_inlining(const std::vector<BlockFacts>& blocks, const BlockFacts& producer) const {
    int64_t uses = 0;
    bool windows = true;
    for (const BlockFacts* reader : readers(blocks, producer.store->buffer)) {
      if (reader->kind == BlockFacts::Kind::Other) return false;
      if (reads_through_padding(*reader, producer)) continue;
      windows = false;
      for (const Load& load : reader->loads)
        uses += load.buffer == producer.store->buffer ? reader->work() : 0;
      const bool staged = reader->kind == BlockFacts::Kind::Reduce && producer.cost > 0;
      if (staged && reader->work() > kRecomputeLimit * producer.work()) return false;
    }
    return windows || producer.cost <= kCheapCost || uses <= producer.work();
  }

  void inline_injective() {
    std::set<std::string> refused;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      for (const BlockFacts& block : blocks) {
        if (block.kind != BlockFacts::Kind::Injective || refused.contains(block.name)) continue;
        if (is_output(draft_.func(), block.store->buffer) || !worth_inlining(blocks, block))
          continue;
        const std::string name = block.name;
        changed = draft_.attempt(schedule::Inline{name});
        if (!changed) refused.insert(name);
        if (changed) break;
      }
    }
  }

  /// A reduction that writes an output directly gets a copy to accumulate in.
  void stage_outputs() {
    std::vector<std::string> names;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == BlockFacts::Kind::Reduce && is_output(draft_.func(), block.store->buffer))
        names.push_back(block.name);
    for (const std::string& name : names)
      draft_.attempt(schedule::CacheWrite{name, name + ".acc", ""});
  }

  void injective(const std::string& name) {
    const LoopNest nest = draft_.nest_of(name);
    if (nest.names.empty()) return;
    int64_t work = cost_of(name);
    for (int64_t extent : nest.extents) work *= extent;
    if (!tile_transpose(draft_, name, target_)) vectorize_innermost(draft_, name, target_);
    parallelize(name, work);
    cut_padding(draft_, name);
  }

  int64_t cost_of(const std::string& name) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    return block == nullptr ? 1 : 1 + block->cost;
  }

  void reduction(const std::string& name) {
    if (draft_.done.contains(name)) return;
    const Draft::Mark before = draft_.mark();
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    if (block == nullptr || block->work() == 0) return;
    const int64_t work = block->work();
    const std::optional<RegisterTile> tile = choose_register_tile(*block, target_);
    if (!tile && fuse_rows(draft_, name, target_)) {
      // The block that finishes the rows is left to the rule for element-wise blocks.
      return;
    }
    if (!(tile ? tile_reduction(draft_, name, *tile, target_, threads_)
               : reduce_rows(draft_, name))) {
      draft_.revert(before);
      return;
    }
    draft_.done.insert(name);
    draft_.done.insert(name + ".init");
    for (const std::string& piece : draft_.pieces_of(name)) {
      draft_.done.insert(piece);
      parallelize(piece, work);
    }
  }

  void parallelize(const std::string& block, int64_t work) {
    if (threads_ < 2 || work < kParallelWork) return;
    const int64_t enough = 8 * threads_;
    for (;;) {
      const LoopNest nest = draft_.nest_of(block);
      if (nest.names.empty()) return;
      const Draft::Mark before = draft_.mark();
      if (nest.names.size() > 1 && nest.extents[0] < enough &&
          draft_.attempt(schedule::Fuse{nest.names[0], nest.names[1]})) {
        // Keep the fused loop only if it can run in parallel: the inner one may be a reduction.
        const std::string fused = draft_.nest_of(block).names[0];
        if (schedule::apply(schedule::Parallel{fused}, draft_.func())) continue;
        draft_.revert(before);
      }
      if (nest.extents[0] > 1) draft_.attempt(schedule::Parallel{nest.names[0]});
      return;
    }
  }

  Draft draft_;
  const hw::CpuTarget& target_;
  int threads_;
};

}  // namespace

schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads) {
  if (std::optional<schedule::Trace> winograd = winograd_trace(func, target, threads))
    return *std::move(winograd);
  return Scheduler(func, target, threads).run();
}

}  // namespace tilewright::tune
