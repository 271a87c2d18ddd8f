// A GPU kernel, from a Func to a trace. For `Y = relu(A * B + bias)`:
//
//   1. rules for whole kernels are asked: recurrences, Winograd
//   2. values that are cheap or used once are inlined; a sum that writes an output gets a buffer of
//      its own before it, which can stay in registers
//   3. attention is asked for, which is two products at once
//   4. each sum goes to the first rule of kSumRules that takes it: A * B on matrix instructions, or
//      in tiles through shared memory, and so on; bias and relu are computed where its result is
//   5. what is left runs with a thread per element
//
// A rule that fails half-way takes its steps back and says why, for `explain`.
#include "tilewright/rules/gpu/rule.h"

#include <algorithm>
#include <set>

#include "tilewright/base/dtype.h"
#include "tilewright/rules/gpu/attention.h"
#include "tilewright/rules/gpu/byte_dot.h"
#include "tilewright/rules/gpu/row_kernel.h"
#include "tilewright/rules/gpu/split_k.h"
#include "tilewright/rules/gpu/split_softmax_keys.h"
#include "tilewright/rules/gpu/tile_choice.h"
#include "tilewright/rules/gpu/winograd.h"

namespace tilewright::rules {
namespace {

/// Threads of a block where a thread is an element.
constexpr int64_t kFlatThreads = 128;
/// A value is computed again at its uses up to this cost.
constexpr int kGpuCheapCost = 6;

/// A kernel being scheduled; rules return blocks of the nests they have made.
struct GpuKernel {
  Draft& draft;
  const hw::GpuTarget& target;
};

/// Asked before anything is inlined.
constexpr Rule<GpuKernel, schedule::Names> kWholeRules[] = {
    {"recurrence", "loops that hand values on from step to step: a kernel per step",
     [](GpuKernel& kernel) { return schedule_gpu_scans(kernel.draft, kernel.target); }},
    {"winograd", "convolutions by Winograd: a thread transforms a tile in registers",
     [](GpuKernel& kernel) { return schedule_gpu_winograd(kernel.draft, kernel.target); }},
};
constexpr Rule<GpuKernel, schedule::Names> kJoinedRules[] = {
    {"attention", "two products with a softmax between them: a block takes some queries of a head",
     [](GpuKernel& kernel) -> Answer<schedule::Names> {
       Answer<std::string> block = schedule_gpu_attention(kernel.draft, kernel.target);
       if (!block) return decline("{}", block.error());
       return schedule::Names{*std::move(block)};
     }},
};
/// Takes whatever is left, at the end.
void take_rest(RuleChoice& choice) {
  choice.rule = "element-wise", choice.what = "everything else: a thread for each element";
}

class GpuScheduler {
 public:
  GpuScheduler(Func func, const hw::GpuTarget& target, const PlanGpu& plan)
      : draft_(std::move(func)), target_(target), plan_(plan) {}

  bool as_planned() const { return as_planned_; }

  /// Whether attention is what there is to schedule, and it becomes one kernel.
  bool is_attention() {
    inline_cheap();
    stage_outputs();
    return schedule_gpu_attention(draft_, target_).has_value();
  }

  GpuScheduleChoice run() {
    GpuKernel kernel{draft_, target_};
    const bool taken = remember(ask(kWholeRules, kernel, log_.kernel));
    inline_cheap();
    stage_outputs();
    if (!taken) remember(ask(kJoinedRules, kernel, log_.kernel));
    for (const std::string& name : names(BlockFacts::Kind::Reduce))
      if (!bound(name)) reduction(name);
    if (!log_.decided()) {
      decline_all(kSumRules, kNoSum, log_.kernel);
      take_rest(log_.kernel);
    }
    multiply_words(draft_, target_);
    inline_padding();
    for (const std::string& name : names())
      if (!bound(name)) one_element_per_thread(name);
    return {draft_.take(), log_.report()};
  }

  static void list(std::vector<RuleInfo>& all) { list_rules(kSumRules, all); }

 private:
  /// A sum that no rule has taken yet, and what was planned for it.
  struct Sum {
    GpuScheduler& at;
    std::string name;
    GpuPlan plan;

    /// `taken`, or nothing has changed and `reason` is why.
    template <class... Args>
    Answer<Done> undone(const Draft::Mark& start, fmt::format_string<Args...> reason,
                        Args&&... args) {
      at.draft_.revert(start);
      return decline(reason, std::forward<Args>(args)...);
    }
  };
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

