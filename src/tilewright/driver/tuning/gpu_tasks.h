// Tuning for GPUs: kernels of launches as tasks, the device's clock as judge.
#pragma once

#include <string>

#include "tilewright/driver/tuning/tasks.h"

namespace tilewright::driver {

/// Compiles `subjects` by rule; their distinct kernels are the tasks. With `limits.look` they run
/// on the device, which gives the time of every kernel. requires: the target is a GPU.
/// errors: what compiling reports, Device, NotApplicable (nothing runs on the GPU), Interrupted.
Result<TunePlan> plan_gpu_tuning(std::vector<Subject> subjects,
                                 const SubjectOptions& subject_options,
                                 const compile::CompileOptions& options, const PlanLimits& limits);

/// Two forms of a model that run in turn for about `seconds`, timed by the device: transfers and
/// functions of the host do not count. errors: of the sessions, Interrupted.
Result<Duel> duel_on_gpu(const compile::CompiledModel& before, const compile::CompiledModel& after,
                         const SubjectOptions& options, double seconds);

}  // namespace tilewright::driver
