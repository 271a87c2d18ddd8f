#include "tilewright/search/multi/contest.h"

#include <algorithm>
#include <map>

#include "tilewright/base/check.h"
#include "tilewright/base/statistics.h"

namespace tilewright::search {
namespace {

std::vector<Objectives> feasible_objectives(const std::vector<MultiOutcome>& outcomes) {
  std::vector<Objectives> found;
  for (const MultiOutcome& outcome : outcomes)
    if (feasible(outcome)) found.push_back(outcome.objectives);
  return found;
}

ContestRun scored(const FrontScore& score, uint64_t seed, const std::vector<MultiTrial>& trials) {
  ContestRun run{seed, trials, {}};
  std::vector<Objectives> chosen;
  for (const MultiTrial& trial : trials) {
    const Objectives& objectives = trial.outcome.objectives;
    const bool adds = feasible(trial.outcome) &&
                      std::none_of(chosen.begin(), chosen.end(), [&](const Objectives& known) {
                        return dominates(known, objectives);
                      });
    if (adds) chosen.push_back(objectives);
    run.shares.push_back(adds ? score.share(chosen) : run.shares.empty() ? 0 : run.shares.back());
  }
  return run;
}

}  // namespace

Result<FrontScore> true_front(const ContestTable& table) {
  const std::vector<Objectives> points = feasible_objectives(table.outcomes);
  if (points.empty())
    return fail(ErrorKind::Capacity, "no point of the table meets the limits",
                fmt::format("{} points", table.points.size()));
  return FrontScore(points);
}

Result<std::vector<ContestRun>> contest(const ContestTable& table, const std::string& method,
                                        const MultiOptions& options,
                                        const std::vector<uint64_t>& seeds, int evaluations) {
  TW_CHECK(table.points.size() == table.outcomes.size(), "{} points, {} outcomes",
           table.points.size(), table.outcomes.size());
  const FrontScore score = TW_TRY(true_front(table));
  std::map<Point, size_t> index;
  for (size_t i = 0; i < table.points.size(); ++i) index.emplace(table.points[i], i);
  MultiProblem problem = table.problem;
  problem.legal = [&index](const Point& point) { return index.contains(point); };
  const MultiEvaluate look_up = [&](const std::vector<Point>& points) {
    std::vector<MultiOutcome> outcomes;
    for (const Point& point : points) outcomes.push_back(table.outcomes[index.at(point)]);
    return outcomes;
  };
  std::vector<ContestRun> runs;
  for (uint64_t seed : seeds) {
    MultiOptions own = options;
    own.seed = seed;
    const std::unique_ptr<MultiSearcher> searcher = TW_TRY(multi_searcher(method, problem, own));
    MultiBudget budget;
    budget.evaluations = evaluations;
    run(*searcher, look_up, budget);
    runs.push_back(scored(score, seed, searcher->trials()));
  }
  return runs;
}

std::vector<double> shares_after(const std::vector<ContestRun>& runs, size_t evaluations) {
  std::vector<double> shares;
  for (const ContestRun& run : runs) {
    const size_t at = std::min(evaluations, run.shares.size());
    shares.push_back(at == 0 ? 0 : run.shares[at - 1]);
  }
  return shares;
}

std::optional<size_t> evaluations_to(const std::vector<ContestRun>& runs, double share) {
  size_t longest = 0;
  for (const ContestRun& run : runs) longest = std::max(longest, run.shares.size());
  for (size_t n = 1; n <= longest; ++n)
    if (median(shares_after(runs, n)) >= share) return n;
  return std::nullopt;
}

double feasible_share(const std::vector<ContestRun>& runs, size_t skip) {
  size_t all = 0, met = 0;
  for (const ContestRun& run : runs)
    for (size_t i = skip; i < run.trials.size(); ++i) {
      ++all;
      met += feasible(run.trials[i].outcome) ? 1 : 0;
    }
  return all == 0 ? 1 : static_cast<double>(met) / static_cast<double>(all);
}

}  // namespace tilewright::search
