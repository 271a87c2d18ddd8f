// Cycles of a program of `spatial`, one by one: three queues, tokens, the read port, the banks of
// the scratchpad. There is no data: time never depends on it. docs/spatial-timing.md is the
// contract; each class stands for registers of the Verilog (rtl/verilog).
#pragma once

#include <vector>

#include "tilewright/accel/spatial/device.h"

namespace tilewright::spatial {

/// Cycles of a STORE, from begin to end.
uint64_t store_cycles(const Design& design, const Store& store);

/// What a launch of these instructions reports. requires: check_fields accepts each.
/// errors: Invalid (deadlock, with what waits; tokens left behind), Limit.
Result<LaunchReport> simulate(const Design& design, const std::vector<Insn>& insns,
                              const LaunchOptions& options = {});

}  // namespace tilewright::spatial
