// The schedule of a kernel for GPUs, chosen by rule.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/rules/gpu/mma.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// How one axis of a sum's result is shared out: `threads` threads next to each other, each with
/// `each` elements, in groups of `vector` (which divides it) that lie side by side; the groups of a
/// thread are threads * vector apart; blocks share out the rest.
struct GpuAxis {
  std::string loop;  ///< none: loops around decide
  int64_t extent = 1, threads = 1, each = 1, vector = 1;
  int64_t tile() const { return threads * each; }
};

/// A sum of products on a GPU: a block keeps a tile of the result in its threads' registers and
/// stages both factors in shared memory, `steps` iterations of each reduction loop at a time. With
/// `depth` > 1 the copies run depth - 1 rounds ahead: shared memory holds `depth` rounds. With
/// `splits` > 1 as many blocks share the terms of a tile, and a second kernel adds up.
struct GpuTile {
  std::string groups;                ///< a loop whose groups of iterations share a factor, or
  int64_t group = 0;                 ///< nothing; iterations of a group
  std::vector<GpuAxis> axes;         ///< of the result, outermost first
  std::vector<std::string> reduces;  ///< loops
  std::vector<int64_t> extents, steps;
  int64_t depth = 1, splits = 1;
  /// A further loop over the four terms of a word (gpu_words.h), which is an element to all that is
  /// above; empty: none.
  std::string word;
};

/// The tile for the reduction `block` of `draft`; absent where staging would not pay: threads would
/// not share what they read.
std::optional<GpuTile> choose_gpu_tile(const BlockFacts& block, const hw::GpuTarget& target);

/// Schedules the reduction `name` with `tile`. False, with some steps taken, where it does not
/// apply. `inside`, if given: a loop around of a kernel that does more; tiles inside it follow each
/// other, and factors that are in shared memory already are read there.
bool apply_gpu_tile(Draft& draft, const std::string& name, const GpuTile& tile,
                    const std::string& inside = "");

/// A reduction of many terms to few results: `threads` threads of a block share the iterations of
/// `loop`, and `side` results next to each other are computed side by side.
struct GpuReduction {
  std::string loop;
  int64_t extent = 1, threads = 1, side = 1;
};

/// How to share out the terms of `block`; absent where there are results enough for all threads.
std::optional<GpuReduction> choose_gpu_reduction(const BlockFacts& block,
                                                 const hw::GpuTarget& target);
/// The same, with the reason where there is none.
Answer<GpuReduction> plan_gpu_reduction(const BlockFacts& block, const hw::GpuTarget& target);

/// Schedules the reduction `name` as `plan` says. False, with some steps taken, where it does not
/// apply.
bool apply_gpu_reduction(Draft& draft, const std::string& name, const GpuReduction& plan,
                         const hw::GpuTarget& target);

/// How a reduction is scheduled: by matrix instructions; in tiles; where neither applies in whole
/// rows, if `rows`; else its terms shared out to threads; else with a thread for each result.
struct GpuPlan {
  std::optional<GpuTile> tile;
  std::optional<GpuReduction> reduction;
  std::optional<GpuMma> mma;
  bool rows = true;
};
using PlanGpu = std::function<GpuPlan(const BlockFacts& block, const hw::GpuTarget& target)>;
/// choose_gpu_tile, choose_gpu_reduction, choose_gpu_mma.
GpuPlan plan_gpu(const BlockFacts& block, const hw::GpuTarget& target);

/// Schedules recurrences whose blocks share a nest: a kernel per step, in which threads share out
/// what each block computes. Returns the blocks it has scheduled; declines, with nothing changed,
/// where there are none.
Answer<std::vector<std::string>> schedule_gpu_scans(Draft& draft, const hw::GpuTarget& target);

/// Binds loops, outermost first, to thread axes (at most three; the last is x) or block axes (the
/// last is x; more than three share the outermost axis). requires: one perfect nest, for blocks.
bool bind_threads(Draft& draft, const schedule::Names& loops);
bool bind_blocks(Draft& draft, schedule::Names loops);

/// Whether `func` is attention of which the rule makes one kernel (gpu_attention.h).
bool is_gpu_attention(const Func& func, const hw::GpuTarget& target);

/// A schedule and who chose it.
struct GpuScheduleChoice {
  schedule::Trace trace;
  RuleReport rules;
};
/// Schedules `func` (stage Tensor) by the rules of `gpu_rules()`, in their order: those for whole
/// kernels, those for each sum that is left, and what remains. It always succeeds.
GpuScheduleChoice choose_gpu_schedule(const Func& func, const hw::GpuTarget& target);
/// All rules, in their order.
std::vector<RuleInfo> gpu_rules();

/// Its trace alone: products in tiles, other reductions with a thread for each
/// element, the rest a thread for each element. It always succeeds; what no rule fits runs on one
/// thread. `plan` decides about reductions. `as_planned`, if asked for: whether every plan applied.
schedule::Trace gpu_trace(const Func& func, const hw::GpuTarget& target,
                          const PlanGpu& plan = plan_gpu, bool* as_planned = nullptr);

}  // namespace tilewright::rules
