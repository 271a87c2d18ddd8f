// Searching on from what the compiler tried.
//
// The compiler takes the best of some twenty ways. They are the first points of the search, with
// the best of earlier runs; then a searcher changes decisions about single layers. Ends with the
// budget: what is left of it for the end is the time that compiling once more takes.
#include "tilewright/driver/tuning/launch_tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/names.h"
#include "tilewright/base/parallel.h"
#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/tuning/record_place.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/open/open.h"
#include "tilewright/search/searchers.h"

namespace tilewright::driver {
namespace {

constexpr size_t kResumed = 8;     ///< ways of earlier runs that are tried first
constexpr int kStallTrials = 128;  ///< without the gain that --until-stall asks for
constexpr size_t kRanked = 64;     ///< points that `exhaustive` tries where --trials does not say
constexpr int64_t kMostRanked = 4096;
constexpr double kLeastEnd = 0.3;  ///< of compiling, that compiling once more takes

/// Most ways that differ much from a good one are bad: children of a few of the best, one decision
/// changed or two mixed.
std::unique_ptr<search::Searcher> near_the_best(const search::Space& space, uint64_t seed) {
  search::EvolutionOptions options;
  options.population = 8;
  options.random_share = 0;
  options.crossover_share = 0.25;
  return search::evolution_searcher(space, seed, options);
}

/// Cycles of networks differ by thousandths: a walk at the usual temperature would be random.
std::unique_ptr<search::Searcher> cool_walk(const search::Space& space, uint64_t seed) {
  search::AnnealingOptions options;
  options.temperature = 1e-3;
  options.cooling = 0.995;
  return search::annealing_searcher(space, seed, options);
}

struct LaunchMethod {
  const char* name;
  std::unique_ptr<search::Searcher> (*make)(const search::Space& space, uint64_t seed);
};
constexpr LaunchMethod kLaunchMethods[] = {
    {"ours", near_the_best},
    {"random", search::random_searcher},
    {"annealing", cool_walk},
    {"p", [](const search::Space& s, uint64_t seed) { return search::p_searcher(s, seed); }},
    {"q", [](const search::Space& s, uint64_t seed) { return search::q_searcher(s, seed); }},
    {"evolution",
     [](const search::Space& s, uint64_t seed) { return search::evolution_searcher(s, seed); }},
};

/// Several at once, one thread each.
std::vector<search::Evaluation> judge_all(const LaunchSpace& space,
                                          const std::vector<search::Point>& points, int jobs) {
  std::vector<search::Evaluation> outcomes(points.size());
  for_each_part(points.size(), jobs,
                [&](size_t i, size_t) { outcomes[i] = space.judge(points[i]); });
  return outcomes;
}

}  // namespace

std::vector<std::string> launch_methods() {
  std::vector<std::string> names;
  for (const LaunchMethod& method : kLaunchMethods) names.emplace_back(method.name);
  return names;
}

Result<std::unique_ptr<search::Searcher>> launch_searcher(const std::string& method,
                                                          const search::Space& space,
                                                          uint64_t seed) {
  for (const LaunchMethod& known : kLaunchMethods)
    if (known.name == method) return known.make(space, seed);
  return fail(
      ErrorKind::Usage, fmt::format("'{}' does not search whole launches", method),
      fmt::format("it needs loop programs; the methods are {}", fmt::join(launch_methods(), ", ")),
      did_you_mean(method, launch_methods()));
}

double LaunchTuning::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

size_t LaunchTuning::trials() const {
  size_t count = 0;
  for (const TunedLaunch& launch : launches_) count += launch.trials.size();
  return count;
}

/// Seconds until the last moment to compile once more, where judging one way takes `judging`.
double LaunchTuning::rest(double judging) const {
  double end = 0;
  for (const TunedModel& model : models_) end += model.compile_seconds;
  double tried = 0;
  for (const TunedLaunch& launch : launches_)
    tried += static_cast<double>(launch.task.start.size()) * judging;
  return settings_.seconds - elapsed() - std::max(kLeastEnd * end, end - tried);
}

Status LaunchTuning::check_method() const {
  if (settings_.method == kExhaustive) {
    if (target().ranks) return {};
    return fail(
        ErrorKind::Usage,
        fmt::format("launches for {} are not searched by '{}'", compile_.target.name, kExhaustive),
        "no model ranks all ways to plan them",
        fmt::format("the methods are {}", fmt::join(launch_methods(), ", ")));
  }
  const search::Space none({search::choice_decision("a", {"b"})});
  TW_TRY(launch_searcher(settings_.method, none, 1));
  return {};
}

/// Each program once in each type that was asked for.
Result<std::vector<Subject>> LaunchTuning::in_types(std::vector<Subject> subjects) const {
  if (settings_.dtypes.empty()) return subjects;
  std::vector<Subject> typed;
  for (const Subject& subject : subjects) {
    if (!subject.func)
      return fail(ErrorKind::Usage, fmt::format("'{}' is no program of loops", subject.name),
                  "--dtypes changes the types of programs", "a FILE.tw; networks: --quantize");
    for (const DType dtype : settings_.dtypes) {
      Subject one = subject;
      auto func = target().in_type(*subject.func, dtype);
      if (!func) return tl::unexpected<Error>(Error(func.error()).at(subject.name));
      one.func = *std::move(func);
      one.name = fmt::format("{} {}", subject.name, name(dtype));
      typed.push_back(std::move(one));
    }
  }
  return typed;
}

Status LaunchTuning::prepare() {
  SubjectOptions by_rule = settings_.subject;
  by_rule.no_records = true;
  TW_TRY_STATUS(check_paths(by_rule));
  compile_ = TW_TRY(compile_options(by_rule));
  compile_.command = settings_.command;
  if (settings_.measure != "device")
    return fail(ErrorKind::Usage, fmt::format("cannot measure launches by '{}'", settings_.measure),
                "their measure is the cycle simulator", "leave out --measure");
  TW_TRY_STATUS(check_method());
  std::vector<Subject> subjects = TW_TRY(in_types(TW_TRY(load_subjects(by_rule))));
  if (!settings_.output.empty() && subjects.size() > 1)
    return fail(ErrorKind::Usage, "-o names one package",
                fmt::format("there are {} subjects", subjects.size()),
                settings_.dtypes.size() > 1 ? "one of the types, or no package" : "");
  for (Subject& subject : subjects) {
    const double before = elapsed();
    TunedModel model;
    model.compiled = TW_TRY(compile_subject(subject, compile_));
    model.subject = std::move(subject);
    model.compile_seconds = elapsed() - before;
    for (LaunchTask& task : TW_TRY(target().launches(model.compiled, compile_))) {
      const bool known = std::any_of(launches_.begin(), launches_.end(), [&](const auto& other) {
        return other.task.workload == task.workload;
      });
      if (known || task.start.empty()) continue;
      TunedLaunch launch;
      launch.task = std::move(task);
      if (!settings_.dtypes.empty()) launch.task.name = model.subject.name;
      launch.best = launch.task.start.front();
      launches_.push_back(std::move(launch));
    }
    models_.push_back(std::move(model));
  }
  if (launches_.empty())
    return fail(ErrorKind::NotApplicable, "there is nothing to tune",
                fmt::format("no layer runs on {}", compile_.target.name));
  prepared_seconds_ = elapsed();
  if (settings_.dry) return {};
  const std::string& path = settings_.subject.records;
  store_ = TW_TRY(records::open_any_store(record_place(path).name));
  kept_ = std::make_unique<records::GroupedAdds>(store_, nullptr, say_away());
  return {};
}

/// What the compiler tried, and the best of earlier runs.
std::vector<search::Point> LaunchTuning::starts(TunedLaunch& launch) const {
  std::vector<search::Point> points = launch.task.start;
  records::RecordFilter filter;
  filter.workload = launch.task.workload;
  filter.target = launch.task.target;
  filter.compiler = compiler_key();
  filter.ok_only = true;
  auto records = store_->find(filter).value_or(std::vector<records::Record>());
  std::stable_sort(records.begin(), records.end(),
                   [](const auto& a, const auto& b) { return a.cost < b.cost; });
  for (const records::Record& record : records) {
    if (launch.resumed >= kResumed) break;
    const auto point = launch.task.space->find(record.point);
    if (!point || std::find(points.begin(), points.end(), *point) != points.end()) continue;
    points.push_back(*point);
    ++launch.resumed;
  }
  return points;
}

Status LaunchTuning::keep(const TunedLaunch& launch, const std::vector<search::Point>& points,
                          const std::vector<search::Evaluation>& outcomes) {
  std::vector<records::Record> records;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool ok = std::isfinite(outcomes[i].cost);
    records::Record record;
    record.workload = launch.task.workload;
    record.name = launch.task.name;
    record.kind = records::kScheduleKind;
    record.target = launch.task.target;
    record.compiler = compiler_key();
    record.point = launch.task.space->decisions(points[i]);
    record.schedule = launch.task.space->schedule(points[i]);
    record.outcome = ok ? "ok" : "invalid";
    record.reason = outcomes[i].reason;
    record.cost = record.least = ok ? outcomes[i].cost : 0;
    record.unit = "cycles";
    record.readings = 1;
    record.searcher = settings_.method;
    record.seed = static_cast<int64_t>(settings_.subject.seed);
    record.when = tune::utc_now();
    records.push_back(std::move(record));
  }
  return kept_->add(records);
}

