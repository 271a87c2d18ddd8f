// The rule for convolutions in a row (expand - depthwise - project): what one hands to the next
// stays in cache, made piece by piece where it is needed.
#pragma once

#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

/// How a chain of two or three contractions runs as one nest.
struct StripPlan {
  std::vector<std::string> sums;  ///< the contractions, in the order they feed each other
  std::string depthwise;          ///< the one of them that works channel by channel
  /// Of the result per strip, with those that its windows need of what comes before; 0: the last
  /// contraction is the depthwise one.
  int64_t rows = 0;
  int64_t columns = 1;          ///< channel blocks of the depthwise one that are made at a time
  double fused = 0, apart = 0;  ///< predicted times; units: ns
};

/// The fastest plan for `func` (stage Tensor, injective blocks inlined); declines where its
/// contractions are no such chain or no piece fits the cache.
Answer<StripPlan> plan_strips(const Func& func, const hw::CpuTarget& target, int threads);

/// Schedules all contractions of the draft by `plan_strips`. Declines, with nothing changed, where
/// there is no plan or some step does not apply.
Answer<Done> schedule_strips(Draft& draft, const hw::CpuTarget& target, int threads);

/// Whether one kernel for `func` (stage Tensor) is predicted to be faster than one for each of its
/// contractions, and its plan applies; attention always is (attention.h). Of one contraction:
/// whether the copies around it become part of its nest.
bool worth_strips(const Func& func, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::rules
