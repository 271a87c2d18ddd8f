#include "tilewright/driver/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tilewright/base/file.h"
#include "tilewright/base/statistics.h"
#include "tilewright/driver/console.h"
#include "tilewright/tune/sketch_space.h"
#include "tilewright/tune/work.h"

namespace tilewright::driver {
namespace {

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status bind_inputs(runtime::Session& session, uint64_t seed) {
  std::vector<InputType> types;
  for (int id : session.program().inputs) {
    const runtime::ValueSpec& spec = session.program().values[static_cast<size_t>(id)];
    types.push_back({spec.name, spec.dtype, spec.shape});
  }
  for (const auto& [name, value] : TW_TRY(make_inputs(types, {}, seed)))
    TW_TRY_STATUS(session.bind_input(name, value));
  return {};
}

/// Runs for `seconds`, at least three times; appends times.
Status run_for(runtime::Session& session, double seconds, std::vector<double>& times) {
  const double end = now_ns() + seconds * 1e9;
  for (int runs = 0; runs < 3 || now_ns() < end; ++runs) {
    const double start = now_ns();
    TW_TRY_STATUS(session.run());
    times.push_back(now_ns() - start);
    TW_TRY_STATUS(check_interrupt());
  }
  return {};
}

std::map<std::string, double> kernel_times(const runtime::Session& session) {
  std::map<std::string, double> times;
  for (const runtime::StepProfile& step : session.profile())
    times[step.callee] +=
        static_cast<double>(step.total_ns) / static_cast<double>(std::max<int64_t>(step.calls, 1));
  return times;
}

bool is_constant(const Func& func) {
  if (!func.scalars.empty()) return false;
  for (const Param& param : func.params)
    for (const Expr& extent : param.buffer.shape())
      if (!as_int(extent)) return false;
  return true;
}

/// By the model of the machine; without one, a tenth of the peak.
double predicted_ns(const KernelReport& kernel, const CompileOptions& options) {
  const double by_model = kernel.decision.chosen.time.total();
  if (by_model > 0) return by_model;
  const tune::Work work = tune::work_of(kernel.func);
  const double peak = options.target.rates.peak(work.dtype) * options.threads;
  return peak > 0 ? 10 * work.operations / peak : work.operations;
}

/// `conv_blocked_relu` of `conv_blocked_relu_12`.
std::string plain_name(const std::string& symbol) { return symbol.substr(0, symbol.rfind('_')); }

void add_tasks(TunePlan& plan, const TunedModel& model, const CompileOptions& options,
               std::map<std::string, size_t>& known) {
  std::map<std::string, double> measured;
  if (model.session)
    for (const runtime::StepProfile& step : model.session->profile())
      if (step.calls > 0)
        measured[step.callee] =
            static_cast<double>(step.total_ns) / static_cast<double>(step.calls);
  for (const KernelReport& kernel : model.compiled.kernels) {
    if (!is_constant(kernel.func)) continue;
    KernelTask task;
    task.task.name = plain_name(kernel.symbol);
    task.task.func = kernel.func;
    task.task.target = options.target;
    task.task.threads = options.threads;
    task.task.uses = static_cast<int64_t>(kernel.steps.size());
    task.key = task.task.key();
    task.rule = kernel.trace;
    const auto found = measured.find(kernel.symbol);
    task.expected = found == measured.end() ? predicted_ns(kernel, options) : found->second;
    task.guessed = found == measured.end() && kernel.decision.chosen.time.total() <= 0;
    const auto [place, fresh] = known.emplace(task.key, plan.tasks.size());
    if (fresh)
      plan.tasks.push_back(std::move(task));
    else
      plan.tasks[place->second].task.uses += task.task.uses;
  }
}

}  // namespace

Result<TunePlan> plan_tuning(std::vector<Subject> subjects, const SubjectOptions& subject_options,
                             const CompileOptions& options, bool run) {
  TunePlan plan;
  std::map<std::string, size_t> known;
  for (Subject& subject : subjects) {
    if (subject.package)
      return fail(ErrorKind::Usage, fmt::format("'{}' is compiled already", subject.path),
                  "tuning needs the model itself");
    TunedModel model;
    model.compiled = TW_TRY(compile_subject(subject, options));
    model.subject = std::move(subject);
    if (run) {
      runtime::SessionOptions session;
      session.threads = threads_of(subject_options);
      session.flush_denormals = true;
      model.session = TW_TRY(open_session(model.compiled, session));
      TW_TRY_STATUS(bind_inputs(*model.session, subject_options.seed));
      std::vector<double> times;
      TW_TRY_STATUS(run_for(*model.session, 0.1, times));
      model.session->reset_profile();
      times.clear();
      TW_TRY_STATUS(run_for(*model.session, 0.5, times));
      model.latency = median(times);
    }
    add_tasks(plan, model, options, known);
    plan.models.push_back(std::move(model));
  }
  std::stable_sort(plan.tasks.begin(), plan.tasks.end(),
                   [](const KernelTask& a, const KernelTask& b) {
                     return a.expected * static_cast<double>(a.task.uses) >
                            b.expected * static_cast<double>(b.task.uses);
                   });
  return plan;
}

Result<Duel> duel(runtime::Session& before, runtime::Session& after, uint64_t seed,
                  double seconds) {
  TW_TRY_STATUS(bind_inputs(before, seed));
  TW_TRY_STATUS(bind_inputs(after, seed));
  std::vector<double> first, second, warm_up;
  TW_TRY_STATUS(run_for(before, 0.05, warm_up));
  TW_TRY_STATUS(run_for(after, 0.05, warm_up));
  before.reset_profile();
  after.reset_profile();
  constexpr int kRounds = 16;  // in turn, so that a slow moment of the machine hits both
  for (int round = 0; round < kRounds; ++round) {
    TW_TRY_STATUS(run_for(before, seconds / (2 * kRounds), first));
    TW_TRY_STATUS(run_for(after, seconds / (2 * kRounds), second));
  }
  return Duel{median(first), median(second), kernel_times(before), kernel_times(after)};
}

namespace {

Result<schedule::Sketch> read_sketch(const std::string& path) {
  Result<schedule::Sketch> sketch = schedule::parse_sketch(TW_TRY(read_file(path)));
  if (!sketch) return tl::unexpected<Error>(std::move(sketch.error()).at(path));
  return sketch;
}

/// A sketch is written for one kernel: others have no such loops, and nothing to choose.
Result<std::shared_ptr<const tune::ScheduleSpace>> from_sketch(const std::string& path,
                                                               const tune::Task& task) {
  const schedule::Sketch sketch = TW_TRY(read_sketch(path));
  Result<std::unique_ptr<tune::ScheduleSpace>> space = tune::sketch_space(task, sketch);
  if (space) return std::shared_ptr<const tune::ScheduleSpace>(*std::move(space));
  detail(fmt::format("{} does not fit {}: {}", path, task.name, space.error().what));
  return std::shared_ptr<const tune::ScheduleSpace>();
}

}  // namespace

Status check_space(const std::string& name) {
  if (name == "constructive" || name == "tiling") return {};
  if (name.ends_with(".sketch")) {
    TW_TRY(read_sketch(name));
    return {};
  }
  return fail(ErrorKind::Usage, fmt::format("there is no space '{}'", name), {},
              "--space constructive, tiling or FILE.sketch");
}

Result<std::shared_ptr<const tune::ScheduleSpace>> open_space(const std::string& name,
                                                              const tune::Task& task) {
  using Space = std::shared_ptr<const tune::ScheduleSpace>;
  TW_TRY_STATUS(check_space(name));
  if (name == "constructive") return Space(tune::constructive_space(task));
  if (name == "tiling") return Space(tune::tiling_space(task));
  return from_sketch(name, task);
}

}  // namespace tilewright::driver
