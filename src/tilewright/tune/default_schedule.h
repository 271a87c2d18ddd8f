// The schedule chosen by rule: no measurement, no search. It always succeeds; at worst loops stay
// serial.
#pragma once

#include "tilewright/hw/target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/schedule/step.h"

namespace tilewright::tune {

/// Schedules `func` (stage Tensor) for `target` with `threads` workers: injective blocks are
/// inlined, contractions get a register tile with their epilogue fused, the rest is vectorised and
/// made parallel.
schedule::Trace default_trace(const Func& func, const hw::CpuTarget& target, int threads);

}  // namespace tilewright::tune
