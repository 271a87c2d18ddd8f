#include "tilewright/search/multi/model_searcher.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tilewright::search {
namespace {

using Eigen::Index;

/// Draws further below the mean than this many deviations are not hoped for.
constexpr double kHope = 5;

}  // namespace

bool ModelSearcher::Promise::operator<(const Promise& other) const {
  return std::tie(careful, value, probability, feasible) <
         std::tie(other.careful, other.value, other.probability, other.feasible);
}

ModelSearcher::ModelSearcher(MultiProblem of, const MultiOptions& options, const How& how)
    : MultiSearcher(std::move(of)),
      options_(options),
      how_(how),
      draws_(problem(), options),
      surrogate_(problem(), how.surrogate) {}

const std::vector<Point>& ModelSearcher::points_of(const Pool& pool) const {
  return pool.points.empty() ? draws_.points() : pool.points;
}

void ModelSearcher::look_again() {
  const std::vector<Point>& points = draws_.points();
  if (listed_.views.inputs.rows() == 0 && !points.empty()) {
    listed_.views = surrogate_.view(points);
    taken_.assign(points.size(), false);
  }
  for (; seen_ < trials().size(); ++seen_) {
    const auto at = std::find(points.begin(), points.end(), trials()[seen_].point);
    if (at != points.end()) taken_[static_cast<size_t>(at - points.begin())] = true;
  }
}

ModelSearcher::Pool ModelSearcher::drawn_pool() {
  Rng rng(mixed_seed(options_.seed, 4, trials().size()));
  std::set<Point> drawn;
  auto add = [&](Point point) {
    if (!tried(point) && (!problem().legal || problem().legal(point)))
      drawn.insert(std::move(point));
  };
  std::vector<Objectives> results;
  std::vector<size_t> rows;
  for (size_t i = 0; i < trials().size(); ++i)
    if (feasible(trials()[i].outcome))
      results.push_back(trials()[i].outcome.objectives), rows.push_back(i);
  for (size_t i : pareto_front(results))
    for (Point& point : problem().space.neighbours(trials()[rows[i]].point)) add(std::move(point));
  for (int i = 0; i < options_.drawn; ++i) add(problem().space.random(rng));
  Pool pool;
  pool.points.assign(drawn.begin(), drawn.end());
  pool.views = surrogate_.view(pool.points);
  return pool;
}

std::vector<Objectives> ModelSearcher::scaled_front(const ObjectiveScale& scale) const {
  std::vector<Objectives> results;
  for (const MultiTrial& trial : trials())
    if (feasible(trial.outcome)) results.push_back(trial.outcome.objectives);
  std::vector<Objectives> front;
  for (size_t i : pareto_front(results)) front.push_back(scale(results[i]));
  return front;
}

ModelSearcher::Promise ModelSearcher::promise(const Improvement& improvement,
                                              const ObjectiveScale& scale, const Beliefs& beliefs,
                                              Index row, bool all_dominated) const {
  const size_t objectives = scale.low.size();
  std::vector<double> mean(objectives), deviation(objectives), best(objectives);
  for (size_t j = 0; j < objectives; ++j) {
    const auto column = static_cast<Index>(j);
    mean[j] = (beliefs.mean(row, column) - scale.low[j]) * scale.unit(j);
    deviation[j] = beliefs.deviation(row, column) * scale.unit(j);
    best[j] = mean[j] - kHope * deviation[j];
  }
  const double met = beliefs.feasible[row];
  Promise promise{met >= how_.careful, 0, 0, met};
  if (all_dominated) {
    promise.probability = met * improvement.probability(mean.data(), deviation.data());
    return promise;
  }
  if (how_.acquisition == Acquisition::Hvpi) {
    if (!improvement.hopeless(mean.data()))
      promise.value = met * improvement.added(mean.data()) *
                      improvement.probability(mean.data(), deviation.data());
  } else if (!improvement.hopeless(best.data())) {
    promise.value = met * improvement.expected(mean.data(), deviation.data());
  }
  // A point that adds nothing is not worth waiting for because it surely meets the limits.
  if (promise.value <= 0) promise.careful = false;
  return promise;
}

std::optional<size_t> ModelSearcher::best_row(const Improvement& improvement,
                                              const ObjectiveScale& scale, const Beliefs& beliefs,
                                              const std::vector<bool>& taken) const {
  std::optional<size_t> best;
  // If no mean promises anything, then what is most likely to lie outside what is dominated.
  for (bool all_dominated : {false, true}) {
    Promise highest;
    for (size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      const Promise here =
          promise(improvement, scale, beliefs, static_cast<Index>(i), all_dominated);
      if (!best || highest < here) highest = here, best = i;
    }
    if (!best || highest.value > 0) break;
    best = all_dominated ? best : std::nullopt;
  }
  return best;
}

std::vector<Point> ModelSearcher::propose(int count) {
  std::vector<Point> batch;
  const size_t wanted = static_cast<size_t>(count), told = trials().size();
  if (told < how_.initial) draws_.fill(*this, batch, std::min(wanted, how_.initial - told));
  if (!batch.empty() || told < how_.initial) return batch;
  Pool drawn;
  if (draws_.listed())
    look_again();
  else
    drawn = drawn_pool();
  const Pool& pool = draws_.listed() ? listed_ : drawn;
  const std::vector<Point>& points = points_of(pool);
  std::vector<bool> taken = draws_.listed() ? taken_ : std::vector<bool>(points.size(), false);
  const Beliefs beliefs = surrogate_.believe(trials(), pool.views);
  const std::optional<ObjectiveScale> known = scale(beliefs);
  // Without a scale nothing counts but meeting the limits: on a scale of no width all points are
  // equal, and an empty front is improved by each.
  const ObjectiveScale scale =
      known.value_or(ObjectiveScale{std::vector<double>(problem().objectives, 0.0),
                                    std::vector<double>(problem().objectives, 0.0)});
  std::vector<Objectives> front = known ? scaled_front(scale) : std::vector<Objectives>();
  const Objectives reference(problem().objectives, kReference);
  while (batch.size() < wanted) {
    const std::optional<size_t> best =
        best_row(Improvement(front, reference), scale, beliefs, taken);
    if (!best) break;
    batch.push_back(points[*best]);
    taken[*best] = true;
    // The rest of the batch is chosen as if the result were as expected.
    Objectives expected(problem().objectives);
    for (size_t j = 0; j < expected.size(); ++j)
      expected[j] =
          (beliefs.mean(static_cast<Index>(*best), static_cast<Index>(j)) - scale.low[j]) *
          scale.unit(j);
    if (known) front.push_back(std::move(expected));
  }
  return batch;
}

}  // namespace tilewright::search
