#include "tilewright/driver/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/tuned.h"
#include "tilewright/tune/evaluators.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::driver {
namespace {

constexpr int kTransferred = 4;     ///< points tried first because a shape alike liked them
constexpr double kRaceShare = 0.1;  ///< of the time between compiling and the races of models

/// How long each of `models` runs against its untuned form.
double duel_seconds(double seconds, size_t models) {
  return std::clamp(0.05 * seconds / static_cast<double>(models), 0.1, 2.0);
}

/// A store of records made from a file: another store, or JSON lines.
Result<tune::RecordStore> open_replayed(const std::string& path) {
  if (!std::filesystem::exists(path))
    return fail(ErrorKind::Io, fmt::format("there is no file {}", path), {},
                "--measure replay:FILE names a record store or exported lines");
  const std::string text = TW_TRY(read_file(path));
  if (text.starts_with("SQLite format 3")) return tune::RecordStore::open(path);
  tune::RecordStore store = TW_TRY(tune::RecordStore::open(":memory:"));
  Result<tune::RecordStore::Imported> lines = store.import_lines(text);
  if (!lines) return tl::unexpected<Error>(std::move(lines.error()).at(path));
  return store;
}

}  // namespace

/// Seconds left before models must be compiled again and run against each other: at most half of
/// the budget goes there.
double TuneRun::rest() const {
  const size_t models = plan_.models.size();
  const double end =
      compile_seconds_ + static_cast<double>(models) * duel_seconds(settings_.seconds, models);
  return settings_.seconds - elapsed() - std::min(2 * end, 0.5 * settings_.seconds);
}

double TuneRun::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Status TuneRun::prepare() {
  SubjectOptions by_rule = settings_.subject;
  by_rule.no_records = true;
  compile_ = TW_TRY(compile_options(by_rule));
  compile_.command = settings_.command;
  if (compile_.vta)
    return fail(ErrorKind::Unsupported, "tune searches schedules of CPU kernels",
                "layers of an accelerator are mapped by search whenever they are compiled");
  if (const auto missing = hw::missing_features(compile_.target); on_device() && !missing.empty())
    return fail(
        ErrorKind::Device,
        fmt::format("code for target {} does not run on this machine", settings_.subject.target),
        "it lacks " + missing.front(), "--measure model judges without running");
  TW_TRY_STATUS(check_space(settings_.space));
  std::vector<Subject> subjects = TW_TRY(load_subjects(by_rule));
  if (!settings_.output.empty() && subjects.size() > 1)
    return fail(ErrorKind::Usage, "-o names one package",
                fmt::format("there are {} subjects", subjects.size()));
  const double before = elapsed();
  const bool run = on_device() && !settings_.dry;
  plan_ = TW_TRY(plan_tuning(std::move(subjects), by_rule, compile_, run));
  compile_seconds_ = elapsed() - before;
  return {};
}

Status TuneRun::open() {
  constexpr std::string_view kReplay = "replay:";
  if (settings_.measure.starts_with(kReplay))
    replayed_ = TW_TRY(open_replayed(settings_.measure.substr(kReplay.size())));
  else if (!on_device() && settings_.measure != "model")
    return fail(ErrorKind::Usage, fmt::format("cannot measure by '{}'", settings_.measure), {},
                "--measure device, model or replay:FILE");
  if (on_device() && !settings_.dry) {
    const std::string& path = settings_.subject.records;
    store_ =
        TW_TRY(tune::RecordStore::open(path.empty() ? tune::RecordStore::default_path() : path));
    TW_TRY_STATUS(keep_workloads());
    measurer_ = TW_TRY(tune::start_measurer({}));
  }
  std::vector<tune::TunerTask> tasks;
  for (const KernelTask& task : plan_.tasks) {
    tune::TunerTask made = TW_TRY(tuner_task(task));
    if (made.space != nullptr && made.space->space().size() > 1) tasks.push_back(std::move(made));
  }
  if (tasks.empty())
    return fail(ErrorKind::NotApplicable, "there is nothing to tune",
                fmt::format("none of {} kernels has a choice of schedules in the space '{}'",
                            plan_.tasks.size(), settings_.space),
                "--space tiling");
  tune::TunerOptions options;
  options.space_name = space_name();
  options.searcher_name = settings_.method;
  options.compiler = compiler_key();
  options.seed = settings_.subject.seed;
  options.trials = settings_.trials;
  options.stall_gain = settings_.stall_gain;
  options.nominal_time = !on_device();
  options.seconds = on_device() ? rest() * (1 - kRaceShare) : settings_.seconds;
  options.interrupted = [] { return driver::interrupted(); };
  if (store_) options.keep = [this](const auto& records) { return keep(records); };
  const auto progress = std::make_shared<Progress>("tuning");
  options.progress = [this, progress] { progress->show(progress_line(*this)); };
  tuner_ = std::make_unique<tune::Tuner>(std::move(tasks), std::move(options));
  return {};
}

