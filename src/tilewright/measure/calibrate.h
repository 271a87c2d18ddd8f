// Measures what the time models need to know of this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/measure/bursts.h"
#include "tilewright/measure/tile_probe.h"

namespace tilewright::measure {

/// What a measurement is made of; tests give their own.
struct Probes {
  /// units: operations per ns of one core. Absent instructions: a reading without bursts.
  std::function<BurstReading(DType)> peak;
  std::function<BurstReading()> clock;      ///< units: GHz
  std::function<BurstReading()> fork_join;  ///< units: loops per ns
  std::function<BurstReading(int cores, int64_t bytes)>
      memory;  ///< units: bytes per ns of all cores
  std::function<Result<TileReading>(const ProbeTile&)> tile;
  std::vector<ProbeTile> tiles;  ///< empty: register tiles are not measured
  std::function<double()> now;   ///< units: seconds, by the wall clock
};

/// Those of this machine. `compile` absent: no tiles. requires: `target` is hw::host().
Probes system_probes(const hw::CpuTarget& target, const CompileKernel& compile);

/// Called before each reading; an error ends the measurement with it.
using CalibrateProgress = std::function<Status(int done, int total, const std::string& what)>;

/// The rates of a machine; takes about ten seconds, at most twenty where other programs are busy
/// too. What they leave no chance to measure, or what contradicts itself however often it is
/// measured, is in `assumed`, with typical values. errors: what compiling a tile and `progress`
/// report.
Result<hw::CpuRates> calibrate(const hw::CpuTarget& target, const Probes& probes,
                               const CalibrateProgress& progress);

/// Why measured rates look like those of a machine that did other work meanwhile, which readings
/// that agree with each other do not show: register tiles stay below the peak measured beside them
/// where another program shares the core. Empty if they do not, or if tiles were not measured.
std::string disturbed(const hw::CpuRates& rates);

}  // namespace tilewright::measure