Result<std::unique_ptr<search::Searcher>> LaunchTuning::searcher_for(
    const TunedLaunch& launch) const {
  const LaunchSpace& space = *launch.task.space;
  if (settings_.method != kExhaustive)
    return launch_searcher(settings_.method, space.space(), settings_.subject.seed);
  const bool limited = settings_.trials < std::numeric_limits<int64_t>::max();
  RankedPoints ranked = space.ranked(
      limited ? static_cast<size_t>(std::min(settings_.trials, kMostRanked)) : kRanked);
  say(fmt::format("{}: {}", launch.task.name, ranked.remark));
  return search::list_searcher(space.space(), std::move(ranked.points));
}

/// `share`: of the time and the trials that are left.
Status LaunchTuning::search_one(TunedLaunch& launch, double share) {
  const double began = elapsed();
  const auto searcher = TW_TRY(searcher_for(launch));
  const std::vector<search::Point> first = starts(launch);
  Status stored;
  double judging = 0, until = elapsed() + share * rest(0);
  size_t judged = 0;
  const auto evaluate = [&](const std::vector<search::Point>& points) {
    auto outcomes = judge_all(*launch.task.space, points, compile_.jobs);
    if (Status done = keep(launch, points, outcomes); !done && stored) stored = std::move(done);
    judged += points.size();
    judging = (elapsed() - began) / static_cast<double>(judged);
    until = began + share * (elapsed() - began + rest(judging));
    return outcomes;
  };
  const auto progress = std::make_shared<Progress>("tuning");
  search::Budget budget;
  const double left =
      std::max(0.0, static_cast<double>(settings_.trials) - static_cast<double>(trials()));
  budget.trials =
      static_cast<int>(std::min<double>(std::ceil(share * left), std::numeric_limits<int>::max()));
  if (settings_.stall_gain > 0) {
    budget.stall_trials = kStallTrials;
    budget.stall_gain = settings_.stall_gain;
  }
  bool late = false;
  budget.interrupted = [&] {
    late = elapsed() >= until || elapsed() - prepared_seconds_ >= settings_.search_seconds;
    return late || driver::interrupted() || !stored;
  };
  budget.progress = [&](const search::History& history) {
    const search::Trial* best = history.best();
    progress->show(fmt::format(
        "{:.0f} s  {}  {} tried{}", elapsed(), launch.task.name, history.trials().size(),
        best == nullptr
            ? ""
            : fmt::format(", best {:.4g} {}", best->outcome.cost / 1e3, target().unit)));
  };
  search::RunResult result = search::run(*searcher, evaluate, budget, first);
  TW_TRY_STATUS(stored);
  launch.trials = std::move(result.trials);
  launch.stop = result.stop;
  if (result.stop == search::Stop::Interrupted && late && !driver::interrupted())
    launch.stop = search::Stop::Time;
  launch.searched_s = elapsed() - began;
  for (const search::Trial& trial : launch.trials) {
    if (&trial == &launch.trials.front()) launch.untuned = launch.cost = trial.outcome.cost;
    if (trial.outcome.cost >= launch.cost) continue;
    launch.best = trial.point;
    launch.cost = trial.outcome.cost;
  }
  return {};
}

