// Of each task's finalists, up to three that were faster than the rules' schedule when measured, by
// the median and by the fastest reading. They run in turn with it, 21 rounds; the fastest wins if
// it takes less than 99 % of its time. Without a race, readings of different moments are compared,
// and 97 % are asked for.
#include "tilewright/driver/tuning/final_race.h"

#include <cmath>
#include <memory>
#include <utility>

#include "tilewright/records/workload.h"

namespace tilewright::driver {
namespace {

constexpr int kRoundsOfFinal = 21;
constexpr size_t kRunners = 3;
constexpr double kWins = 0.99;         ///< of the rules' time, in a race
constexpr double kWinsUnraced = 0.97;  ///< by readings of different moments

using tune::Finalist;

/// The finalists that looked faster than the rules' schedule when they were measured.
std::vector<const Finalist*> challengers(const tune::TaskState& state) {
  std::vector<const Finalist*> found;
  for (const Finalist& finalist : state.finalists)
    if (found.size() < kRunners && finalist.reading.cost < state.rule.cost &&
        finalist.reading.least < state.rule.least)
      found.push_back(&finalist);
  return found;
}

/// A task whose schedule is open.
struct Contest {
  size_t task = 0;
  std::vector<const Finalist*> runners;
};

/// The fastest in a race against the rules' schedule, and its ratio; null where none wins, or the
/// race fails.
const Finalist* winner_of(const Result<std::vector<double>>& ratios,
                          const std::vector<const Finalist*>& runners, double& ratio) {
  if (!ratios || ratios->size() != runners.size() + 1) return nullptr;
  const Finalist* winner = nullptr;
  ratio = kWins;
  for (size_t i = 0; i < runners.size(); ++i)
    if ((*ratios)[i + 1] < ratio) ratio = (*ratios)[i + 1], winner = runners[i];
  return winner;
}

/// What the races of all contests came to; absent for those that had none.
std::vector<measure::Raced> run_races(const tune::Tuner& tuner,
                                      const std::vector<Contest>& contests,
                                      measure::Measurer* measurer,
                                      const std::function<bool()>& time_left) {
  if (measurer == nullptr) return std::vector<measure::Raced>(contests.size());
  std::vector<measure::Race> races;
  for (const Contest& contest : contests) {
    const tune::TunerTask& task = tuner.tasks()[contest.task];
    measure::Race& race = races.emplace_back(measure::Race{&task.task, {task.rule}});
    for (const Finalist* runner : contest.runners) race.traces.push_back(runner->trace);
  }
  return measurer->races(races, kRoundsOfFinal, time_left);
}

/// Lets the winner of a contest be the one to keep, if there is one.
void settle(const Contest& contest, const tune::TaskState& state, const measure::Raced& raced,
            bool exact, Verdict& verdict) {
  const Finalist* winner = nullptr;
  double ratio = 1;
  if (raced) {
    winner = winner_of(*raced, contest.runners, ratio);
  } else if (const measure::Reading& best = contest.runners[0]->reading;
             best.cost < (exact ? 1 : kWinsUnraced) * state.rule.cost) {
    winner = contest.runners[0];
    ratio = best.cost / state.rule.cost;
  }
  if (winner == nullptr) return;
  verdict.better = true;
  verdict.ratio = ratio;
  records::Record& record = verdict.record;
  record.point = winner->point;
  record.schedule = schedule::print(winner->trace);
  record.cost = ratio * state.rule.cost;
  record.least = winner->reading.least;
  record.readings = winner->reading.readings;
}

}  // namespace

std::vector<Verdict> final_races(const tune::Tuner& tuner, const std::string& compiler,
                                 const std::string& when, measure::Measurer* measurer,
                                 const std::function<bool()>& time_left, bool exact) {
  std::vector<Verdict> verdicts;
  std::vector<Contest> contests;
  for (size_t i = 0; i < tuner.tasks().size(); ++i) {
    const tune::TunerTask& task = tuner.tasks()[i];
    const tune::TaskState& state = tuner.states()[i];
    Verdict& verdict = verdicts.emplace_back();
    if (state.rule.kind != measure::OutcomeKind::Ok || state.rule.readings == 0) continue;
    verdict.known = true;
    verdict.rule = schedule::print(task.rule);
    verdict.rule_cost = state.rule.cost;
    records::Record& record = verdict.record;
    record = task.task.record();
    record.workload = task.task.key();
    record.kind = records::kRaceKind;
    record.compiler = compiler;
    record.outcome = "ok";
    record.searcher = "race";
    record.when = when;
    give_up(verdict);
    if (std::vector<const Finalist*> runners = challengers(state); !runners.empty())
      contests.push_back({i, std::move(runners)});
  }
  const std::vector<measure::Raced> raced = run_races(tuner, contests, measurer, time_left);
  for (size_t i = 0; i < contests.size(); ++i)
    settle(contests[i], tuner.states()[contests[i].task], raced[i], exact,
           verdicts[contests[i].task]);
  return verdicts;
}

void give_up(Verdict& verdict) {
  verdict.better = false;
  verdict.ratio = 1;
  verdict.record.point.clear();
  verdict.record.schedule = verdict.rule;
  verdict.record.cost = verdict.rule_cost;
}

compile::FindRecord find_among(const std::vector<Verdict>& verdicts) {
  const auto records = std::make_shared<std::map<std::string, records::Record>>();
  for (const Verdict& verdict : verdicts)
    if (verdict.known) (*records)[verdict.record.workload] = verdict.record;
  return [records](const Func& func) -> std::optional<records::Record> {
    const auto found = records->find(records::workload_key(records::workload_text(func)));
    return found == records->end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace tilewright::driver
