#include "tilewright/rules/gpu/rule.h"

#include <algorithm>
#include <set>

#include "tilewright/base/dtype.h"
#include "tilewright/rules/gpu/attention.h"
#include "tilewright/rules/gpu/byte_dot.h"
#include "tilewright/rules/gpu/row_kernel.h"
#include "tilewright/rules/gpu/split_k.h"
#include "tilewright/rules/gpu/split_softmax_keys.h"
#include "tilewright/rules/gpu/winograd.h"

namespace tilewright::rules {
namespace {

/// Threads of a block where a thread is an element.
constexpr int64_t kFlatThreads = 128;
/// A value is computed again at its uses up to this cost.
constexpr int kGpuCheapCost = 6;

class GpuScheduler {
 public:
  GpuScheduler(Func func, const hw::GpuTarget& target, const PlanGpu& plan)
      : draft_(std::move(func)), target_(target), plan_(plan) {}

  bool as_planned() const { return as_planned_; }

  /// Whether attention is what there is to schedule, and it becomes one kernel.
  bool is_attention() {
    inline_cheap();
    stage_outputs();
    return !schedule_gpu_attention(draft_, target_).empty();
  }

  schedule::Trace run() {
    for (const std::string& block : schedule_gpu_scans(draft_, target_))
      done_.insert(draft_.nest_of(block).names.front());
    for (const std::string& block : schedule_gpu_winograd(draft_, target_)) remember(block);
    inline_cheap();
    stage_outputs();
    if (const std::string block = schedule_gpu_attention(draft_, target_); !block.empty())
      remember(block);
    for (const std::string& name : names(BlockFacts::Kind::Reduce))
      if (!bound(name)) reduction(name);
    multiply_words(draft_, target_);
    inline_padding();
    for (const std::string& name : names())
      if (!bound(name)) one_element_per_thread(name);
    return draft_.take();
  }

 private:
  std::vector<std::string> names(BlockFacts::Kind kind) const {
    std::vector<std::string> found;
    for (const BlockFacts& block : draft_.blocks())
      if (block.kind == kind) found.push_back(block.name);
    return found;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const BlockFacts& block : draft_.blocks()) found.push_back(block.name);
    return found;
  }

  bool bound(const std::string& block) const {
    for (const std::string& loop : draft_.nest_of(block).names)
      if (done_.contains(loop)) return true;
    return false;
  }

  /// Values that are cheap, or used about once each, are computed where they are used; padding in
  /// front of a sum waits until the sum has its tile.
  void inline_cheap() {
    std::set<std::string> refused;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      for (const BlockFacts& block : blocks) {
        if (block.kind != BlockFacts::Kind::Injective || refused.contains(block.name) ||
            is_output(draft_.func(), block.store->buffer))
          continue;
        int64_t uses = 0;
        bool feeds_sum = false;
        for (const BlockFacts* reader : readers(blocks, block.store->buffer)) {
          uses += reader->work();
          feeds_sum |= reader->kind == BlockFacts::Kind::Reduce;
        }
        const std::string name = block.name;
        const bool once = uses <= block.work() || (!feeds_sum && block.cost <= kGpuCheapCost);
        changed = once && draft_.attempt(schedule::Inline{name});
        if (changed) break;
        refused.insert(name);
      }
    }
  }

  /// Padding that no tile has staged is tested where it is read.
  void inline_padding() {
    for (const std::string& name : names(BlockFacts::Kind::Injective)) {
      const std::vector<BlockFacts> blocks = draft_.blocks();
      const BlockFacts* block = find_block(blocks, name);
      if (block->cost <= kGpuCheapCost && !is_output(draft_.func(), block->store->buffer) &&
          !bound(name))
        draft_.attempt(schedule::Inline{name});
    }
  }

  void stage_outputs() {
    for (const std::string& name : names(BlockFacts::Kind::Reduce)) {
      const std::vector<BlockFacts> blocks = draft_.blocks();
      if (is_output(draft_.func(), find_block(blocks, name)->store->buffer))
        draft_.attempt(schedule::CacheWrite{name, name + ".acc", ""});
    }
  }

  void reduction(const std::string& name) {
    const GpuPlan plan = plan_of(name);
    const Draft::Mark start = draft_.mark();
    if (plan.mma) {
      if (product(name, *plan.mma)) return;
      draft_.revert(start);
      as_planned_ = false;
    }
    if (!plan.tile && plan.rows) {
      if (apply_gpu_rows(draft_, name, target_)) return remember(name);
      draft_.revert(start);
    }
    if (plan.tile) {
      if (plan.tile->splits > 1) {
        if (split_sum(name, *plan.tile)) return;
        draft_.revert(start);
      }
      if (apply_gpu_tile(draft_, name, *plan.tile)) return remember(name);
      draft_.revert(start);
      as_planned_ = false;
    }
    if (plan.reduction) {
      if (apply_gpu_reduction(draft_, name, *plan.reduction, target_)) return remember(name);
      draft_.revert(start);
      as_planned_ = false;
    }
    if (sum_per_thread(name)) return;
    draft_.revert(start);
  }

