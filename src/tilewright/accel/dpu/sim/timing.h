// How long one instruction takes (docs/dpu-timing.md).
#pragma once

#include <cstdint>

#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu {

/// Beats of the DDR port; 0 for instructions that do not use it.
uint64_t ddr_beats(const Config& config, const Op& op);
/// Cycles for which its unit is busy; for LOAD and SAVE, with the port to themselves.
/// requires: its INIT is there.
uint64_t busy_cycles(const Config& config, const Op& op, const Inits& inits);
/// Cycles from the end of an instruction until its results are there.
uint64_t done_latency(const Config& config, const Op& op);

}  // namespace tilewright::dpu