std::string TuneRun::space_name() const {
  return std::filesystem::path(settings_.space).filename();
}

Status TuneRun::keep(const std::vector<tune::Record>& records) { return store_->add_all(records); }

/// Records replay without the model: the store has the programs.
Status TuneRun::keep_workloads() {
  for (const KernelTask& task : plan_.tasks)
    TW_TRY_STATUS(store_->add_workload(task.key, tune::workload_text(task.task.func)));
  return {};
}

Result<tune::TunerTask> TuneRun::tuner_task(const KernelTask& task) {
  tune::TunerTask made;
  made.task = task.task;
  made.rule = task.rule;
  made.expected = task.expected;
  made.space = TW_TRY(open_space(settings_.space, task.task));
  if (made.space == nullptr) return made;
  made.searcher =
      TW_TRY(tune::make_searcher(settings_.method, *made.space, task.task, settings_.subject.seed));
  if (settings_.measure == "model") {
    // Without a time of the rules' schedule: that of the first values, which are the rules' own.
    const search::Space& points = made.space->space();
    const double first = made.space->prior(search::Point(points.decisions().size(), 0));
    const double cost = task.guessed && std::isfinite(first) ? first : task.expected;
    made.evaluator = [space = made.space, cost] {
      return Result<std::unique_ptr<tune::Evaluator>>(tune::model_evaluator(space, cost));
    };
    return made;
  }
  tune::RecordFilter filter;
  filter.workload = task.key;
  filter.target = task.task.target_key();
  filter.compiler = compiler_key();
  if (settings_.dry) return made;
  if (replayed_) {
    std::vector<tune::Record> records = TW_TRY(replayed_->find(filter));
    std::erase_if(records, [](const tune::Record& r) { return r.searcher == "race"; });
    for (const tune::Record& record : records) newest_ = std::max(newest_, record.when);
    made.evaluator = [records = std::move(records)] {
      return Result<std::unique_ptr<tune::Evaluator>>(tune::replay_evaluator(records));
    };
    return made;
  }
  made.evaluator = [this, &kernel = task.task] { return measurer_->evaluator(kernel); };
  made.known = TW_TRY(store_->find(filter));
  if (settings_.transfer && made.known.empty())
    made.start = TW_TRY(tune::transferred_points(*store_, task.task, made.space->space(),
                                                 space_name(), kTransferred));
  return made;
}

Status TuneRun::search() {
  stop_ = TW_TRY(tuner_->run());
  if (driver::interrupted()) stop_ = search::Stop::Interrupted;
  return {};
}

Status TuneRun::decide() {
  // An interrupted run writes what it has; interrupting again ends that too.
  if (interrupted()) interrupt_requested = false;
  tune::Measurer* racer = interrupted() ? nullptr : measurer_.get();
  // Replayed readings are as old as they are, so that equal runs give equal packages.
  const std::string when = on_device() ? tune::utc_now() : newest_;
  verdicts_ = final_races(*tuner_, compiler_key(), when, racer, [&] { return rest() > 0; });
  gains_.clear();
  for (TunedModel& model : plan_.models) TW_TRY_STATUS(compare(model));
  if (store_) {
    std::vector<tune::Record> records;
    for (const Verdict& verdict : verdicts_)
      if (verdict.known) records.push_back(verdict.record);
    // What an interrupted run saw was not raced: it stands as readings.
    if (!interrupted()) TW_TRY_STATUS(store_->add_all(records));
  }
  return write_package();
}

Verdict* TuneRun::verdict_of(const KernelReport& kernel) {
  const std::string key = tune::workload_key(tune::workload_text(kernel.func));
  for (Verdict& verdict : verdicts_)
    if (verdict.known && verdict.record.workload == key) return &verdict;
  return nullptr;
}