Status LaunchTuning::search() {
  for (size_t i = 0; i < launches_.size(); ++i) {
    TW_TRY_STATUS(search_one(launches_[i], 1 / static_cast<double>(launches_.size() - i)));
    stop_ = launches_[i].stop;
    if (driver::interrupted()) break;
  }
  if (driver::interrupted()) stop_ = search::Stop::Interrupted;
  return kept_->settle();
}

std::optional<records::Record> LaunchTuning::winner(const std::string& workload) const {
  for (const TunedLaunch& launch : launches_) {
    if (launch.task.workload != workload || launch.trials.empty()) continue;
    records::Record record;
    record.workload = workload;
    record.name = launch.task.name;
    record.kind = record.searcher = records::kRaceKind;
    record.target = launch.task.target;
    record.compiler = compiler_key();
    record.schedule = launch.task.space->schedule(launch.best);
    if (launch.better()) record.point = launch.task.space->decisions(launch.best);
    record.outcome = "ok";
    record.cost = record.least = launch.cost;
    record.unit = "cycles";
    record.readings = 1;
    record.seed = static_cast<int64_t>(settings_.subject.seed);
    record.when = tune::utc_now();
    return record;
  }
  return std::nullopt;
}

Status LaunchTuning::decide() {
  // An interrupted run writes what it has; interrupting again ends that too.
  if (driver::interrupted()) interrupt_requested = false;
  compile::CompileOptions tuned = compile_;
  tuned.network = [this](const std::string& workload) { return winner(workload); };
  for (TunedModel& model : models_) {
    ModelGain gain;
    gain.name = model.subject.name;
    gain.before = gain.after = TW_TRY(target().cost(model.compiled, compile_));
    const bool better = std::any_of(launches_.begin(), launches_.end(),
                                    [](const TunedLaunch& launch) { return launch.better(); });
    if (better) {
      model.tuned = TW_TRY(compile_subject(model.subject, tuned));
      gain.after = gain.in_race = TW_TRY(target().cost(*model.tuned, compile_));
      gain.raced = true;
    }
    if (gain.after >= gain.before) {
      gain.after = gain.before;
      model.tuned.reset();
    }
    gains_.push_back(std::move(gain));
  }
  Status written;
  if (const TunedModel& model = models_.at(0); !settings_.output.empty())
    written = save_with_samples(settings_.output, model.subject,
                                model.tuned ? *model.tuned : model.compiled, compile_, "auto");
  std::vector<records::Record> winners;
  for (const TunedLaunch& launch : launches_)
    if (auto record = winner(launch.task.workload)) winners.push_back(*std::move(record));
  TW_TRY_STATUS(keep_verdicts(*kept_, winners, stop_ == search::Stop::Interrupted));
  return written;
}

}  // namespace tilewright::driver
