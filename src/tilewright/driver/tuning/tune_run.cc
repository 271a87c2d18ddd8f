#include "tilewright/driver/tuning/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/lines.h"
#include "tilewright/records/sqlite/sqlite.h"
#include "tilewright/records/workload.h"
#include "tilewright/tune/evaluators.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::driver {
namespace {

constexpr int kTransferred = 4;     ///< points tried first because a shape alike liked them
constexpr double kRaceShare = 0.1;  ///< of the time between compiling and the races of models
/// Of the time of the rules' algorithm, for a convolution and for its model.
constexpr double kFormWins = 0.97, kModelWins = 0.99;

constexpr std::string_view kReplay = "replay:";
/// Of the budget, at most: until all tasks are known, and kept for the end.
constexpr double kPlanShare = 0.2, kEndShare = 0.35;

/// How long each of `models` runs against its untuned form.
double duel_seconds(double seconds, size_t models) {
  return std::clamp(0.03 * seconds / static_cast<double>(models), 0.02, 2.0);
}

/// How long each of `models` runs before it is tuned.
double look_seconds(double seconds, size_t models) {
  return std::clamp(0.05 * seconds / static_cast<double>(models), 0.02, 0.6);
}

/// A store of records made from a file: another store, or JSON lines.
Result<std::shared_ptr<records::Store>> open_replayed(const std::string& path) {
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
    // Each other form of convolutions, the best of all forms, and twice the tuned kernels.
    const size_t turns = 2 + (model.others.empty() ? 0 : 2 + model.others.size());
    end += static_cast<double>(turns) * (model.compile_seconds + race_seconds());
  }
  return settings_.seconds - elapsed() - std::min(end, kEndShare * settings_.seconds);
}

/// Of one model against its untuned form, both warmed up.
double TuneRun::race_seconds() const {
  return 0.1 + duel_seconds(settings_.seconds, plan_.models.size());
}

/// Whether something that takes `seconds` ends within the budget.
bool TuneRun::time_for(double seconds) const { return elapsed() + seconds <= settings_.seconds; }

