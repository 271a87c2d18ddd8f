// The DPU's launches as tasks of a search.
#pragma once

#include "tilewright/driver/tuning/tuning_target.h"

namespace tilewright::driver {

/// requires: the target is the DPU. errors: as tune::DpuSpace.
Result<std::vector<LaunchTask>> dpu_launches(const compile::CompiledModel& model,
                                             const compile::CompileOptions& options);

/// Time of all launches of `model` on the cycle simulator. units: cycles. errors: of the simulator.
Result<double> dpu_launch_cycles(const compile::CompiledModel& model,
                                 const compile::CompileOptions& options);

}  // namespace tilewright::driver
