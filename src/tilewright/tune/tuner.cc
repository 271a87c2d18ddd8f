// The search over all kernels of all models within one budget.
//
//   1. Each task (kernel) measures the rule's schedule and its first 16 candidates.
//   2. Each further batch of 8 goes to the task with the largest expected gain per second:
//      uses * cost * (0.7 * recent gain + 0.3 * hope); hope falls with each batch without a gain.
//   3. A task that has tried all points of its space goes on to the next space, or is finished.
//
// Each schedule is measured once (twice if it is still being measured in another batch when it is
// proposed again); a point that gives a known schedule gets its reading. The
// cheapest few of each task are kept as finalists, which driver/tuning/final_race.h compares again.
#include "tilewright/tune/tuner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "tilewright/tune/evaluators.h"
#include "tilewright/tune/transfer.h"

namespace tilewright::tune {
namespace {

constexpr size_t kFinalists = 4;
constexpr double kCompileSeconds = 5e-3;  ///< of a candidate, nominal

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

/// What a reading takes, by its own numbers: the same whenever it is replayed.
double Tuner::nominal_seconds(const measure::Reading& reading) {
  const double run = std::max(reading.cost * 1e-9, 2e-4);
  return kCompileSeconds + 2 * run * static_cast<double>(std::max<int64_t>(reading.readings, 1));
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

double TaskState::best() const {
  const double own = finalists.empty() ? search::kInvalid : finalists.front().reading.cost;
  const double untuned = rule.kind == measure::OutcomeKind::Ok ? rule.cost : search::kInvalid;
  const double least = std::min(own, untuned);
  return std::isfinite(least) ? least : 0;
}

Tuner::Tuner(std::vector<TunerTask> tasks, TunerOptions options)
    : tasks_(std::move(tasks)),
      options_(std::move(options)),
      states_(tasks_.size()),
      paces_(tasks_.size()),
      start_(wall_seconds()) {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    paces_[i].key = tasks_[i].task.key();
    resume(i);
  }
}

double Tuner::seconds() const {
  return options_.nominal_time ? nominal_seconds_ : wall_seconds() - start_;
}

namespace {

double in_use(const TunerTask& task) {
  return task.spare ? 0 : static_cast<double>(task.task.uses);
}

}  // namespace

double Tuner::untuned() const {
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i)
    sum +=
        in_use(tasks_[i]) * (states_[i].rule.cost > 0 ? states_[i].rule.cost : tasks_[i].expected);
  return sum;
}

double Tuner::tuned() const {
  double sum = 0;
  for (size_t i = 0; i < tasks_.size(); ++i)
    sum += in_use(tasks_[i]) * (states_[i].best() > 0 ? states_[i].best() : tasks_[i].expected);
  return sum;
}

Result<search::Stop> Tuner::run() {
  start_ = wall_seconds();
  return options_.batches == nullptr ? run_one_by_one() : run_side_by_side();
}

Result<search::Stop> Tuner::run_one_by_one() {
  while (!stop()) {
    const size_t index = next();
    if (index == tasks_.size()) return search::Stop::Exhausted;
    current_ = index;
    if (!states_[index].visited) {
      open(index);
      TW_TRY_STATUS(measure_rule(index));
    } else {
      TW_TRY_STATUS(step(index));
    }
    if (options_.progress) options_.progress();
  }
  return stop_;
}

bool Tuner::stop() {
  if (options_.interrupted && options_.interrupted())
    return stop_ = search::Stop::Interrupted, true;
  if (trials_ >= options_.trials) return stop_ = search::Stop::Trials, true;
  // However short the time, something is tried; devices of others may never come.
  if ((trials_ > 0 || options_.batches != nullptr) && out_of_time())
    return stop_ = search::Stop::Time, true;
  if (options_.stall_gain <= 0) return false;
  const double now = tuned();
  if (now < reference_ * (1 - options_.stall_gain)) reference_ = now, since_gain_ = trials_;
  const auto patience = std::max<int64_t>(64, 16 * static_cast<int64_t>(tasks_.size()));
  return trials_ - since_gain_ >= patience ? (stop_ = search::Stop::Stall, true) : false;
}

bool Tuner::out_of_time() const { return seconds() >= options_.seconds; }

/// Tasks that have not had their first trials come first, those in use before the spare ones and
/// the most expensive before the others; then the one with the most to gain. What is judged already
/// counts: a task of which n batches are out is worth an (n + 1)th of what it is else, so devices
/// share out among tasks.
size_t Tuner::next() const {
  size_t best = tasks_.size();
  double most = -1;
  int most_urgent = -1;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskState& state = states_[i];
    const Pace& pace = paces_[i];
    if (state.exhausted || pace.waits) continue;
    const int64_t seen =
        state.resumed + static_cast<int64_t>(state.trials.size()) + pace.out_points;
    const bool is_first = !state.visited || seen < options_.first;
    const double cost = state.best() > 0 ? state.best() : tasks_[i].expected;
    const double value =
        (is_first ? static_cast<double>(tasks_[i].task.uses) * cost : merit(i)) / (1 + pace.out);
    const int urgent = !is_first ? 0 : tasks_[i].spare ? 1 : 2;
    if (urgent > most_urgent || (urgent == most_urgent && value > most))
      best = i, most = value, most_urgent = urgent;
  }
  return best;
}

