// From models to tasks. Each model is compiled by rule and runs for a moment, which tells how long
// its steps take; kernels that are the same program become one task, with the number of steps that
// use it. Convolutions are then compiled in the other forms that the model of the machine finds
// near; where one is seen to take more than twice as long it is left out, else its kernels are
// tasks, too, marked spare. A kernel that two models run in three steps each is one task with six
// uses.
#include "tilewright/driver/tuning/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/statistics.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/driver/console.h"
#include "tilewright/rules/common/work.h"
#include "tilewright/tune/gpu_space.h"
#include "tilewright/tune/sketch_space.h"

namespace tilewright::driver {
namespace {

/// Runs for `seconds`, at least `least` times; appends times.
Status run_for(runtime::Session& session, double seconds, std::vector<double>& times,
               int least = 3) {
  const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int runs = 0; runs < least || now_ns() < end; ++runs) {
    const int64_t start = now_ns();
    TW_TRY_STATUS(session.run());
    times.push_back(static_cast<double>(now_ns() - start));
    TW_TRY_STATUS(check_interrupt());
  }
  return {};
}

std::map<std::string, double> step_times(const runtime::Session& session) {
  std::map<std::string, double> times;
  for (const runtime::StepProfile& step : session.profile())
    times[step.name] +=
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
double predicted_ns(const compile::KernelReport& kernel, const compile::CompileOptions& options) {
  const double by_model = kernel.decision.chosen.time.total();
  if (by_model > 0) return by_model;
  const rules::Work work = rules::work_of(kernel.func);
  const double peak = options.cpu().rates.peak(work.dtype) * options.threads;
  return peak > 0 ? 10 * work.operations / peak : work.operations;
}

/// `conv_blocked_relu` of `conv_blocked_relu_12`.
std::string plain_name(const std::string& symbol) { return symbol.substr(0, symbol.rfind('_')); }

/// Adds the kernels of `model` that run steps which `counts` says to count. `times`: of its steps.
void add_tasks(TunePlan& plan, const compile::CompiledModel& model,
               const std::map<std::string, double>& times, const compile::CompileOptions& options,
               bool spare, const std::function<bool(const std::string& step)>& counts) {
  for (const compile::KernelReport& kernel : model.kernels) {
    KernelTask task;
    task.task.uses = std::count_if(kernel.steps.begin(), kernel.steps.end(), counts);
    if (task.task.uses == 0 || !is_constant(kernel.func)) continue;
    task.task.name = plain_name(kernel.symbol);
    task.task.func = kernel.func;
    task.task.target = hw::as_target(options.cpu());
    task.task.threads = options.threads;
    task.key = task.task.key();
    task.step = *std::find_if(kernel.steps.begin(), kernel.steps.end(), counts);
    task.rule = kernel.trace;
    task.spare = spare;
    const auto found = times.find(kernel.steps.front());
    task.expected = found == times.end() ? predicted_ns(kernel, options) : found->second;
    task.guessed = found == times.end() && kernel.decision.chosen.time.total() <= 0;
    const auto known = std::find_if(plan.tasks.begin(), plan.tasks.end(),
                                    [&](const KernelTask& t) { return t.key == task.key; });
    if (known == plan.tasks.end())
      plan.tasks.push_back(std::move(task));
    else if (known->spare && !spare)
      *known = std::move(task);
    else if (known->spare == spare)
      known->task.uses += task.task.uses;
  }
}

constexpr double kBehind = 2;  ///< tuning one form does not make up for more

struct Look {
  uint64_t seed = 1;
  double seconds = 0;
};

/// Runs `forms` in turn with `model`, if that runs, and leaves out convolutions that are far slower
/// there; times of its steps.
Result<std::map<std::string, double>> look_at(OtherForms& forms, const TunedModel& model,
                                              const runtime::SessionOptions& session,
                                              const Look& look) {
  if (!model.session) return std::map<std::string, double>();
  const auto other = TW_TRY(compile::open_session(forms.compiled, session));
  const Duel seen = TW_TRY(duel(*model.session, *other, look.seed, look.seconds));
  std::erase_if(forms.convs, [&](const ConvForms& conv) {
    const double after = time_of(conv, seen.steps_after);
    // Without a step of its own a convolution was fused into another: nothing to compare.
    return after == 0 || after > kBehind * time_of(conv, seen.steps_before);
  });
  return seen.steps_after;
}

/// Compiles other forms of the convolutions of `model`, as many as can be done before `end` (as
/// now_ns), and adds their kernels.
Status add_forms(TunePlan& plan, TunedModel& model, const std::vector<tensor::Conv2dShape>& asked,
                 const compile::CompileOptions& options, const runtime::SessionOptions& session,
                 const Look& look, double end) {
  double needs = 1e9 * (model.compile_seconds + look.seconds);  // of the next ones. units: ns
  for (size_t rank = 0; now_ns() + needs < end; ++rank) {
    const double begin = now_ns();
    std::optional<OtherForms> forms =
        TW_TRY(compile_other_forms(model.subject, model.compiled, asked, rank, options));
    if (!forms) break;
    const auto times = TW_TRY(look_at(*forms, model, session, look));
    needs = now_ns() - begin;
    if (forms->convs.empty()) continue;
    add_tasks(plan, forms->compiled, times, options, true,
              [&](const std::string& step) { return computes(*forms, step); });
    model.others.push_back(*std::move(forms));
  }
  return {};
}

}  // namespace

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

void each_form(const TunePlan& plan,
               const std::function<void(const ConvForms& conv, bool won)>& visit) {
  for (const TunedModel& model : plan.models) {
    const compile::FindForm taken = find_form(model.forms);
    for (const OtherForms& forms : model.others)
      for (const ConvForms& conv : forms.convs) {
        const std::optional<records::Record> winner = taken(conv.conv);
        if (conv.before > 0) visit(conv, winner && compile::form_in(*winner) == conv.other);
      }
  }
}

std::string label_of(const tune::TunerTask& task) {
  const bool same = task.step.empty() || task.step == task.task.name;
  const std::string label = same ? task.task.name : task.task.name + " " + task.step;
  return task.spare ? label + " (other form)" : label;
}

void most_expected_first(TunePlan& plan) {
  std::stable_sort(plan.tasks.begin(), plan.tasks.end(),
                   [](const KernelTask& a, const KernelTask& b) {
                     return a.expected * static_cast<double>(a.task.uses) >
                            b.expected * static_cast<double>(b.task.uses);
                   });
}

Result<TunePlan> plan_tuning(std::vector<Subject> subjects, const SubjectOptions& subject_options,
                             const compile::CompileOptions& options, const PlanLimits& limits) {
  TunePlan plan;
  const double end = now_ns() + 1e9 * limits.seconds;
  for (Subject& subject : subjects) {
    if (!plan.models.empty() && now_ns() > end) {
      ++plan.left_out;
      continue;
    }
    if (subject.package)
      return fail(ErrorKind::Usage, fmt::format("'{}' is compiled already", subject.path),
                  "tuning needs the model itself", "name the model that it was made from");
    TunedModel model;
    std::vector<tensor::Conv2dShape> asked;
    compile::CompileOptions watched = options;
    if (!options.form)
      watched.form = [&asked](const tensor::Conv2dShape& conv) -> std::optional<records::Record> {
        asked.push_back(conv);
        return std::nullopt;
      };
    const double begin = now_ns();
    model.compiled = TW_TRY(compile_subject(subject, watched));
    model.compile_seconds = 1e-9 * (now_ns() - begin);
    model.subject = std::move(subject);
    std::map<std::string, double> times;
    runtime::SessionOptions session;
    session.threads = threads_of(subject_options);
    session.flush_denormals = true;
    if (limits.look > 0) {
      model.session = TW_TRY(compile::open_session(model.compiled, session));
      model.compile_seconds = 1e-9 * (now_ns() - begin);
      TW_TRY_STATUS(bind_inputs(*model.session, subject_options.seed));
      std::vector<double> runs;
      TW_TRY_STATUS(run_for(*model.session, limits.look / 6, runs));
      model.session->reset_profile();
      runs.clear();
      TW_TRY_STATUS(run_for(*model.session, limits.look, runs));
      model.latency = median(runs);
      times = step_times(*model.session);
    }
    add_tasks(plan, model.compiled, times, options, false, [](const std::string&) { return true; });
    if (model.session || limits.forms)
      TW_TRY_STATUS(add_forms(plan, model, asked, options, session,
                              {subject_options.seed, limits.look}, end));
    plan.models.push_back(std::move(model));
  }
  most_expected_first(plan);
  return plan;
}

Result<Duel> duel(runtime::Session& before, runtime::Session& after, uint64_t seed,
                  double seconds) {
  TW_TRY_STATUS(bind_inputs(before, seed));
  TW_TRY_STATUS(bind_inputs(after, seed));
  std::vector<double> first, second, warm_up;
  TW_TRY_STATUS(run_for(before, std::min(0.05, seconds), warm_up));
  TW_TRY_STATUS(run_for(after, std::min(0.05, seconds), warm_up));
  before.reset_profile();
  after.reset_profile();
  // In turn, so that a slow moment of the machine hits both; few rounds where one run takes long.
  const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int round = 0; round < kDuelRounds && (round < kLeastRounds || now_ns() < end); ++round) {
    TW_TRY_STATUS(run_for(before, seconds / (2 * kDuelRounds), first, 1));
    TW_TRY_STATUS(run_for(after, seconds / (2 * kDuelRounds), second, 1));
  }
  return Duel{median(first), median(second), step_times(before), step_times(after)};
}

