#include "tilewright/driver/codesign/contest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "tilewright/base/parallel.h"
#include "tilewright/base/statistics.h"
#include "tilewright/codesign/unmatched.h"
#include "tilewright/driver/codesign/goals.h"
#include "tilewright/driver/console.h"
#include "tilewright/runtime/thread_pool.h"
#include "tilewright/search/multi/contest.h"
#include "tilewright/search/multi/draws.h"

namespace tilewright::driver {
namespace {

using codesign::Objective;
using search::Point;

/// A row of a table holds all objectives.
double kept(const codesign::StudyRow& row, Objective objective) {
  return row.trial.outcome.objectives[static_cast<size_t>(
      std::find(kObjectives, std::end(kObjectives), objective) - kObjectives)];
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// All useful points that are not in `rows` yet, evaluated and kept.
Status complete(const SearchSubject& subject, codesign::DesignEvaluator& evaluator,
                codesign::Study& study, std::vector<codesign::StudyRow>& rows) {
  std::set<Point> known;
  for (const codesign::StudyRow& row : rows) known.insert(row.trial.point);
  search::MultiProblem problem{subject.space.points()};
  problem.sharing = codesign::memory_decisions(subject.space);
  const auto useful = codesign::useful_points(subject.space, subject.workload);
  problem.legal = [&](const Point& point) { return useful(point) && !known.contains(point); };
  const std::vector<Point> points = search::points_that_share(problem);
  const SearchSubject all{
      {}, {}, subject.space, {{std::begin(kObjectives), std::end(kObjectives)}, {}}};
  Progress progress("codesign");
  constexpr size_t kAtOnce = 512;
  for (size_t from = 0; from < points.size() && !interrupted(); from += kAtOnce) {
    const std::vector<Point> part(
        points.begin() + static_cast<std::ptrdiff_t>(from),
        points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), from + kAtOnce)));
    const std::vector<search::MultiOutcome> outcomes = evaluate_designs(all, evaluator, part);
    std::vector<codesign::StudyRow> fresh;
    for (size_t i = 0; i < part.size(); ++i)
      fresh.push_back(
          {{part[i], outcomes[i], 0}, codesign::to_toml(subject.space.hardware(part[i]))});
    TW_TRY_STATUS(study.add(fresh));
    rows.insert(rows.end(), fresh.begin(), fresh.end());
    progress.update(static_cast<int64_t>(rows.size()),
                    static_cast<int64_t>(points.size() + known.size()), "designs");
  }
  if (interrupted())
    return fail(ErrorKind::Interrupted, "interrupted before the whole space was evaluated",
                fmt::format("{} designs are kept", rows.size()), "the same line goes on");
  return {};
}

/// The rows under the goals of a contest.
search::ContestTable table_of(const SearchSubject& subject,
                              const codesign::DesignEvaluator& evaluator,
                              const std::vector<codesign::StudyRow>& rows) {
  search::ContestTable table{
      codesign::make_problem(subject.space, evaluator, subject.goals), {}, {}};
  for (const codesign::StudyRow& row : rows) {
    search::MultiOutcome outcome;
    for (const Objective objective : subject.goals.objectives)
      outcome.objectives.push_back(kept(row, objective));
    for (const codesign::Limit& limit : subject.goals.limits) {
      const double value = limit.unit == codesign::LimitUnit::Seconds
                               ? kept(row, Objective::Edp) / kept(row, Objective::Energy)
                               : kept(row, limit.objective);
      outcome.violations.push_back(std::log10(value / limit.value));
    }
    table.points.push_back(row.trial.point);
    table.outcomes.push_back(std::move(outcome));
  }
  // What the prior says of each point is the same for all seeds.
  std::vector<search::PriorValue> values(rows.size());
  for_each_part(rows.size(), runtime::default_threads(),
                [&](size_t i, size_t) { values[i] = table.problem.prior.at(table.points[i]); });
  auto known = std::make_shared<std::map<Point, search::PriorValue>>();
  for (size_t i = 0; i < rows.size(); ++i) known->emplace(table.points[i], std::move(values[i]));
  table.problem.prior.at = [known](const Point& point) { return known->at(point); };
  return table;
}

std::vector<std::pair<double, double>> prior_off(const search::ContestTable& table) {
  std::vector<std::pair<double, double>> off;
  const auto count = static_cast<double>(table.points.size());
  for (size_t j = 0; j < table.problem.objectives; ++j) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < table.points.size(); ++i) {
      const double log = std::log10(table.outcomes[i].objectives[j]) -
                         table.problem.prior.at(table.points[i]).log_objectives[j];
      sum += log, squares += log * log;
    }
    off.emplace_back(sum / count,
                     std::sqrt(std::max(0.0, squares / count - sum * sum / count / count)));
  }
  return off;
}