/// Expected gain of the next batch per second: what recent batches gained, and hope that falls with
/// every batch that gained nothing.
double Tuner::merit(size_t index) const {
  const Pace& pace = paces_[index];
  const double hope = 0.1 / (1 + pace.idle);
  const double gain = 0.7 * pace.recent_gain + 0.3 * hope;
  return static_cast<double>(tasks_[index].task.uses) * states_[index].best() * gain /
         std::max(pace.batch_seconds, kCompileSeconds);
}

void Tuner::open(size_t index) {
  TaskState& state = states_[index];
  state.visited = true;
  Result<std::unique_ptr<measure::Evaluator>> evaluator = tasks_[index].evaluator();
  if (evaluator) {
    paces_[index].evaluator = *std::move(evaluator);
    return;
  }
  state.problem = evaluator.error().what;
  if (!evaluator.error().why.empty()) state.problem += ": " + evaluator.error().why;
  state.exhausted = true;
}

Status Tuner::measure_rule(size_t index) {
  TaskState& state = states_[index];
  if (state.exhausted || state.rule.readings > 0) return {};
  const TunerTask& task = tasks_[index];
  state.rule = paces_[index].evaluator->evaluate({{{}, task.rule}}).at(0);
  nominal_seconds_ += nominal_seconds(state.rule);
  const std::string schedule = schedule::print(task.rule);
  if (state.rule.kind == measure::OutcomeKind::Lost) return {};
  paces_[index].measured.emplace(schedule, state.rule);
  if (!options_.keep) return {};
  records::Record row = record(index, {}, schedule, state.rule);
  row.kind = records::kRuleKind;
  row.searcher = "rule";
  return options_.keep({row});
}

Tuner::Batch::Batch(std::vector<search::Point> all)
    : points(std::move(all)),
      traces(points.size()),
      texts(points.size()),
      readings(points.size()) {}

void Tuner::Batch::shorten(size_t size) {
  points.resize(size), traces.resize(size), texts.resize(size), readings.resize(size);
}

/// One batch of a task. Points for which there was no time any more are dropped from its end.
Status Tuner::step(size_t index) {
  const int64_t left = options_.trials - trials_;
  Batch batch(proposals(index, static_cast<int>(std::min<int64_t>(options_.batch, left))));
  if (batch.points.empty()) return widen(index);
  size_t at = 0;
  const auto next = [&]() -> std::optional<measure::Candidate> {
    while (at < batch.points.size() && (at == 0 || !out_of_time()))
      if (std::optional<measure::Candidate> made = candidate(index, batch, at++)) return made;
    return std::nullopt;
  };
  const std::vector<measure::Reading> found = paces_[index].evaluator->evaluate_each(next);
  tasks_[index].searcher->give_up(
      {batch.points.begin() + static_cast<long>(at), batch.points.end()});
  batch.shorten(at);
  settle(index, batch, found);
  return account(index, batch);
}

