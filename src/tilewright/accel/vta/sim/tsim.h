// The cycle simulator: fsim's data with the time each instruction takes (docs/vta-timing.md).
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "tilewright/accel/common/run_trace.h"
#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

/// Data moves in the order in which the clock says it does: a missing token can change results.
std::unique_ptr<Device> make_tsim(const Config& config, uint64_t dram_bytes);

/// Cycles only: no data is moved, DRAM is not needed (micro-op contents do not change time).
/// Fast enough to rank mappings. errors: as Device::launch.
Result<LaunchReport> simulate_time(const Config& config, const std::vector<Insn>& insns,
                                   const LaunchOptions& options = {});

/// Busy, waiting (by cause) and idle cycles of one module. `busy` is what its instructions take
/// with the read port to themselves, `memory` what other clients of the port add; waiting for fetch
/// is idle.
struct ModuleUse {
  Module module = Module::Load;
  uint64_t busy = 0, token_prev = 0, token_next = 0, memory = 0, idle = 0;
};
struct Utilisation {
  uint64_t cycles = 0;
  std::vector<ModuleUse> modules;
  double gemm = 0;  ///< GEMM steps (resets excluded) per cycle
  double bus = 0;   ///< bytes read per cycle (instructions too), as a fraction of the port's width
};
/// requires: a report with times.
Utilisation utilisation(const Config& config, const std::vector<Insn>& insns,
                        const LaunchReport& report);

/// The least time `insns` can take: max of GEMM + reset + ALU steps at their initiation intervals
/// (with pipeline4 GEMM and ALU apart), bytes read over the bus width (instructions too), and store
/// cycles. units: cycles.
struct Bound {
  uint64_t compute = 0, read = 0, store = 0;
  uint64_t cycles() const { return std::max({compute, read, store}); }
};
Bound bound(const Config& config, const std::vector<Insn>& insns);

/// A row per module with instructions and stalls by cause, and one with the program's spans
/// (layers).
accel::RunTrace run_trace(const Config& config, const Run& run, const LaunchReport& report);

/// One span of a stream. Layers overlap: each has the cycles from `from` on, so that all add up.
struct LayerUse {
  std::string name;
  uint64_t begin = 0, end = 0;  ///< first instruction's start, last one's end; units: cycles
  Counters counters;
  Bound bound;
  uint64_t from = 0;  ///< end of the layers before; no later than `end`
  /// What all layers do from `from` to `end`, evenly over the time of each instruction: no more
  /// cycles than there are between.
  Bound within;
  double gemm_within = 0;  ///< GEMM steps of that
};
std::vector<LayerUse> per_layer(const Config& config, const Run& run, const LaunchReport& report);
/// GEMM steps per cycle of the layer.
double gemm_utilisation(const LayerUse& layer);

}  // namespace tilewright::vta