struct Replays {
  std::vector<search::ContestRun> runs;
  double seconds = 0;
};

Result<Replays> replay(const search::ContestTable& table, const ContestSettings& settings,
                       const std::string& named, int evaluations) {
  const size_t colon = named.find(':');
  const std::string method = named.substr(0, colon);
  search::MultiOptions options;
  options.initial = std::max(2, (evaluations + 2) / 4);
  if (colon != std::string::npos) {
    options.acquisition = search::acquisition_named(named.substr(colon + 1));
    if (!options.acquisition)
      return fail(ErrorKind::Usage, fmt::format("'{}' names no acquisition", named), {},
                  "--methods mobo:hvpi,mobo:ehvi");
  }
  const auto count = static_cast<size_t>(settings.seeds);
  std::vector<Result<std::vector<search::ContestRun>>> found(
      count, Result<std::vector<search::ContestRun>>(std::vector<search::ContestRun>()));
  std::vector<double> seconds(count);
  for_each_part(count, runtime::default_threads(), [&](size_t seed, size_t) {
    if (interrupted()) return;
    const auto start = std::chrono::steady_clock::now();
    found[seed] = search::contest(table, method, options, {seed}, evaluations);
    seconds[seed] = seconds_since(start);
  });
  TW_TRY_STATUS(check_interrupt());
  Replays replays;
  replays.seconds = median(seconds);
  for (auto& one : found) replays.runs.push_back(std::move(TW_TRY(std::move(one))[0]));
  return replays;
}

ContestLine line_of(const std::string& method, int evaluations, const Replays& replays) {
  ContestLine line{method, evaluations};
  const auto n = static_cast<size_t>(evaluations);
  const std::vector<double> shares = search::shares_after(replays.runs, n);
  line.median = median(shares);
  line.worst = *std::min_element(shares.begin(), shares.end());
  line.best = *std::max_element(shares.begin(), shares.end());
  const size_t initial =
      method.starts_with("ours") ? 0 : static_cast<size_t>((evaluations + 2) / 4);
  line.feasible = search::feasible_share(replays.runs, method == "random" ? 0 : initial);
  line.seconds = replays.seconds;
  return line;
}

}  // namespace

Result<ContestResult> run_contest(const SearchSubject& subject, const ContestSettings& settings,
                                  const std::string& folder) {
  TW_TRY_STATUS(check_subject(subject));
  TW_TRY_STATUS(make_folder(folder));
  codesign::StudyKey key = study_key(subject, {});
  key.erase("limits");
  key["objectives"] = "all";
  codesign::Study study = TW_TRY(codesign::Study::open(folder + "/table.sqlite", key));
  std::vector<codesign::StudyRow> rows = TW_TRY(study.rows());
  codesign::DesignEvaluator evaluator(subject.workload, subject.space.file().technology);
  ContestResult result;
  const auto start = std::chrono::steady_clock::now();
  TW_TRY_STATUS(complete(subject, evaluator, study, rows));
  result.table_seconds = seconds_since(start);

  const search::ContestTable table = table_of(subject, evaluator, rows);
  const search::FrontScore score = TW_TRY(search::true_front(table));
  result.points = rows.size();
  result.feasible = static_cast<size_t>(
      std::count_if(table.outcomes.begin(), table.outcomes.end(),
                    [](const search::MultiOutcome& outcome) { return search::feasible(outcome); }));
  result.front = score.front().size();
  result.prior_off = prior_off(table);
  for (const int budget : settings.evaluations)
    result.ceilings.push_back(score.ceiling(static_cast<size_t>(budget)).back());
  const int most = *std::max_element(settings.evaluations.begin(), settings.evaluations.end());
  std::vector<std::pair<ContestLine, Replays>> finals;
  for (const std::string& method : settings.methods)
    for (const int budget : settings.evaluations) {
      Replays replays = TW_TRY(replay(table, settings, method, budget));
      result.lines.push_back(line_of(method, budget, replays));
      if (budget == most) finals.emplace_back(result.lines.back(), std::move(replays));
    }
  for (const auto& [line, replays] : finals)
    for (const auto& [other, _] : finals)
      if (line.method != other.method)
        result.races.push_back(
            {line.method, other.method, search::evaluations_to(replays.runs, other.median)});
  return result;
}

}  // namespace tilewright::driver
