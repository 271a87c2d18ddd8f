#include "tilewright/driver/tuning/gpu_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tilewright/base/statistics.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/report/gpu_profile.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/rules/common/work.h"
#include "tilewright/tune/gpu_space.h"

namespace tilewright::driver {
namespace {

/// A model on the device, with the times of its kernels.
class TimedModel {
 public:
  static Result<TimedModel> open(const compile::CompiledModel& model,
                                 const SubjectOptions& options) {
    TimedModel timed;
    timed.log_ = std::make_shared<compile::LaunchLog>();
    runtime::SessionOptions session;
    session.threads = threads_of(options);
    session.flush_denormals = true;
    compile::LaunchSettings launch;
    launch.device = options.device == "cpu" ? "" : options.device;
    launch.record_times = true;
    session.load_launch = compile::make_launch_loader(launch, timed.log_);
    timed.session_ = TW_TRY(compile::open_session(model, session));
    TW_TRY_STATUS(bind_inputs(*timed.session_, options.seed));
    return timed;
  }

  /// Runs for `seconds`, at least `least` times; appends the device's times. units: ns.
  Status run_for(double seconds, std::vector<double>& times, int least = 3) {
    const SteadyClock::time_point begin = SteadyClock::now();
    for (int runs = 0; runs < least || seconds_since(begin) < seconds; ++runs) {
      const double before = total();
      TW_TRY_STATUS(session_->run());
      times.push_back(total() - before);
      TW_TRY_STATUS(check_interrupt());
    }
    return {};
  }

  /// What was run so far does not count.
  void reset() {
    for (const auto& entry : log_->entries) entry.record->reset();
  }

  /// Mean time of each step, by name. units: ns.
  std::map<std::string, double> steps() const {
    std::map<std::string, double> times;
    for (const GpuStepTime& step : gpu_step_times(*log_, {}, nullptr)) times[step.step] += step.ns;
    return times;
  }

 private:
  double total() const {
    double sum = 0;
    for (const auto& entry : log_->entries) sum += entry.record->runs_ns();
    return sum;
  }

  std::shared_ptr<compile::LaunchLog> log_;
  std::unique_ptr<runtime::Session> session_;
};

/// Without a time by the device: the model's, else a tenth of the peak.
double predicted_ns(const Func& func, const hw::GpuTarget& target) {
  if (const auto decision = tune::gpu_decision(func, target)) return decision->chosen.time.total;
  return 10 * rules::work_of(func).operations / target.rates.f32 + target.rates.launch_ns;
}

void add_tasks(TunePlan& plan, const compile::CompiledModel& model,
               const std::map<std::string, double>& times, const measure::Task& like) {
  for (const compile::KernelReport* report : compile::all_kernels(model)) {
    const compile::KernelReport& kernel = *report;
    KernelTask task;
    task.task = like;
    task.task.name = kernel.func.name.substr(0, kernel.func.name.rfind('_'));
    task.task.func = kernel.func;
    task.task.uses = static_cast<int64_t>(kernel.steps.size());
    task.key = task.task.key();
    task.step = kernel.steps.front();
    task.rule = kernel.trace;
    const auto found = times.find(kernel.steps.front());
    task.expected =
        found == times.end() ? predicted_ns(kernel.func, *like.target.gpu()) : found->second;
    const auto known = std::find_if(plan.tasks.begin(), plan.tasks.end(),
                                    [&](const KernelTask& t) { return t.key == task.key; });
    if (known == plan.tasks.end())
      plan.tasks.push_back(std::move(task));
    else
      known->task.uses += task.task.uses;
  }
}

/// What all tasks on one device have in common.
Result<measure::Task> task_on(const SubjectOptions& subject_options,
                              const compile::CompileOptions& options) {
  measure::Task task;
  const hw::GpuTarget& gpu = *options.target.gpu();
  task.target = options.target;
  task.host = options.host;
  if (subject_options.elsewhere) {
    task.device = {std::string(hw::name(gpu.language)), subject_options.gpu};
  } else {
    const auto device = gpu_for(gpu, subject_options.device);
    if (!device) return task;  // nothing runs
    task.device = {(*device)->info().id, (*device)->info().name};
  }
  // OpenCL may run on this machine's processor.
  if (gpu.language == hw::GpuLanguage::OpenCl) task.threads = threads_of(subject_options);
  return task;
}

}  // namespace

Result<TunePlan> plan_gpu_tuning(std::vector<Subject> subjects,
                                 const SubjectOptions& subject_options,
                                 const compile::CompileOptions& options, const PlanLimits& limits) {
  TunePlan plan;
  const SteadyClock::time_point begin = SteadyClock::now();
  const measure::Task like = TW_TRY(task_on(subject_options, options));
  for (Subject& subject : subjects) {
    if (!plan.models.empty() && seconds_since(begin) > limits.seconds) {
      ++plan.left_out;
      continue;
    }
    if (subject.package)
      return fail(ErrorKind::Usage, fmt::format("'{}' is compiled already", subject.path),
                  "tuning needs the model itself", "name the model that it was made from");
    TunedModel model;
    const SteadyClock::time_point compiling = SteadyClock::now();
    model.compiled = TW_TRY(compile_subject(subject, options));
    model.subject = std::move(subject);
    std::map<std::string, double> times;
    if (limits.look > 0) {
      TimedModel timed = TW_TRY(TimedModel::open(model.compiled, subject_options));
      model.compile_seconds = seconds_since(compiling);
      std::vector<double> runs;
      TW_TRY_STATUS(timed.run_for(limits.look / 6, runs));
      timed.reset();
      runs.clear();
      TW_TRY_STATUS(timed.run_for(limits.look, runs));
      model.latency = median(runs);
      times = timed.steps();
    }
    add_tasks(plan, model.compiled, times, like);
    plan.models.push_back(std::move(model));
  }
  if (plan.tasks.empty())
    return fail(ErrorKind::NotApplicable, "there is nothing to tune", "no kernel runs on the GPU");
  most_expected_first(plan);
  return plan;
}

Result<Duel> duel_on_gpu(const compile::CompiledModel& before, const compile::CompiledModel& after,
                         const SubjectOptions& options, double seconds) {
  TimedModel first = TW_TRY(TimedModel::open(before, options));
  TimedModel second = TW_TRY(TimedModel::open(after, options));
  std::vector<double> times_before, times_after, warm_up;
  TW_TRY_STATUS(first.run_for(std::min(0.05, seconds), warm_up));
  TW_TRY_STATUS(second.run_for(std::min(0.05, seconds), warm_up));
  first.reset();
  second.reset();
  // In turn, so that a slow moment of the machine hits both; few rounds where one run takes long.
  const SteadyClock::time_point begin = SteadyClock::now();
  for (int round = 0;
       round < kDuelRounds && (round < kLeastRounds || seconds_since(begin) < seconds); ++round) {
    TW_TRY_STATUS(first.run_for(seconds / (2 * kDuelRounds), times_before, 1));
    TW_TRY_STATUS(second.run_for(seconds / (2 * kDuelRounds), times_after, 1));
  }
  return Duel{median(times_before), median(times_after), first.steps(), second.steps()};
}

}  // namespace tilewright::driver
