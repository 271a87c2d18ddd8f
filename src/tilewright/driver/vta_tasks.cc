#include "tilewright/driver/vta_tasks.h"

#include <algorithm>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/tune/vta_space.h"

namespace tilewright::driver {

Result<TunePlan> plan_layers(std::vector<Subject> subjects,
                             const compile::CompileOptions& options) {
  TunePlan plan;
  for (Subject& subject : subjects) {
    TunedModel model;
    model.compiled = TW_TRY(compile_subject(subject, options));
    model.subject = std::move(subject);
    for (const auto& [name, launch] : model.compiled.launches)
      for (const compile::LayerCode& layer : launch.layers) {
        KernelTask task;
        task.task.name = layer.name;
        task.task.func = layer.func;
        task.task.device = tune::vta_target_key(*options.vta);
        task.key = task.task.key();
        task.rule = layer.trace;
        task.expected = static_cast<double>(layer.predicted_cycles);
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

Result<LayerTuning> layer_tuning(const measure::Task& task,
                                 const compile::CompileOptions& options) {
  rules::MappingOptions search;
  if (options.launch.copies == 1) search.max_copies = 1;
  std::shared_ptr<const tune::VtaSpace> space =
      TW_TRY(tune::VtaSpace::create(task.func, *options.vta, search));
  LayerTuning made;
  made.space = space;
  made.evaluator = [func = task.func, config = *options.vta, copies = space->mappings().copies()] {
    return Result<std::unique_ptr<measure::Evaluator>>(
        tune::cycles_evaluator(func, config, copies));
  };
  return made;
}

Result<double> launch_cycles(const compile::CompiledModel& model, const vta::Config& config) {
  double cycles = 0;
  for (const auto& [name, launch] : model.launches)
    for (const vta::Run& run : launch.program.runs)
      cycles += static_cast<double>(TW_TRY(vta::simulate_time(config, run.insns)).cycles);
  return cycles;
}

}  // namespace tilewright::driver
