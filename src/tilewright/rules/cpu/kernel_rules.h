// The tables of rules for processors, in the order in which they are asked: rules for a kernel as
// it is, rules for several of its blocks at once, rules for each sum that is left, and
// who takes what remains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/cost/decision.h"
#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// A kernel as it is (stage Tensor).
struct CpuKernel {
  const Func& func;
  const hw::CpuTarget& target;
  int threads;
};
struct WholeSchedule {
  schedule::Trace trace;
  cost::RuleDecision decision;
};
/// Asks the rules for whole kernels.
std::optional<WholeSchedule> ask_whole(CpuKernel& kernel, RuleChoice& choice);

/// A kernel whose element-wise blocks are inlined where that pays.
struct CpuDraft {
  Draft& draft;
  const hw::CpuTarget& target;
  int threads;
};
/// Asks the rules for several blocks at once. Those that make one nest of them have done so then;
/// a recurrence is scheduled behind all other blocks (cpu/scan.h).
void ask_joined(CpuDraft& kernel, RuleChoice& choice);

/// A sum in a nest of its own. `tile`: the one to use, or why there is none.
struct CpuSum {
  Draft& draft;
  const hw::CpuTarget& target;
  int threads;
  std::string name;
  Answer<RegisterTile> tile;
  /// Tried in turn where the steps of `tile` do not apply; the one that is taken becomes `tile`.
  std::vector<RegisterTile> others = {};
  size_t taken = 0;  ///< 0: the first; else one more than its place in `others`
};
/// What has become of a sum: a nest of its own; a part of the nest of the block that finishes its
/// rows; loops as they stand.
enum class SumNest { Own, OfRows, AsItStands };
/// Asks the rules for sums; the last one takes any.
SumNest ask_sum(CpuSum& sum, RuleChoice& choice);
/// For a sum that nobody can schedule: all rules for sums decline with `reason`, but the last.
void leave_sum(const std::string& reason, RuleChoice& choice);
/// For kernels without sums that nobody has taken: all rules for sums decline, and the last rule,
/// for element-wise blocks, takes it.
void leave_kernel(RuleChoice& choice);

/// All rules, in their order.
std::vector<RuleInfo> cpu_rules();

}  // namespace tilewright::rules
