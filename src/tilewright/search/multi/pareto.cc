#include "tilewright/search/multi/pareto.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tilewright/base/check.h"

namespace tilewright::search {

double total_violation(const MultiOutcome& outcome) {
  double total = 0;
  for (double violation : outcome.violations) total += std::max(0.0, violation);
  return total;
}

bool feasible(const MultiOutcome& outcome) {
  return !outcome.objectives.empty() && total_violation(outcome) <= 0;
}

bool dominates(const Objectives& a, const Objectives& b) {
  TW_CHECK(a.size() == b.size(), "{} objectives against {}", a.size(), b.size());
  bool lower = false;
  for (size_t j = 0; j < a.size(); ++j) {
    if (a[j] > b[j]) return false;
    lower |= a[j] < b[j];
  }
  return lower;
}

bool dominates(const MultiOutcome& a, const MultiOutcome& b) {
  if (a.objectives.empty() || b.objectives.empty())
    return !a.objectives.empty() && b.objectives.empty();
  const double over_a = total_violation(a), over_b = total_violation(b);
  if (over_a > 0 || over_b > 0) return over_a < over_b;
  return dominates(a.objectives, b.objectives);
}

std::vector<std::vector<size_t>> non_dominated_sort(const std::vector<MultiOutcome>& outcomes) {
  const size_t count = outcomes.size();
  std::vector<std::vector<size_t>> worse(count);
  std::vector<size_t> dominators(count, 0);
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b)
      if (a != b && dominates(outcomes[a], outcomes[b])) worse[a].push_back(b), ++dominators[b];
  std::vector<std::vector<size_t>> ranks;
  std::vector<size_t> rank;
  for (size_t i = 0; i < count; ++i)
    if (dominators[i] == 0) rank.push_back(i);
  while (!rank.empty()) {
    std::vector<size_t> next;
    for (size_t a : rank)
      for (size_t b : worse[a])
        if (--dominators[b] == 0) next.push_back(b);
    std::sort(next.begin(), next.end());
    ranks.push_back(std::move(rank));
    rank = std::move(next);
  }
  return ranks;
}

std::vector<double> crowding_distances(const std::vector<MultiOutcome>& outcomes,
                                       const std::vector<size_t>& rank) {
  std::vector<double> distances(rank.size(), 0.0);
  if (rank.empty()) return distances;
  const size_t objectives = outcomes[rank[0]].objectives.size();
  std::vector<size_t> order(rank.size());
  for (size_t j = 0; j < objectives; ++j) {
    auto value = [&](size_t i) { return outcomes[rank[i]].objectives[j]; };
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return value(a) < value(b); });
    const double range = value(order.back()) - value(order.front());
    distances[order.front()] = distances[order.back()] = std::numeric_limits<double>::infinity();
    for (size_t i = 1; range > 0 && i + 1 < order.size(); ++i)
      distances[order[i]] += (value(order[i + 1]) - value(order[i - 1])) / range;
  }
  return distances;
}

std::vector<size_t> pareto_front(const std::vector<Objectives>& points) {
  // In lexicographic order a point is dominated by earlier ones only, and then by one of the front.
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return points[a] < points[b]; });
  std::vector<size_t> front;
  for (size_t i : order) {
    bool dominated = false;
    for (size_t k = 0; k < front.size() && !dominated; ++k) {
      dominated = dominates(points[front[k]], points[i]);
      // What dominates one point is likely to dominate the next: asked sooner.
      if (dominated && k > 0) std::swap(front[k], front[k / 2]);
    }
    if (!dominated) front.push_back(i);
  }
  std::sort(front.begin(), front.end());
  return front;
}

}  // namespace tilewright::search
