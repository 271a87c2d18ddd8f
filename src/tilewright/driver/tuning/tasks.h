// What there is to tune: models compiled by rule, and their distinct kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/driver/subject.h"
#include "tilewright/driver/tuning/conv_forms.h"
#include "tilewright/tune/space.h"
#include "tilewright/tune/tuner.h"

namespace tilewright::driver {

/// A kernel to tune; models that have it share it.
struct KernelTask {
  measure::Task task;  ///< `uses`: steps of all models together
  std::string key;     ///< of the task
  std::string step;    ///< the first that runs it
  schedule::Trace rule;
  double expected = 0;   ///< of one use with the rules' schedule, by model or measured. units: ns
  bool guessed = false;  ///< `expected` is neither
  bool spare = false;    ///< only in other forms of convolutions: no model runs it as yet
};

struct TunedModel {
  Subject subject;
  compile::CompiledModel compiled;              ///< by rule alone
  std::vector<OtherForms> others;               ///< of convolutions whose algorithm is open
  std::vector<records::Record> forms;           ///< that won against the rules' algorithms
  std::optional<compile::CompiledModel> tuned;  ///< once there is one
  std::unique_ptr<runtime::Session> session;
  double latency = 0;          ///< of `session`, the median; 0 where nothing may run. units: ns
  double compile_seconds = 0;  ///< of `compiled`, until it could run
};

struct TunePlan {
  std::vector<TunedModel> models;
  std::vector<KernelTask> tasks;  ///< those with most expected time first
  int64_t left_out = 0;           ///< subjects for which there was no time
};

struct PlanLimits {
  double look = 0;  ///< how long each model runs; 0: nothing may run. units: s
  /// For all; the first subject is planned in any case, other forms of convolutions if they fit.
  double seconds = search::kInvalid;
  bool forms = false;  ///< other forms of convolutions are looked at even where no model runs
};

/// Compiles `subjects` by rule and takes times of their kernels, and of other forms of their
/// convolutions. Kernels with symbolic sizes are left out. errors: what compiling reports,
/// Interrupted.
Result<TunePlan> plan_tuning(std::vector<Subject> subjects, const SubjectOptions& subject_options,
                             const compile::CompileOptions& options, const PlanLimits& limits);

/// Sorts tasks by the time they are expected to take, all uses together.
void most_expected_first(TunePlan& plan);

/// Calls `visit` for each form that a convolution was raced in besides the rule's, with whether it
/// won.
void each_form(const TunePlan& plan,
               const std::function<void(const ConvForms& conv, bool won)>& visit);

/// Binds made-up inputs. errors: of the session.
Status bind_inputs(runtime::Session& session, uint64_t seed);

/// Rounds of a duel: wanted, and taken in any case.
inline constexpr int kDuelRounds = 16, kLeastRounds = 5;

/// Times of two sessions that run in turn for about `seconds`.
struct Duel {
  double before = 0, after = 0;  ///< medians. units: ns
  /// Mean time of each step inside its model, by name. units: ns
  std::map<std::string, double> steps_before, steps_after;
};
/// Binds made-up inputs to both. errors: of the sessions, Interrupted.
Result<Duel> duel(runtime::Session& before, runtime::Session& after, uint64_t seed, double seconds);

/// `conv_blocked_relu Conv_12`: kernels of different sizes have equal names.
std::string label_of(const tune::TunerTask& task);

/// Whether there is such a space. errors: Usage, Io, Parse.
Status check_space(const std::string& name);
/// The space of a name: `constructive`, `tiling` or FILE.sketch; null where there is none for the
/// task. errors: Usage, Io, Parse.
Result<std::shared_ptr<const tune::ScheduleSpace>> open_space(const std::string& name,
                                                              const measure::Task& task);

}  // namespace tilewright::driver
