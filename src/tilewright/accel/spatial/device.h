// An accelerator `spatial` as the host sees it; simulators implement it (sim/fsim.h, sim/tsim.h).
#pragma once

#include <cstdint>
#include <tuple>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/spatial/program.h"

namespace tilewright::spatial {

/// What a launch did. Bytes and bursts are the port's; what the array read of each factor is in
/// bytes of the scratchpad.
struct Counters {
  uint64_t insns = 0, loads = 0, computes = 0, stores = 0;
  uint64_t steps = 0, macs = 0;  ///< macs: of lanes that do something
  uint64_t load_bytes = 0, load_bursts = 0, zero_bytes = 0;
  uint64_t store_bytes = 0, store_bursts = 0;
  uint64_t first_bytes = 0, second_bytes = 0;
  uint64_t load_busy = 0, compute_busy = 0, store_busy = 0;  ///< cycles (timed devices)

  static constexpr auto fields() {
    using C = Counters;
    return std::tuple{field("insns", &C::insns),
                      field("loads", &C::loads),
                      field("computes", &C::computes),
                      field("stores", &C::stores),
                      field("steps", &C::steps),
                      field("macs", &C::macs),
                      field("load_bytes", &C::load_bytes),
                      field("load_bursts", &C::load_bursts),
                      field("zero_bytes", &C::zero_bytes),
                      field("store_bytes", &C::store_bytes),
                      field("store_bursts", &C::store_bursts),
                      field("first_bytes", &C::first_bytes),
                      field("second_bytes", &C::second_bytes),
                      field("load_busy", &C::load_busy),
                      field("compute_busy", &C::compute_busy),
                      field("store_busy", &C::store_busy)};
  }
};

using accel::InsnTime;
using accel::LaunchOptions;
using LaunchReport = accel::LaunchReport<Counters>;

class Device : public accel::Device<Insn, Counters> {
 public:
  virtual const Design& design() const = 0;
};

/// Writes the image and runs everything. errors: Invalid (a program for another design; what the
/// device detects), Limit.
Result<LaunchReport> execute(Device& device, const Program& program,
                             const LaunchOptions& options = {},
                             const accel::AfterRun& after_run = {});

}  // namespace tilewright::spatial
