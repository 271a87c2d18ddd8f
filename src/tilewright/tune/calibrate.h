// Measures what the time models need to know of this machine.
#pragma once

#include <functional>
#include <string>

#include "tilewright/tune/tile_probe.h"

namespace tilewright::tune {

struct CalibrateOptions {
  CompileKernel compile;  ///< absent: register tiles are not measured
  /// Called before each reading; an error ends the measurement with it.
  std::function<Status(int done, int total, const std::string& what)> progress;
};

/// The rates of the machine this process runs on; takes about ten seconds. requires: `target` is
/// hw::host(). errors: Limit if the readings contradict each other however often they are repeated
/// (another load takes the machine), with the numbers; what `compile` and `progress` report.
Result<hw::CpuRates> calibrate(const hw::CpuTarget& target, const CalibrateOptions& options);

/// What is impossible in the rates of `cores` cores: a farther memory faster than a nearer one,
/// cores together slower than one; empty if nothing is.
std::string implausible(const hw::CpuRates& rates, int cores);

/// Why measured rates look like those of a machine that did other work meanwhile, which readings
/// that agree with each other do not show: register tiles stay below the peak measured beside them
/// where another program shares the core. Empty if they do not, or if tiles were not measured.
std::string disturbed(const hw::CpuRates& rates);

}  // namespace tilewright::tune