double TuneRun::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Status TuneRun::prepare() {
  SubjectOptions by_rule = settings_.subject;
  by_rule.no_records = true;
  TW_TRY_STATUS(check_paths(by_rule));
  compile_ = TW_TRY(compile_options(by_rule));
  TW_TRY_STATUS(check_tunable(compile_.target));
  compile_.command = settings_.command;
  if (target().ready != nullptr && runs_here() && !settings_.dry)
    TW_TRY_STATUS(target().ready(compile_, settings_.subject));
  if (const auto missing = hw::missing_features(compile_.cpu()); runs_here() && !missing.empty())
    return fail(
        ErrorKind::Device,
        fmt::format("code for target {} does not run on this machine", settings_.subject.target),
        "it lacks " + missing.front(), "--measure model judges without running");
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
      runs_here() && !settings_.dry ? look_seconds(settings_.seconds, subjects.size()) : 0;
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
    store_ = TW_TRY(records::open_store(path.empty() ? records::default_store_path() : path));
    TW_TRY_STATUS(keep_workloads());
    const auto measuring = target().measuring;
    if (runs_here())
      measurer_ = TW_TRY(measure::start_measurer(measuring == nullptr ? measure::MeasureOptions()
                                                                      : measuring(compile_)));
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
  if (store_) {
    kept_ = std::make_unique<records::GroupedAdds>(store_);
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
Result<bool> TuneRun::place_space(tune::TunerTask& made, std::vector<std::string>& left) const {
  while (!left.empty()) {
    const std::string name = left.front();
    left.erase(left.begin());
    std::shared_ptr<const tune::ScheduleSpace> space = TW_TRY(open_space(name, made.task));
    if (space == nullptr || space->space().size() <= 1) continue;
    made.space_name = std::filesystem::path(name).filename().string();
    made.space = std::move(space);
    made.searcher = TW_TRY(
        tune::make_searcher(settings_.method, *made.space, made.task, settings_.subject.seed));
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
    if (!TW_TRY(place_space(made, left))) return made;
    // A model of the costs of one space says nothing about another.
    if (settings_.measure != "model")
      made.widen = [this, left](tune::TunerTask& wider) mutable {
        return place_space(wider, left);
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
  if (settings_.transfer && made.known.empty()) {
    tune::Transferred start = TW_TRY(tune::transferred_points(
        *store_, task.task, made.space->space(), made.space_name, kTransferred));
    made.start = std::move(start.points);
    if (!start.machine.empty()) ++elsewhere_[start.machine];
  }
  return made;
}

Status TuneRun::search() {
  stop_ = TW_TRY(tuner_->run());
  if (kept_) TW_TRY_STATUS(kept_->flush());
  if (driver::interrupted()) stop_ = search::Stop::Interrupted;
  return {};
}

Status TuneRun::decide() {
  // An interrupted run writes what it has; interrupting again ends that too.
  if (interrupted()) interrupt_requested = false;
  measure::Measurer* racer = interrupted() ? nullptr : measurer_.get();
  // Replayed readings are as old as they are, so that equal runs give equal packages.
  const std::string when = on_device() ? tune::utc_now() : newest_;
  verdicts_ = final_races(
      *tuner_, compiler_key(), when, racer, [&] { return rest() > 0; }, target().simulated);
  gains_.clear();
  for (TunedModel& model : plan_.models) {
    TW_TRY_STATUS(choose_forms(model));
    TW_TRY_STATUS(target().cost != nullptr ? compare_launches(model) : compare(model));
  }
  if (store_) {
    std::vector<records::Record> records;
    for (const Verdict& verdict : verdicts_)
      if (verdict.known) records.push_back(verdict.record);
    for (records::Record& record : decided_forms()) records.push_back(std::move(record));
    // What an interrupted run saw was not raced: it stands as readings.
    if (!interrupted()) TW_TRY(store_->add_all(records));
  }
  return write_package();
}

Verdict* TuneRun::verdict_of(const compile::KernelReport& kernel) {
  const std::string key = records::workload_key(records::workload_text(kernel.func));
  for (Verdict& verdict : verdicts_)
    if (verdict.known && verdict.record.workload == key) return &verdict;
  return nullptr;
}

/// Which convolutions take another algorithm than by rule, all kernels being tuned: those that are
/// faster inside the model, if the model with them is faster as a whole.
Status TuneRun::choose_forms(TunedModel& model) {
  if (model.others.empty() || !model.session || interrupted()) return {};
  const double turn = model.compile_seconds + race_seconds();
  if (!time_for(static_cast<double>(3 + model.others.size()) * turn)) return {};
  const auto usual = TW_TRY(open_tuned(model, {}));
  std::map<std::string, std::pair<double, records::Record>> best;  // share of the usual time
  for (OtherForms& forms : model.others) {
    std::vector<records::Record> all;
    for (const ConvForms& conv : forms.convs)
      all.push_back(form_record(conv.conv, conv.other, compile_, 0));
    const auto other = TW_TRY(open_tuned(model, all));
    const Duel times = TW_TRY(race(*usual, *other));
    for (size_t i = 0; i < all.size(); ++i) {
      ConvForms& conv = forms.convs[i];
      conv.before = time_of(conv, times.steps_before);
      conv.after = time_of(conv, times.steps_after);
      all[i].cost = all[i].least = conv.after;
      const std::pair found(conv.after / conv.before, all[i]);
      auto& known = best.emplace(all[i].workload, found).first->second;
      if (found.first < known.first) known = found;
    }
  }
  std::vector<records::Record> taken;
  for (const auto& [conv, form] : best)
    if (form.first < kFormWins) taken.push_back(form.second);
  if (!taken.empty()) {
    const auto mixed = TW_TRY(open_tuned(model, taken));
    const Duel whole = TW_TRY(race(*usual, *mixed));
    if (whole.after < kModelWins * whole.before) model.forms = taken;
  }
  model.tuned.reset();
  return {};
}

compile::CompileOptions TuneRun::with_verdicts(const std::vector<records::Record>& forms) const {
  compile::CompileOptions options = compile_;
  options.tuned = find_among(verdicts_);
  if (!forms.empty()) options.form = find_form(forms);
  return options;
}

/// `model` with the present verdicts and `forms`.
Result<std::unique_ptr<runtime::Session>> TuneRun::open_tuned(
    TunedModel& model, const std::vector<records::Record>& forms) {
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(forms)));
  runtime::SessionOptions session_options;
  session_options.threads = threads_of(settings_.subject);
  session_options.flush_denormals = true;
  return compile::open_session(*model.tuned, session_options);
}

Result<Duel> TuneRun::race(runtime::Session& before, runtime::Session& after) const {
  return duel(before, after, settings_.subject.seed,
              duel_seconds(settings_.seconds, plan_.models.size()));
}

/// The model as compiled by rule against its form with the present verdicts.
Result<Duel> TuneRun::race_tuned(TunedModel& model) {
  if (target().duel != nullptr) {
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
    return target().duel(model.compiled, *model.tuned, settings_.subject,
                         duel_seconds(settings_.seconds, plan_.models.size()));
  }
  const auto session = TW_TRY(open_tuned(model, model.forms));
  return race(*model.session, *session);
}

/// The tuned model against the untuned one. Kernels that are no faster inside the model, and all
/// where it loses as a whole, keep the rules' schedules.
Status TuneRun::compare(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  bool any = !model.forms.empty();
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    const Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr) continue;
    const auto uses = static_cast<double>(kernel.steps.size());
    any |= verdict->better;
    gain.before += uses * verdict->rule_cost;
    gain.after += uses * verdict->record.cost;
  }
  if (runs_here() && !any) gain.before = gain.after = model.latency;
  const double turn = model.compile_seconds + race_seconds();
  if (!runs_here() || !any || interrupted() || !time_for(turn)) {
    gains_.push_back(std::move(gain));
    return {};
  }
  Duel times = TW_TRY(race_tuned(model));
  if (give_up_slower(model, times) && (time_for(turn) || times.after >= times.before))
    times = TW_TRY(race_tuned(model));
  gain.raced = true;
  gain.before = times.before;
  gain.after = gain.in_race = times.after;
  if (times.after >= times.before) {
    gain.after = times.before;
    model.tuned.reset();
    model.forms.clear();
    for (const compile::KernelReport* kernel : compile::all_kernels(model.compiled))
      if (Verdict* verdict = verdict_of(*kernel)) give_up(*verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Launches as a whole, on the simulator: the tuned ones must take fewer cycles.
Status TuneRun::compare_launches(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  gain.before = TW_TRY(target().cost(model.compiled, compile_));
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
  gain.after = gain.in_race = TW_TRY(target().cost(*model.tuned, compile_));
  gain.raced = true;
  if (gain.after >= gain.before) {
    gain.after = gain.before;
    model.tuned.reset();
    for (Verdict& verdict : verdicts_)
      if (verdict.known) give_up(verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Kernels that are no faster inside the model keep the rules' schedules; whether there are any.
bool TuneRun::give_up_slower(const TunedModel& model, const Duel& times) {
  bool any = false;
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr || !verdict->better) continue;
    double before = 0, after = 0;
    for (const std::string& step : kernel.steps) {
      const auto then = times.steps_before.find(step), now = times.steps_after.find(step);
      if (then == times.steps_before.end() || now == times.steps_after.end()) continue;
      const bool open = std::any_of(model.others.begin(), model.others.end(),
                                    [&](const OtherForms& forms) { return computes(forms, step); });
      if (!model.forms.empty() && open) continue;  // perhaps of another form
      before += then->second, after += now->second;
    }
    if (after < before || before == 0) continue;
    give_up(*verdict);
    any = true;
  }
  return any;
}

/// For every convolution that had a choice, what it came to.
std::vector<records::Record> TuneRun::decided_forms() const {
  std::map<std::string, records::Record> decided;
  each_form(plan_, [&](const ConvForms& conv, bool won) {
    const records::Record record = form_record(conv.conv, won ? conv.other : conv.rule, compile_,
                                               won ? conv.after : conv.before);
    if (!decided.emplace(record.workload, record).second && won) decided[record.workload] = record;
  });
  std::vector<records::Record> records;
  for (auto& [key, record] : decided) records.push_back(std::move(record));
  return records;
}

Status TuneRun::write_package() {
  if (settings_.output.empty()) return {};
  TunedModel& model = plan_.models.at(0);
  if (!model.tuned)
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(model.forms)));
  return save_with_samples(settings_.output, model.subject, *model.tuned, compile_, "auto");
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
  return text + "  " + label_of(tuner.tasks()[tuner.current()]);
}

}  // namespace tilewright::driver
