#include "tilewright/driver/tuning/vta_tasks.h"

#include <algorithm>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/compile/vta/backend.h"
#include "tilewright/tune/vta/space.h"

namespace tilewright::driver {
namespace {

const vta::Config& config_of(const compile::CompileOptions& options) {
  return compile::vta_target(options.target)->config;
}

}  // namespace

Result<TunePlan> plan_layers(std::vector<Subject> subjects,
                             const compile::CompileOptions& options) {
  TunePlan plan;
  for (Subject& subject : subjects) {
    TunedModel model;
    model.compiled = TW_TRY(compile_subject(subject, options));
    model.subject = std::move(subject);
    for (const auto& [name, launch] : model.compiled.launches)
      for (const compile::KernelReport& layer : launch.kernels) {
        KernelTask task;
        task.task.name = layer.steps.front();
        task.task.func = layer.func;
        task.task.target = options.target;
        task.task.target.key = tune::vta_target_key(config_of(options));
        task.task.host = options.host;
        task.task.unit = "cycles";
        task.key = task.task.key();
        task.rule = layer.trace;
        task.expected = layer.predicted;
        const auto known = std::find_if(plan.tasks.begin(), plan.tasks.end(),
                                        [&](const KernelTask& t) { return t.key == task.key; });
        if (known == plan.tasks.end())
          plan.tasks.push_back(std::move(task));
        else
          ++known->task.uses;
      }
    plan.models.push_back(std::move(model));
  }
  if (plan.tasks.empty())
    return fail(ErrorKind::NotApplicable, "there is nothing to tune", "no layer runs on VTA");
  most_expected_first(plan);
  return plan;
}

Result<OwnTuning> layer_tuning(const measure::Task& task, const compile::CompileOptions& options) {
  rules::MappingOptions search;
  if (compile::vta_target(options.target)->copies == 1) search.max_copies = 1;
  std::shared_ptr<const tune::VtaSpace> space =
      TW_TRY(tune::VtaSpace::create(task.func, config_of(options), search));
  OwnTuning made;
  made.space = space;
  made.evaluator = [func = task.func, config = config_of(options),
                    copies = space->mappings().copies()] {
    return Result<std::unique_ptr<measure::Evaluator>>(
        tune::cycles_evaluator(func, config, copies));
  };
  return made;
}

Result<double> launch_cycles(const compile::CompiledModel& model,
                             const compile::CompileOptions& options) {
  double cycles = 0;
  for (const auto& [name, launch] : model.launches)
    for (const vta::Run& run : compile::vta_code(launch)->program.runs)
      cycles +=
          static_cast<double>(TW_TRY(vta::simulate_time(config_of(options), run.insns)).cycles);
  return cycles;
}

}  // namespace tilewright::driver
