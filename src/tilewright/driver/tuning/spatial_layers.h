// The layers of launches on accelerators `spatial` as tasks of a search.
#pragma once

#include "tilewright/driver/tuning/tuning_target.h"

namespace tilewright::driver {

/// One task for each layer and each order that its values have: its mappings, with the compiler's
/// as start. Judged by the cost model. requires: the target is `spatial`.
Result<std::vector<LaunchTask>> spatial_layers(const compile::CompiledModel& model,
                                               const compile::CompileOptions& options);

/// Of all launches of `model`, by the cycle simulator. units: cycles.
Result<double> spatial_cycles(const compile::CompiledModel& model,
                              const compile::CompileOptions& options);

}  // namespace tilewright::driver
