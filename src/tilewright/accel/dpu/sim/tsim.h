// The cycle simulator: the functional one with the time that instructions take
// (docs/dpu-timing.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tilewright/accel/dpu/device.h"

namespace tilewright::dpu {

/// Data moves in the order in which the clock says it does: a missing token can change results.
std::unique_ptr<Device> make_tsim(const Config& config, uint64_t ddr_bytes);

/// Changes durations at random: what a program computes must not depend on them.
struct Jitter {
  uint64_t seed = 0;
  int most = 0;  ///< cycles added to an instruction, 0 to `most`
};

/// Cycles only: no data is moved. errors: as Device::launch.
Result<LaunchReport> simulate_time(const Config& config, const std::vector<Insn>& insns,
                                   const LaunchOptions& options = {}, const Jitter& jitter = {});
/// As make_tsim, with other durations.
std::unique_ptr<Device> make_tsim(const Config& config, uint64_t ddr_bytes, const Jitter& jitter);

}  // namespace tilewright::dpu