/// The next space of a task that has seen all of this one.
Status Tuner::widen(size_t index) {
  TunerTask& task = tasks_[index];
  states_[index].spaces.push_back(task.space_name);
  task.start.clear();
  if (!task.widen || !TW_TRY(task.widen(task))) {
    states_[index].exhausted = true;
    return {};
  }
  paces_[index].idle = 0;
  tell_known(index);
  return {};
}

std::vector<search::Point> Tuner::proposals(size_t index, int count) {
  const TunerTask& task = tasks_[index];
  std::vector<search::Point> points;
  for (size_t& i = paces_[index].started;
       i < task.start.size() && points.size() < static_cast<size_t>(count); ++i)
    if (!task.searcher->history().tried(task.start[i])) points.push_back(task.start[i]);
  if (points.empty()) return task.searcher->propose(count);
  task.searcher->expect(points);
  return points;
}

/// What is to be judged of the point at a place; absent where it has no schedule, or a known one.
std::optional<measure::Candidate> Tuner::candidate(size_t index, Batch& batch, size_t place) const {
  const search::Point& point = batch.points[place];
  Result<schedule::Trace> trace = tasks_[index].space->trace(point);
  if (!trace) {
    const Error& error = trace.error();
    batch.readings[place].kind = measure::OutcomeKind::Invalid;
    batch.readings[place].reason = error.why.empty() ? error.what : error.what + ": " + error.why;
    return std::nullopt;
  }
  batch.traces[place] = *std::move(trace);
  const std::string& text = batch.texts[place] = schedule::print(batch.traces[place]);
  if (paces_[index].measured.contains(text) ||
      std::any_of(batch.asked.begin(), batch.asked.end(),
                  [&](size_t other) { return batch.texts[other] == text; }))
    return std::nullopt;
  batch.asked.push_back(place);
  return measure::Candidate{point, batch.traces[place]};
}

/// Gives all points of a batch their readings; `found`: of those that were judged.
void Tuner::settle(size_t index, Batch& batch, const std::vector<measure::Reading>& found) {
  Pace& pace = paces_[index];
  for (size_t i = 0; i < found.size(); ++i) {
    nominal_seconds_ += nominal_seconds(found[i]);
    pace.measured.emplace(batch.texts[batch.asked[i]], found[i]);
  }
  for (size_t i = 0; i < batch.points.size(); ++i)
    if (const auto known = pace.measured.find(batch.texts[i]);
        batch.readings[i].kind != measure::OutcomeKind::Invalid && known != pace.measured.end())
      batch.readings[i] = known->second;
  if (options_.batches == nullptr) return;
  // That a device was lost says nothing of a schedule: another point may try it again.
  for (const size_t place : batch.asked)
    if (const auto known = pace.measured.find(batch.texts[place]);
        known != pace.measured.end() && known->second.kind == measure::OutcomeKind::Lost)
      pace.measured.erase(known);
}

/// Tells the searcher, keeps records, and notes what the batch brought.
Status Tuner::account(size_t index, const Batch& batch) {
  TaskState& state = states_[index];
  Pace& pace = paces_[index];
  const bool leaving = options_.interrupted && options_.interrupted();
  const double before = state.best(), now = seconds();
  double took = 0;
  std::vector<search::Trial> told;
  std::vector<records::Record> rows;
  for (size_t i = 0; i < batch.points.size(); ++i) {
    const search::Point& point = batch.points[i];
    const measure::Reading& reading = batch.readings[i];
    if (leaving && reading.kind == measure::OutcomeKind::Lost) continue;  // not its own fault
    const bool ok = reading.kind == measure::OutcomeKind::Ok;
    told.push_back({point, {ok ? reading.cost : search::kInvalid, reading.reason}, now});
    state.trials.push_back(
        {now, point_text(index, point), tasks_[index].space->prior(point), reading});
    ++state.outcomes[reading.kind];
    if (!ok) ++state.reasons[reading.reason];
    took += nominal_seconds(reading);
    const bool kept = options_.batches != nullptr &&
                      std::find(batch.asked.begin(), batch.asked.end(), i) != batch.asked.end();
    if (!kept) rows.push_back(record(index, point, schedule::print(batch.traces[i]), reading));
    if (ok) enter(state, {batch.traces[i], state.trials.back().point, reading});
  }
  trials_ += static_cast<int64_t>(told.size());
  tasks_[index].searcher->tell(told);
  const double after = state.best();
  const double gain = before > 0 ? std::max(0.0, 1 - after / before) : 0;
  pace.recent_gain = 0.5 * pace.recent_gain + 0.5 * gain;
  pace.idle = gain > 0.005 ? 0 : pace.idle + 1;
  pace.batch_seconds = took;
  return options_.keep && !rows.empty() ? options_.keep(rows) : Status();
}

