// The schedule chosen by rule: no measurement, no search. It always succeeds; at worst loops stay
// serial.
#pragma once

#include <vector>

#include "tilewright/cost/decision.h"
#include "tilewright/cost/tile_space.h"
#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/schedule/step.h"

namespace tilewright::tune {

/// A schedule and why it is the one.
struct ScheduleChoice {
  schedule::Trace trace;
  cost::Decision decision;  ///< about the contraction with most work; empty without one
};

/// Schedules `func` (stage Tensor) for `target` with `threads` workers: injective blocks are
/// inlined, contractions get the register tile and loop order that the model of the machine ranks
/// first, with their epilogue fused; the rest is vectorised and made parallel.
ScheduleChoice choose_schedule(const Func& func, const hw::CpuTarget& target, int threads);
/// Its trace alone.
schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads);

/// The points of the contraction with most work, fastest first by the model; empty without one.
std::vector<cost::RankedPoint> schedule_points(const Func& func, const hw::CpuTarget& target,
                                               int threads);
/// The schedule with that contraction at `point`.
///   errors: NotApplicable with the reason (no such contraction, the point does not fit).
Result<schedule::Trace> trace_at(const Func& func, const cost::TilePoint& point,
                                 const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
