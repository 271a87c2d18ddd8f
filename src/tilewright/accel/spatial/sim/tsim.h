// The cycle simulator: fsim's data with the time that each instruction takes
// (docs/spatial-timing.md).
#pragma once

#include <memory>

#include "tilewright/accel/spatial/device.h"

namespace tilewright::spatial {

/// Data moves in the order in which the clock says it does: a missing token can change results.
std::unique_ptr<Device> make_tsim(const Design& design);

/// Cycles only: no data is moved, DRAM is not needed.
/// errors: as Device::launch, but for what depends on what memories hold.
Result<LaunchReport> simulate_time(const Design& design, const std::vector<Insn>& insns,
                                   const LaunchOptions& options = {});

}  // namespace tilewright::spatial