/// Tells what earlier runs measured.
void Tuner::resume(size_t index) {
  const TunerTask& task = tasks_[index];
  TaskState& state = states_[index];
  for (const records::Record& known : task.known) {
    const measure::Reading reading = reading_of(known);
    const bool ok = reading.kind == measure::OutcomeKind::Ok;
    const bool is_rule = known.kind == records::kRuleKind;
    if (is_rule && ok) state.rule = reading;
    if (known.kind == records::kRaceKind || reading.kind == measure::OutcomeKind::Lost) continue;
    if (ok && !is_rule)
      if (Result<schedule::Trace> trace = schedule::parse_trace(known.schedule))
        enter(state, {*std::move(trace), known.point, reading});
    if (!known.schedule.empty() || ok) paces_[index].measured.emplace(known.schedule, reading);
  }
  tell_known(index);
}

/// Tells the searcher of a task what earlier runs measured in its space.
void Tuner::tell_known(size_t index) {
  const TunerTask& task = tasks_[index];
  const std::string prefix = task.space_name + ": ";
  std::vector<search::Trial> told;
  for (const records::Record& known : task.known) {
    const measure::Reading reading = reading_of(known);
    if (known.kind == records::kRaceKind || reading.kind == measure::OutcomeKind::Lost ||
        !known.point.starts_with(prefix))
      continue;
    const std::optional<search::Point> point =
        task.space->space().find(std::string_view(known.point).substr(prefix.size()));
    const double cost = reading.kind == measure::OutcomeKind::Ok ? reading.cost : search::kInvalid;
    if (point) told.push_back({*point, {cost, reading.reason}, 0});
  }
  states_[index].resumed += static_cast<int64_t>(told.size());
  task.searcher->tell(told);
}

std::string Tuner::point_text(size_t index, const search::Point& point) const {
  const TunerTask& task = tasks_[index];
  return fmt::format("{}: {}", task.space_name, task.space->space().text(point));
}

void Tuner::enter(TaskState& state, Finalist finalist) const {
  std::vector<Finalist>& all = state.finalists;
  if (all.size() == kFinalists && finalist.reading.cost >= all.back().reading.cost) return;
  const std::string text = schedule::print(finalist.trace);
  for (const Finalist& other : all)
    if (schedule::print(other.trace) == text) return;
  const auto place = std::upper_bound(
      all.begin(), all.end(), finalist.reading.cost,
      [](double cost, const Finalist& other) { return cost < other.reading.cost; });
  all.insert(place, std::move(finalist));
  if (all.size() > kFinalists) all.pop_back();
}

records::Record Tuner::record(size_t index, const search::Point& point, const std::string& schedule,
                              const measure::Reading& reading) const {
  const TunerTask& task = tasks_[index];
  records::Record row = task.task.record();
  row.workload = paces_[index].key;
  row.kind = records::kScheduleKind;
  row.compiler = options_.compiler;
  if (!point.empty()) row.point = point_text(index, point);
  row.schedule = schedule;
  row.outcome = to_string(reading.kind);
  row.reason = reading.reason;
  row.cost = reading.cost;
  row.least = reading.least;
  row.spread = reading.spread;
  row.readings = reading.readings;
  row.searcher = options_.searcher_name;
  row.seed = static_cast<int64_t>(options_.seed);
  row.when = utc_now();
  return row;
}

}  // namespace tilewright::tune