  /// Values that are cheap, or used about once each, are computed where they are used, but for what
  /// a rule has placed; padding in front of a sum waits until the sum has its tile.
  void inline_cheap() {
    std::set<std::string> refused;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      for (const BlockFacts& block : blocks) {
        if (block.kind != BlockFacts::Kind::Injective || refused.contains(block.name) ||
            is_output(draft_.func(), block.store->buffer) || bound(block.name))
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
    Sum sum{*this, name, plan_of(name)};
    RuleChoice choice;
    choice.block = name;
    const int64_t work = facts_of(name).second->work();
    if (!ask(kSumRules, sum, choice)) take_rest(choice);
    log_.add_sum(std::move(choice), work);
  }

  static Answer<Done> matrix_instructions(Sum& sum) {
    GpuScheduler& at = sum.at;
    if (!sum.plan.mma) {
      const auto [blocks, block] = at.facts_of(sum.name);
      const Answer<GpuMma> found = match_gpu_mma(*block, at.target_);
      return decline("{}", found ? std::string(kNoTileFits) : found.error());
    }
    const Draft::Mark start = at.draft_.mark();
    if (at.product(sum.name, *sum.plan.mma)) return Done{};
    at.as_planned_ = false;
    return sum.undone(start, "a step that lays `{}` out for the instructions does not apply",
                      sum.name);
  }

  static Answer<Done> row_kernel(Sum& sum) {
    if (sum.plan.tile) return decline("threads share the factors of `{}` in a tile", sum.name);
    if (!sum.plan.rows) return decline("the plan leaves rows out");
    GpuScheduler& at = sum.at;
    const Draft::Mark start = at.draft_.mark();
    const Answer<Done> made = apply_gpu_rows(at.draft_, sum.name, at.target_);
    if (!made) return sum.undone(start, "{}", made.error());
    at.remember(sum.name);
    return Done{};
  }

  /// In parts where the plan says so and that goes, else as one.
  static Answer<Done> shared_tile(Sum& sum) {
    GpuScheduler& at = sum.at;
    const Draft::Mark start = at.draft_.mark();
    if (!sum.plan.tile) {
      const auto [blocks, block] = at.facts_of(sum.name);
      const Answer<GpuTileTable> found = GpuTileTable::find(*block, at.target_);
      return decline("{}", found ? std::string(kNoTileFits) : found.error());
    }
    if (sum.plan.tile->splits > 1) {
      if (at.split_sum(sum.name, *sum.plan.tile)) return Done{};
      at.draft_.revert(start);
    }
    if (apply_gpu_tile(at.draft_, sum.name, *sum.plan.tile)) {
      at.remember(sum.name);
      return Done{};
    }
    at.as_planned_ = false;
    return sum.undone(start, "a step that places the tile of `{}` does not apply to its loops",
                      sum.name);
  }

  static Answer<Done> shared_terms(Sum& sum) {
    GpuScheduler& at = sum.at;
    if (!sum.plan.reduction) {
      const auto [blocks, block] = at.facts_of(sum.name);
      const Answer<GpuReduction> found = plan_gpu_reduction(*block, at.target_);
      return decline("{}", found ? "the plan has no threads for its terms" : found.error());
    }
    const Draft::Mark start = at.draft_.mark();
    if (apply_gpu_reduction(at.draft_, sum.name, *sum.plan.reduction, at.target_)) {
      at.remember(sum.name);
      return Done{};
    }
    at.as_planned_ = false;
    return sum.undone(start, "a step that shares out the terms of `{}` does not apply", sum.name);
  }

  static Answer<Done> thread_per_result(Sum& sum) {
    const Draft::Mark start = sum.at.draft_.mark();
    if (sum.at.sum_per_thread(sum.name)) return Done{};
    return sum.undone(start, "the loops over results and terms of `{}` cannot be told apart",
                      sum.name);
  }

  static constexpr const char* kNoTileFits =
      "no tile fits the shared memory, registers and threads of a block";
  static constexpr Rule<Sum, Done> kSumRules[] = {
      {"matrix-instructions", "products of bf16, f16, bytes or TF32 by instructions of warps",
       matrix_instructions},
      {"row-kernel", "sums along rows and all computed from them: warps of a block take a row",
       row_kernel},
      {"shared-tile", "products in tiles: factors in shared memory, results in registers",
       shared_tile},
      {"shared-terms", "long sums with few results: threads of a block share the terms",
       shared_terms},
      {"thread-per-result", "other sums: a thread adds up a result", thread_per_result},
  };

  /// The facts of the program as it is, and those of one block among them.
  std::pair<std::vector<BlockFacts>, const BlockFacts*> facts_of(const std::string& name) const {
    std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* block = find_block(blocks, name);
    return {std::move(blocks), block};
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
  /// Likewise those in nests that a rule has made, if there are any.
  bool remember(const std::optional<schedule::Names>& made) {
    for (const std::string& block : made.value_or(schedule::Names())) remember(block);
    return made.has_value();
  }

  Draft draft_;
  const hw::GpuTarget& target_;
  const PlanGpu& plan_;
  RuleLog log_;
  bool as_planned_ = true;
  std::set<std::string> done_;  ///< loops whose bodies are scheduled
};

}  // namespace

GpuPlan plan_gpu(const BlockFacts& block, const hw::GpuTarget& target) {
  return {choose_gpu_tile(block, target), choose_gpu_reduction(block, target),
          choose_gpu_mma(block, target), true};
}

GpuScheduleChoice choose_gpu_schedule(const Func& func, const hw::GpuTarget& target) {
  const PlanGpu plan = plan_gpu;
  return GpuScheduler(func, target, plan).run();
}

std::vector<RuleInfo> gpu_rules() {
  std::vector<RuleInfo> all;
  list_rules(kWholeRules, all);
  list_rules(kJoinedRules, all);
  GpuScheduler::list(all);
  RuleChoice last;
  take_rest(last);
  all.push_back({last.rule, last.what});
  return all;
}

bool is_gpu_attention(const Func& func, const hw::GpuTarget& target) {
  return GpuScheduler(with_key_parts(func, target), target, plan_gpu).is_attention();
}

schedule::Trace gpu_trace(const Func& func, const hw::GpuTarget& target, const PlanGpu& plan,
                          bool* as_planned) {
  GpuScheduler scheduler(func, target, plan);
  schedule::Trace trace = scheduler.run().trace;
  if (as_planned != nullptr) *as_planned = scheduler.as_planned();
  return trace;
}

}  // namespace tilewright::rules
