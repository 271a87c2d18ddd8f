#include "tilewright/search/starts.h"

#include <cmath>

#include "tilewright/search/searchers.h"

namespace tilewright::search {

double start_probability(double e, double best, double gamma) {
  return std::exp(-gamma * (best - e) / best);
}

const Trial* draw_start(const History& history, double gamma, Rng& rng,
                        const std::function<bool(const Trial&)>& usable) {
  if (history.best() == nullptr) return nullptr;
  const double best = 1 / history.best()->outcome.cost;
  std::vector<std::pair<double, const Trial*>> weights;
  double total = 0;
  for (const Trial& trial : history.trials()) {
    if (!std::isfinite(trial.outcome.cost) || !usable(trial)) continue;
    total += start_probability(1 / trial.outcome.cost, best, gamma);
    weights.emplace_back(total, &trial);
  }
  const double drawn = rng.uniform() * total;
  for (const auto& [up_to, trial] : weights)
    if (drawn < up_to) return trial;
  return weights.empty() ? nullptr : weights.back().second;
}

const Trial* draw_start_or_best(const History& history, double gamma, Rng& rng,
                                const std::function<bool(const Trial&)>& usable) {
  std::vector<const Trial*> starts;
  const Trial* cheapest = nullptr;
  for (const Trial& trial : history.trials()) {
    if (!std::isfinite(trial.outcome.cost) || !usable(trial)) continue;
    starts.push_back(&trial);
    if (cheapest == nullptr || trial.outcome.cost < cheapest->outcome.cost) cheapest = &trial;
  }
  if (starts.empty()) return nullptr;
  const double best = history.best()->outcome.cost;
  const Trial* drawn = starts[static_cast<size_t>(rng.below(static_cast<int64_t>(starts.size())))];
  const double accepted = std::exp(-gamma * (drawn->outcome.cost - best) / best);
  return rng.chance(accepted) ? drawn : cheapest;
}

}  // namespace tilewright::search
