// What there is to tune: models compiled by rule, and their distinct kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/driver/subject.h"
#include "tilewright/tune/space.h"

namespace tilewright::driver {

/// A kernel to tune; models that have it share it.
struct KernelTask {
  tune::Task task;  ///< `uses`: steps of all models together
  std::string key;  ///< of the task
  schedule::Trace rule;
  double expected = 0;   ///< of one use with the rules' schedule, by model or measured. units: ns
  bool guessed = false;  ///< `expected` is neither
};

struct TunedModel {
  Subject subject;
  CompiledModel compiled;              ///< by rule alone
  std::optional<CompiledModel> tuned;  ///< once there is one
  std::unique_ptr<runtime::Session> session;
  double latency = 0;  ///< of `session`, the median; 0 where nothing may run. units: ns
};

struct TunePlan {
  std::vector<TunedModel> models;
  std::vector<KernelTask> tasks;  ///< those with most expected time first
};

/// Compiles `subjects` by rule, and with `run` takes times of their kernels for about a second.
/// Kernels with symbolic sizes are left out. errors: what compiling reports, Interrupted.
Result<TunePlan> plan_tuning(std::vector<Subject> subjects, const SubjectOptions& subject_options,
                             const CompileOptions& options, bool run);

/// Times of two sessions that run in turn for about `seconds`.
struct Duel {
  double before = 0, after = 0;  ///< medians. units: ns
  /// Mean time of each kernel inside its model, all steps together, by symbol. units: ns
  std::map<std::string, double> steps_before, steps_after;
};
/// Binds made-up inputs to both. errors: of the sessions, Interrupted.
Result<Duel> duel(runtime::Session& before, runtime::Session& after, uint64_t seed, double seconds);

/// Whether there is such a space. errors: Usage, Io, Parse.
Status check_space(const std::string& name);
/// The space of a name: `constructive`, `tiling` or FILE.sketch; null where a sketch does not fit
/// the task. errors: Usage, Io, Parse.
Result<std::shared_ptr<const tune::ScheduleSpace>> open_space(const std::string& name,
                                                              const tune::Task& task);

}  // namespace tilewright::driver
