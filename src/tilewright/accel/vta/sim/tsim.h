// The cycle simulator: fsim's data with the time each instruction takes (docs/vta-timing.md).
#pragma once

#include <memory>
#include <string>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

std::unique_ptr<Device> make_tsim(const Config& config, uint64_t dram_bytes);

/// Cycles only: no data is moved, DRAM is not needed (micro-op contents do not change time).
/// Fast enough to rank mappings. errors: as Device::launch.
Result<LaunchReport> simulate_time(const Config& config, const std::vector<Insn>& insns,
                                   const LaunchOptions& options = {});

/// Busy, waiting (by cause) and idle cycles of one module.
struct ModuleUse {
  Module module = Module::Load;
  uint64_t busy = 0, token_prev = 0, token_next = 0, memory = 0, idle = 0;
};
struct Utilisation {
  uint64_t cycles = 0;
  std::vector<ModuleUse> modules;
  double gemm = 0;  ///< GEMM steps (resets excluded) per cycle
  double bus = 0;   ///< bytes moved per cycle, as a fraction of the port's width
};
/// requires: a report with times.
Utilisation utilisation(const Config& config, const std::vector<Insn>& insns,
                        const LaunchReport& report);

/// The least time `insns` can take: max of GEMM + reset + ALU steps at their initiation intervals,
/// bytes read over the bus width, and store cycles. units: cycles.
struct Bound {
  uint64_t compute = 0, read = 0, store = 0;
  uint64_t cycles() const { return std::max({compute, read, store}); }
};
Bound bound(const Config& config, const std::vector<Insn>& insns);

/// A trace for ui.perfetto.dev (Chrome JSON): one row per module, instructions and stalls by cause,
/// one more row with the program's spans (layers). 1 cycle = 1 us on the time axis.
std::string perfetto_trace(const Config& config, const Run& run, const LaunchReport& report);

/// Per span: cycles, utilisation, bound, operations per byte; a text table and the same as JSON.
struct LayerUse {
  std::string name;
  uint64_t begin = 0, end = 0;  ///< first instruction's start, last one's end; units: cycles
  Counters counters;
  Bound bound;
};
std::vector<LayerUse> per_layer(const Config& config, const Run& run, const LaunchReport& report);

}  // namespace tilewright::vta
