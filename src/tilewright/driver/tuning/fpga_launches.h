// Programs for FPGAs as tasks of a search: designs as steps, judged by the cycle simulator.
#pragma once

#include "tilewright/driver/tuning/tuning_target.h"

namespace tilewright::driver {

/// One task for each program that has a schedule of the compiler's, which is where it starts.
/// requires: the target is `fpga`.
Result<std::vector<LaunchTask>> fpga_launches(const compile::CompiledModel& model,
                                              const compile::CompileOptions& options);

/// Of all programs of `model`, by the cycle simulator. units: cycles.
Result<double> fpga_launch_cycles(const compile::CompiledModel& model,
                                  const compile::CompileOptions& options);

}  // namespace tilewright::driver
