// The course of `tilewright tune`, as far as the search:
//
//   prepare   options are checked, models compiled by rule, tasks found, in 20 % of the time:
//             models for which there is none are left out
//   open      store, worker processes; a space and a searcher for each task, with the points to
//             begin with: records of this kernel, else those of the nearest shape tuned before
//   search    the tuner shares the time out among tasks by what each is expected to gain, until
//             just enough is left for what tune_decide.cc does
#include "tilewright/driver/tuning/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/fleet/device_need.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/open/open.h"
#include "tilewright/records/sqlite/sqlite.h"
#include "tilewright/records/workload.h"
#include "tilewright/tune/evaluators.h"
#include "tilewright/tune/methods.h"

namespace tilewright::driver {
namespace {

constexpr int kTransferred = 4;     ///< points tried first because a shape alike liked them
constexpr double kRaceShare = 0.1;  ///< of the time between compiling and the races of models
constexpr std::string_view kReplay = "replay:";
constexpr double kSendSeconds = 3;  ///< for the jobs of a duel on a device of a fleet
/// Of the budget, at most: until all tasks are known, and kept for the end.
constexpr double kPlanShare = 0.2, kEndShare = 0.35;

/// How long each of `models` runs before it is tuned.
double look_seconds(double seconds, size_t models) {
  return std::clamp(0.05 * seconds / static_cast<double>(models), 0.02, 0.6);
}

/// A store of records made from a file: another store, or JSON lines.
Result<std::shared_ptr<records::Store>> open_replayed(const std::string& path) {
  if (records::store_file(path).empty()) return records::open_any_store_to_read(path);
  if (!std::filesystem::exists(path))
    return fail(ErrorKind::Io, fmt::format("there is no file {}", path), {},
                "--measure replay:FILE names a record store or exported lines");
  const std::string text = TW_TRY(read_file(path));
  if (text.starts_with("SQLite format 3")) return records::open_store_to_read(path);
  std::shared_ptr<records::Store> store = TW_TRY(records::open_store(":memory:"));
  Result<records::Imported> lines = records::import_lines(*store, text);
  if (!lines) return tl::unexpected<Error>(std::move(lines.error()).at(path));
  return store;
}

}  // namespace

/// Seconds left before models must be compiled again and run against each other.
double TuneRun::rest() const {
  double end = 0;
  for (const TunedModel& model : plan_.models) {
    // What other forms of convolutions need, and twice the tuned kernels.
    end += (2 + form_turns(model)) * (model.compile_seconds + race_seconds());
  }
  return settings_.seconds - elapsed() - std::min(end, kEndShare * settings_.seconds);
}

/// How long each model runs against its untuned form.
double TuneRun::duel_seconds() const {
  const auto models = static_cast<double>(plan_.models.size());
  return std::clamp(0.03 * settings_.seconds / models, 0.02, 2.0);
}

/// Of one model against its untuned form, both warmed up.
double TuneRun::race_seconds() const { return 0.1 + duel_seconds() + (remote_ ? kSendSeconds : 0); }

/// Whether something that takes `seconds` ends within the budget.
bool TuneRun::time_for(double seconds) const { return elapsed() + seconds <= settings_.seconds; }

double TuneRun::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Status TuneRun::prepare() {
  TW_TRY_STATUS(find_devices());
  SubjectOptions by_rule = settings_.subject;
  by_rule.no_records = true;
  TW_TRY_STATUS(check_paths(by_rule));
  compile_ = TW_TRY(compile_options(by_rule));
  TW_TRY_STATUS(check_tunable(compile_.target));
  compile_.command = settings_.command;
  take_class();
  if (target().ready != nullptr && runs_here() && !settings_.dry)
    TW_TRY_STATUS(target().ready(compile_, settings_.subject));
  if (std::string why = hw::why_not_here(compile_.cpu()); runs_here() && !why.empty())
    return fail(
        ErrorKind::Device,
        fmt::format("code for target {} does not run on this machine", settings_.subject.target),
        std::move(why), "--measure model judges without running");
  if (target().own_space == nullptr)
    for (const std::string& space : spaces()) TW_TRY_STATUS(check_space(space));
  std::vector<Subject> subjects = TW_TRY(load_subjects(by_rule));
  if (!settings_.output.empty() && subjects.size() > 1)
    return fail(ErrorKind::Usage, "-o names one package",
                fmt::format("there are {} subjects", subjects.size()));
  if (settings_.measure.starts_with(kReplay)) {
    replayed_ = TW_TRY(open_replayed(settings_.measure.substr(kReplay.size())));
    compile_.form = answers_of(replayed_, cpu_keys(compile_.cpu(), compile_.threads)).forms;
  }
  return plan(std::move(subjects), by_rule);
}

Status TuneRun::plan(std::vector<Subject> subjects, const SubjectOptions& by_rule) {
  PlanLimits limits;
  limits.look =
      looks_here() && !settings_.dry ? look_seconds(settings_.seconds, subjects.size()) : 0;
  // A form is taken if the whole model is faster with it, so packages must run.
  limits.forms = remote_ && !is_model(remote_->selected.devices.at(0));
  const double before = elapsed();
  limits.seconds = kPlanShare * settings_.seconds - before;
  plan_ = TW_TRY(target().plan(std::move(subjects), by_rule, compile_, limits));
  prepared_seconds_ = elapsed();
  if (plan_.left_out > 0)
    say(
        fmt::format("warning: {} of {} subjects are left out: compiling the others took {:.1f} s "
                    "of {:.0f}; --for longer tunes all",
                    plan_.left_out, plan_.left_out + static_cast<int64_t>(plan_.models.size()),
                    elapsed() - before, settings_.seconds));
  return {};
}

Status TuneRun::open() {
  if (!on_device() && !replayed_ && settings_.measure != "model")
    return fail(ErrorKind::Usage, fmt::format("cannot measure by '{}'", settings_.measure), {},
                "--measure device, model or replay:FILE");
  if (on_device() && !settings_.dry) {
    const std::string& path = settings_.subject.records;
    store_ = TW_TRY(records::open_any_store(remote_ ? fleet_url() : record_place(path).name));
    if (settings_.transfer != "none") alike_ = TW_TRY(tune::ProgramsAlike::read(*store_));
    TW_TRY_STATUS(keep_workloads());
    const auto measuring = target().measuring;
    if (remote_) TW_TRY_STATUS(open_fleet());
    if (runs_here()) {
      use_ = TW_TRY(use_device(compile_.target.name));
      measurer_ = TW_TRY(measure::start_measurer(measuring == nullptr ? measure::MeasureOptions()
                                                                      : measuring(compile_)));
    }
  }
  std::vector<tune::TunerTask> tasks;
  for (const KernelTask& task : plan_.tasks) {
    tune::TunerTask made = TW_TRY(tuner_task(task));
    if (made.space != nullptr) tasks.push_back(std::move(made));
  }
  for (const auto& [machine, count] : elsewhere_)
    say(fmt::format(
        "note: tuning records of {} kernel{} are for machine {}: the search starts from "
        "them and measures anew",
        count, count == 1 ? "" : "s", machine));
  if (taken_.started > 0 || taken_.taught > 0)
    say(fmt::format(
        "note: from kernels of the same structure that were tuned before: the search of "
        "{} starts where they were fastest{}; --transfer none begins anew",
        taken_.started,
        taken_.taught == 0 ? ""
                           : fmt::format(", the model of {} learned from {} schedules",
                                         taken_.taught, taken_.samples)));
  if (tasks.empty())
    return fail(ErrorKind::NotApplicable, "there is nothing to tune",
                fmt::format("none of {} kernels has a choice of schedules in the space {}",
                            plan_.tasks.size(), fmt::join(spaces(), " or ")),
                settings_.space.empty() ? "" : "leave out --space");
  tune::TunerOptions options;
  options.searcher_name = settings_.method;
  options.compiler = compiler_key();
  options.seed = settings_.subject.seed;
  options.trials = settings_.trials;
  options.stall_gain = settings_.stall_gain;
  options.nominal_time = !on_device();
  options.seconds = std::min(on_device() ? rest() * (1 - kRaceShare) : settings_.seconds,
                             settings_.search_seconds);
  options.interrupted = [] { return driver::interrupted(); };
  options.batches = fleet_;
  if (store_) {
    kept_ = std::make_unique<records::GroupedAdds>(store_, nullptr, say_away());
    options.keep = [this](const auto& records) { return kept_->add(records); };
  }
  const auto progress = std::make_shared<Progress>("tuning");
  options.progress = [this, progress] { progress->show(progress_line(*this)); };
  tuner_ = std::make_unique<tune::Tuner>(std::move(tasks), std::move(options));
  return {};
}

std::vector<std::string> TuneRun::spaces() const {
  if (target().own_space != nullptr) return {target().own_space};
  if (!settings_.space.empty()) return {settings_.space};
  return {"constructive", "tiling"};
}

/// Records replay without the model: the store has the programs.
Status TuneRun::keep_workloads() {
  records::Workloads workloads;
  for (const KernelTask& task : plan_.tasks)
    workloads.emplace(task.key, records::workload_text(task.task.func));
  TW_TRY(store_->add_all({}, workloads));
  return {};
}

records::RecordFilter TuneRun::records_of(const KernelTask& task) const {
  records::RecordFilter filter;
  filter.workload = task.key;
  filter.target = task.task.target_key();
  filter.compiler = compiler_key();
  return filter;
}

/// Puts the first space in `left` that has a choice for the task in place, and takes it and those
/// before it off; whether there is one.
Result<bool> TuneRun::place_space(tune::TunerTask& made, std::vector<std::string>& left,
                                  const Known& known) const {
  while (!left.empty()) {
    const std::string name = left.front();
    left.erase(left.begin());
    std::shared_ptr<const tune::ScheduleSpace> space = TW_TRY(open_space(name, made.task));
    if (space == nullptr || space->space().size() <= 1) continue;
    made.space_name = std::filesystem::path(name).filename().string();
    made.space = std::move(space);
    made.searcher = TW_TRY(tune::make_searcher(settings_.method, *made.space, made.task,
                                               settings_.subject.seed, *known));
    return true;
  }
  return false;
}

/// A task without a space has no choice of schedules.
Result<tune::TunerTask> TuneRun::tuner_task(const KernelTask& task) {
  tune::TunerTask made;
  made.task = task.task;
  made.step = task.step;
  made.rule = task.rule;
  made.expected = task.expected;
  made.spare = task.spare;
  if (target().tuning != nullptr) {
    OwnTuning layer = TW_TRY(target().tuning(task.task, compile_));
    if (layer.space == nullptr || layer.space->space().size() <= 1) return made;
    made.space_name = target().own_space;
    made.space = std::move(layer.space);
    made.evaluator = std::move(layer.evaluator);
    made.searcher = TW_TRY(
        tune::make_searcher(settings_.method, *made.space, task.task, settings_.subject.seed));
  } else {
    std::vector<std::string> left = spaces();
    const Known known = TW_TRY(known_of(task));
    if (!TW_TRY(place_space(made, left, known))) return made;
    // A model of the costs of one space says nothing about another.
    if (settings_.measure != "model")
      made.widen = [this, left, known](tune::TunerTask& wider) mutable {
        return place_space(wider, left, known);
      };
  }
  if (settings_.measure == "model") {
    // Without a time of the rules' schedule: that of the first values, which are the rules' own.
    const search::Space& points = made.space->space();
    const double first = made.space->prior(search::Point(points.decisions().size(), 0));
    const double cost = task.guessed && std::isfinite(first) ? first : task.expected;
    made.evaluator = [space = made.space, cost] {
      return Result<std::unique_ptr<measure::Evaluator>>(tune::model_evaluator(space, cost));
    };
    return made;
  }
  if (settings_.dry) return made;
  if (replayed_) {
    std::vector<records::Record> records = TW_TRY(replayed_->find(records_of(task)));
    std::erase_if(records, [](const records::Record& r) { return r.kind == records::kRaceKind; });
    for (const records::Record& record : records) newest_ = std::max(newest_, record.when);
    made.evaluator = [records = std::move(records)] {
      return Result<std::unique_ptr<measure::Evaluator>>(tune::replay_evaluator(records));
    };
    return made;
  }
  if (runs_here())
    made.evaluator = [this, &kernel = task.task] { return measurer_->evaluator(kernel); };
  made.known = TW_TRY(store_->find(records_of(task)));
  if (fleet_ != nullptr)
    for (const records::Record& known : made.known)
      if (known.kind == records::kRuleKind && known.outcome == "ok")
        fleet_->set_anchor(task.task, known.schedule, known.cost);
  TW_TRY_STATUS(take_over(task, made));
  return made;
}

/// Programs that a learned model of a kernel may begin with; none for other methods.
Result<TuneRun::Known> TuneRun::known_of(const KernelTask& task) {
  std::vector<tune::KnownProgram> known;
  if (store_ && settings_.transfer == "model" && tune::learns_programs(settings_.method))
    known = TW_TRY(tune::known_programs(*store_, alike_, task.task, compiler_key()));
  taken_.taught += !known.empty();
  for (const tune::KnownProgram& program : known)
    taken_.samples += static_cast<int64_t>(program.measured.size());
  return std::make_shared<const std::vector<tune::KnownProgram>>(std::move(known));
}

/// Where the search of a kernel without records of its own starts.
Status TuneRun::take_over(const KernelTask& task, tune::TunerTask& made) {
  if (settings_.transfer == "none" || !made.known.empty()) return {};
  tune::Transferred start = TW_TRY(tune::transferred_points(
      *store_, alike_, task.task, made.space->space(), made.space_name, kTransferred));
  made.start = std::move(start.points);
  if (!start.machine.empty())
    ++elsewhere_[start.machine];
  else
    taken_.started += !made.start.empty();
  return {};
}

Status TuneRun::search() {
  stop_ = TW_TRY(tuner_->run());
  if (kept_) TW_TRY_STATUS(kept_->settle());
  if (driver::interrupted()) stop_ = search::Stop::Interrupted;
  return {};
}

std::string TuneRun::proposals_hash() const {
  std::string text;
  for (size_t i = 0; i < tuner_->tasks().size(); ++i) {
    text += tuner_->tasks()[i].task.key();
    for (const tune::TrialLog& trial : tuner_->states()[i].trials) text += "\n" + trial.point;
    text += "\n";
  }
  return sha256(text);
}

std::string progress_line(const TuneRun& run) {
  const tune::Tuner& tuner = run.tuner();
  std::map<measure::OutcomeKind, int64_t> outcomes;
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
    text += fmt::format("  kernels {:.3g} -> {:.3g} {} ({:.2f}x)", before / 1e6, now / 1e6,
                        run.large_unit(), before / now);
  if (const fleet::RemoteMeasurer* fleet = run.fleet())
    text += fmt::format("  {} of {} devices", fleet->busy(), fleet->devices());
  return text + "  " + label_of(tuner.tasks()[tuner.current()]);
}

}  // namespace tilewright::driver
