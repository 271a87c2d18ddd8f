// Tuning for VTA: the layers of launches as tasks, the cycle simulator as judge.
#pragma once

#include "tilewright/driver/tasks.h"
#include "tilewright/measure/evaluator.h"

namespace tilewright::driver {

/// Compiles `subjects` with mappings by the model; their distinct layers are the tasks.
/// requires: `options.vta`. errors: what compiling reports, NotApplicable (nothing runs on VTA).
Result<TunePlan> plan_layers(std::vector<Subject> subjects, const compile::CompileOptions& options);

/// What the tuner needs to know of a layer: its space, and the judge of the schedules in it.
struct LayerTuning {
  std::shared_ptr<const tune::ScheduleSpace> space;
  std::function<Result<std::unique_ptr<measure::Evaluator>>()> evaluator;
};
/// errors: Unsupported, Capacity.
Result<LayerTuning> layer_tuning(const measure::Task& task, const compile::CompileOptions& options);

/// Time of all launches of `model` on the cycle simulator. units: cycles. errors: of the simulator.
Result<double> launch_cycles(const compile::CompiledModel& model, const vta::Config& config);

}  // namespace tilewright::driver