/// The tuned model against the untuned one. Kernels that are no faster inside the model, and all
/// where it loses as a whole, keep the rules' schedules.
Status TuneRun::compare(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  bool any = false;
  for (const KernelReport& kernel : model.compiled.kernels) {
    const Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr) continue;
    const auto uses = static_cast<double>(kernel.steps.size());
    any |= verdict->better;
    gain.before += uses * verdict->rule_cost;
    gain.after += uses * verdict->record.cost;
  }
  if (model.session && !any) gain.before = gain.after = model.latency;
  if (!model.session || !any || interrupted()) {
    gains_.push_back(std::move(gain));
    return {};
  }
  Duel times = TW_TRY(race_tuned(model));
  std::vector<Verdict*> slower;
  for (const KernelReport& kernel : model.compiled.kernels) {
    Verdict* verdict = verdict_of(kernel);
    if (verdict != nullptr && verdict->better &&
        times.steps_after[kernel.symbol] >= times.steps_before[kernel.symbol])
      slower.push_back(verdict);
  }
  for (Verdict* verdict : slower) give_up(*verdict);
  if (!slower.empty()) times = TW_TRY(race_tuned(model));
  gain.raced = true;
  gain.before = times.before;
  gain.after = gain.in_race = times.after;
  if (times.after >= times.before) {
    gain.after = times.before;
    model.tuned.reset();
    for (const KernelReport& kernel : model.compiled.kernels)
      if (Verdict* verdict = verdict_of(kernel)) give_up(*verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Compiles `model` with the present verdicts and runs both forms in turn.
Result<Duel> TuneRun::race_tuned(TunedModel& model) {
  CompileOptions options = compile_;
  options.tuned = find_among(verdicts_);
  model.tuned = TW_TRY(compile_subject(model.subject, options));
  runtime::SessionOptions session_options;
  session_options.threads = threads_of(settings_.subject);
  session_options.flush_denormals = true;
  const auto session = TW_TRY(open_session(*model.tuned, session_options));
  return duel(*model.session, *session, settings_.subject.seed,
              duel_seconds(settings_.seconds, plan_.models.size()));
}

Status TuneRun::write_package() {
  if (settings_.output.empty()) return {};
  TunedModel& model = plan_.models.at(0);
  if (!model.tuned) {
    CompileOptions options = compile_;
    options.tuned = find_among(verdicts_);
    model.tuned = TW_TRY(compile_subject(model.subject, options));
  }
  return save_package(settings_.output, *model.tuned);
}

std::string TuneRun::proposals_hash() const {
  std::string text;
  for (size_t i = 0; i < tuner_->tasks().size(); ++i) {
    text += tuner_->tasks()[i].task.key();
    for (const tune::TrialLog& trial : tuner_->states()[i].trials)
      text += "\n" + tuner_->tasks()[i].space->space().text(trial.point);
    text += "\n";
  }
  return sha256(text);
}

std::string progress_line(const TuneRun& run) {
  const tune::Tuner& tuner = run.tuner();
  std::map<tune::OutcomeKind, int64_t> outcomes;
  for (const tune::TaskState& state : tuner.states())
    for (const auto& [kind, count] : state.outcomes) outcomes[kind] += count;
  const TuneSettings& settings = run.settings();
  const std::string limit = settings.trials < std::numeric_limits<int64_t>::max()
                                ? fmt::format("{} of {} trials", tuner.trials(), settings.trials)
                                : fmt::format("{} tried", tuner.trials());
  std::string text = fmt::format("{:.0f} s", run.elapsed());
  if (settings.seconds < search::kInvalid) text += fmt::format(" / {:.0f} s", settings.seconds);
  text += fmt::format("  {} tasks  {}", tuner.tasks().size(), limit);
  for (const auto& [kind, count] : outcomes) text += fmt::format(", {} {}", count, to_string(kind));
  const double before = tuner.untuned(), now = tuner.tuned();
  if (now > 0)
    text += fmt::format("  {:.3g} -> {:.3g} ms ({:.2f}x)", before / 1e6, now / 1e6, before / now);
  return text + "  " + tuner.tasks()[tuner.current()].task.name;
}

}  // namespace tilewright::driver