namespace {

Result<schedule::Sketch> read_sketch(const std::string& path) {
  Result<schedule::Sketch> sketch = schedule::parse_sketch(TW_TRY(read_file(path)));
  if (!sketch) return tl::unexpected<Error>(std::move(sketch.error()).at(path));
  return sketch;
}

/// A sketch is written for one kernel: others have no such loops, and nothing to choose.
Result<std::shared_ptr<const tune::ScheduleSpace>> from_sketch(const std::string& path,
                                                               const measure::Task& task) {
  const schedule::Sketch sketch = TW_TRY(read_sketch(path));
  Result<std::unique_ptr<tune::ScheduleSpace>> space = tune::sketch_space(task, sketch);
  if (space) return std::shared_ptr<const tune::ScheduleSpace>(*std::move(space));
  detail(fmt::format("{} does not fit {}: {}", path, task.name, space.error().what));
  return std::shared_ptr<const tune::ScheduleSpace>();
}

}  // namespace

Status check_space(const std::string& name) {
  if (name == "constructive" || name == "tiling") return {};
  if (is_path(name)) {
    TW_TRY(read_sketch(name));
    return {};
  }
  return fail(ErrorKind::Usage, fmt::format("there is no space '{}'", name), {},
              "--space constructive, tiling or FILE.sketch");
}

Result<std::shared_ptr<const tune::ScheduleSpace>> open_space(const std::string& name,
                                                              const measure::Task& task) {
  using Space = std::shared_ptr<const tune::ScheduleSpace>;
  TW_TRY_STATUS(check_space(name));
  const hw::GpuTarget* gpu = task.target.gpu();
  if (name == "constructive")
    return Space(gpu != nullptr ? tune::constructive_gpu_space(task.func, *gpu)
                                : tune::constructive_space(task));
  if (name == "tiling")
    return Space(gpu != nullptr ? tune::tiling_gpu_space(task.func, *gpu)
                                : tune::tiling_space(task));
  if (gpu != nullptr)
    return fail(ErrorKind::Usage, "sketches are for processors",
                fmt::format("{} is for {}", task.name, gpu->name), "--space constructive");
  return from_sketch(name, task);
}

}  // namespace tilewright::driver
