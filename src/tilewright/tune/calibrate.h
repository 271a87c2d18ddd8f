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

}  // namespace tilewright::tune
