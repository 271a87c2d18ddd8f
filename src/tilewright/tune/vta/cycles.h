// The time of a schedule for VTA, on the cycle simulator.
#pragma once

#include <cstdint>

#include "tilewright/accel/vta/config.h"
#include "tilewright/schedule/step.h"

namespace tilewright::tune {

/// Cycles on the cycle simulator of `func` after `trace`: the measure that tuning minimises.
/// errors: those of the steps, of the code generator (Unsupported, Capacity) and of the simulator.
Result<uint64_t> vta_cycles(const Func& func, const schedule::Trace& trace,
                            const vta::Config& config, int copies = 2);

}  // namespace tilewright::tune
