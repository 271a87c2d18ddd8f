// The schedule chosen by rule: no measurement, no search. It always succeeds; at worst loops stay
// serial.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/cost/decision.h"
#include "tilewright/cost/tile_space.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// A schedule and why it is the one.
struct ScheduleChoice {
  schedule::Trace trace;
  cost::RuleDecision decision;  ///< about the contraction with most work; empty without one
  RuleReport rules;             ///< who took it
};

/// Schedules `func` (stage Tensor) for `target` with `threads` workers by the rules of
/// cpu/kernel_rules.h, in their order. Where none is for the whole kernel, injective blocks are
/// inlined, contractions get the register tile and loop order that the model of the machine ranks
/// first, with their epilogue fused; the rest is vectorised and made parallel.
ScheduleChoice choose_schedule(const Func& func, const hw::CpuTarget& target, int threads);
/// Its trace alone.
schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads);

/// Schedules by rule every block of `draft` that is not among its `done`.
void finish_schedule(Draft& draft, const hw::CpuTarget& target, int threads);

/// The contraction with most work as the model sees it; absent without one.
std::optional<cost::Contraction> main_contraction(const Func& func, const hw::CpuTarget& target,
                                                  int threads);
/// The points of the contraction with most work, fastest first by the model; empty without one.
std::vector<cost::RankedPoint> schedule_points(const Func& func, const hw::CpuTarget& target,
                                               int threads);
/// The schedule with that contraction at `point`.
///   errors: NotApplicable with the reason (no such contraction, the point does not fit).
Result<schedule::Trace> trace_at(const Func& func, const cost::TilePoint& point,
                                 const hw::CpuTarget& target, int threads);

/// What rules without a register tile leave open; the defaults are their own choice.
struct Grain {
  int64_t pieces =
      0;  ///< of work per thread at least, where there are so many; 0: the usual number
  int64_t vectors = 0;  ///< registers that an element-wise block fills at a time; 0: as it reads
};
/// The rules' schedule with that grain for all blocks.
schedule::Trace trace_with(const Func& func, const Grain& grain, const hw::CpuTarget& target,
                           int threads);

}  // namespace tilewright::rules
