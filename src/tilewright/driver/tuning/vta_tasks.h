// Tuning for VTA: the layers of launches as tasks, the cycle simulator as judge.
#pragma once

#include "tilewright/driver/tuning/tuning_target.h"
#include "tilewright/measure/evaluator.h"

namespace tilewright::driver {

/// Compiles `subjects` with mappings by the model; their distinct layers are the tasks.
/// requires: the target is VTA. errors: what compiling reports, NotApplicable (nothing runs on
/// VTA).
Result<TunePlan> plan_layers(std::vector<Subject> subjects, const compile::CompileOptions& options);

/// errors: Unsupported, Capacity.
Result<OwnTuning> layer_tuning(const measure::Task& task, const compile::CompileOptions& options);

/// Time of all launches of `model` on the cycle simulator. units: cycles. errors: of the simulator.
Result<double> launch_cycles(const compile::CompiledModel& model,
                             const compile::CompileOptions& options);

}  // namespace tilewright::driver