  GpuPlan plan_now(const std::string& name) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    return plan_(*find_block(blocks, name), target_);
  }

  /// Products of bytes that are none of matrices are planned in words: tiles in words of copies,
  /// others where memory has words.
  GpuPlan plan_of(const std::string& name) {
    const Draft::Mark start = draft_.mark();
    GpuPlan plan = plan_now(name);
    const std::vector<BlockFacts> blocks = draft_.blocks();
    if (plan.mma || find_gpu_mma(*find_block(blocks, name), target_)) return plan;
    for (const WordsFrom from : {WordsFrom::Copies, WordsFrom::Memory}) {
      if (in_words(draft_, name, target_, from)) {
        GpuPlan words = plan_now(name);
        if (words.tile.has_value() == (from == WordsFrom::Copies)) return words;
      }
      draft_.revert(start);
    }
    return plan;
  }

  /// A product on matrix instructions; where it is split, a kernel adds its parts up.
  bool product(const std::string& name, GpuMma mma) {
    const std::vector<std::string> before = names();
    const bool split = mma.splits > 1;
    const std::string product = split ? split_gpu_mma(draft_, name, mma, target_) : name;
    if (product.empty() || !apply_gpu_mma(draft_, product, mma)) return false;
    remember(product);
    for (const std::string& block : names())  // that lay out factors
      if (std::find(before.begin(), before.end(), block) == before.end()) remember(block);
    return !split || sum_per_thread(name);
  }

  /// Parts of the terms in blocks of their own, then a kernel that adds the parts up.
  bool split_sum(const std::string& name, GpuTile tile) {
    if (tile.splits < 2) return false;
    const std::string partial = split_gpu_sum(draft_, tile);
    if (partial.empty() || !apply_gpu_tile(draft_, partial, tile)) {
      as_planned_ = false;
      return false;
    }
    remember(partial);
    return sum_per_thread(name);
  }

  /// A thread adds up one element of the result, from its initial value to its reader.
  bool sum_per_thread(const std::string& name) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name);
    const Buffer result = sum->store->buffer;
    const auto words = word_terms(*sum, target_);
    schedule::Names space, reduce, readers_of;
    for (const Iter& iter : sum->block->iters) {
      const std::string loop = sum->loop_of(iter.var);
      if (loop.empty() && sum->extent_of(iter.var) == 1) continue;
      if (loop.empty()) return false;
      if (words && loop == words->loop) continue;
      (iter.kind == IterKind::Space ? space : reduce).push_back(loop);
    }
    for (const BlockFacts* reader : readers(blocks, result)) readers_of.push_back(reader->name);
    if (space.empty()) return false;
    schedule::Names order = space;
    order.insert(order.end(), reduce.begin(), reduce.end());
    if (words) order.push_back(words->loop);
    if (order.size() > 1 && !draft_.attempt(schedule::Reorder{order})) return false;
    if (!draft_.attempt(schedule::ComputeAt{name + ".init", space.back()})) return false;
    bool inside = true;
    for (const std::string& reader : readers_of)
      inside = draft_.attempt(schedule::ReverseComputeAt{reader, space.back()}) && inside;
    if (inside) draft_.attempt(schedule::SetScope{result.name(), "local"});
    return bind_flat(name, space);
  }

  void one_element_per_thread(const std::string& name) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    // Loops over space at the end of the nest; what is outside of them, the host goes through.
    std::set<std::string> space;
    for (const Iter& iter : block->block->iters)
      if (iter.kind == IterKind::Space) space.insert(block->loop_of(iter.var));
    schedule::Names loops;
    for (size_t i = block->loops.size(); i-- > 0 && space.contains(block->loops[i]);)
      loops.insert(loops.begin(), block->loops[i]);
    if (!loops.empty()) bind_flat(name, loops);
  }

  /// Threads take the innermost of `loops`, which are around `block`, whole where they are short;
  /// blocks take the rest.
  bool bind_flat(const std::string& block, const schedule::Names& loops) {
    const LoopNest nest = draft_.nest_of(block);
    int64_t left = std::min(kFlatThreads, target_.max_threads);
    schedule::Names rest, threads;
    for (size_t i = loops.size(); i-- > 0;) {
      const auto at = std::find(nest.names.begin(), nest.names.end(), loops[i]);
      const int64_t extent = nest.extents[static_cast<size_t>(at - nest.names.begin())];
      const bool whole = extent <= left;
      if (extent < 2 || left < 2 || threads.size() == 3) {
        rest.insert(rest.begin(), loops[i]);
        continue;
      }
      if (!whole) {
        if (!draft_.attempt(schedule::Split{loops[i], left})) return false;
        rest.insert(rest.begin(), loops[i] + ".o");
      }
      threads.insert(threads.begin(), whole ? loops[i] : loops[i] + ".i");
      left /= std::min(extent, left);
    }
    schedule::Names order = rest;
    order.insert(order.end(), threads.begin(), threads.end());
    if (order.size() > 1 && !draft_.attempt(schedule::Reorder{order})) return false;
    done_.insert(order.begin(), order.end());
    return bind_threads(draft_, threads) && bind_blocks(draft_, rest);
  }

  /// All blocks in the nest of `name` are scheduled.
  void remember(const std::string& name) { done_.insert(draft_.nest_of(name).names.front()); }

  Draft draft_;
  const hw::GpuTarget& target_;
  const PlanGpu& plan_;
  bool as_planned_ = true;
  std::set<std::string> done_;  ///< loops whose bodies are scheduled
};

}  // namespace

GpuPlan plan_gpu(const BlockFacts& block, const hw::GpuTarget& target) {
  return {choose_gpu_tile(block, target), choose_gpu_reduction(block, target),
          choose_gpu_mma(block, target), true};
}

bool is_gpu_attention(const Func& func, const hw::GpuTarget& target) {
  return GpuScheduler(with_key_parts(func, target), target, plan_gpu).is_attention();
}

schedule::Trace gpu_trace(const Func& func, const hw::GpuTarget& target, const PlanGpu& plan,
                          bool* as_planned) {
  GpuScheduler scheduler(func, target, plan);
  schedule::Trace trace = scheduler.run();
  if (as_planned != nullptr) *as_planned = scheduler.as_planned();
  return trace;
}

}  // namespace tilewright::rules
