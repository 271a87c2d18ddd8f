// One simulated-annealing walk. A batch are random neighbours of the present point. Told their
// costs one by one, the walk moves to a cheaper one always, and to a dearer one with probability
// exp(-log(cost / present cost) / temperature); the temperature falls with each trial.
#include <cmath>

#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

class AnnealingSearcher final : public Searcher {
 public:
  AnnealingSearcher(const Space& space, uint64_t seed, const AnnealingOptions& options)
      : Searcher(space), rng_(seed), options_(options) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    if (history_.best() == nullptr) {
      add_random(batch, count, rng_);
      return batch;
    }
    if (at_.empty()) at_ = history_.best()->point;
    // A batch is a fan of neighbours of the present point, tried in turn.
    std::vector<Point> near = space_.neighbours(at_);
    while (!near.empty() && batch.size() < static_cast<size_t>(count)) {
      const auto pick = static_cast<size_t>(rng_.below(static_cast<int64_t>(near.size())));
      add_new(batch, near[pick]);
      near.erase(near.begin() + static_cast<long>(pick));
    }
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    for (const Trial& trial : trials) {
      temperature_ *= options_.cooling;
      if (!std::isfinite(trial.outcome.cost)) continue;
      const Trial* present = at_.empty() ? nullptr : history_.find(at_);
      const double loss =
          present == nullptr ? 0 : std::log(trial.outcome.cost / present->outcome.cost);
      if (loss <= 0 || rng_.chance(std::exp(-loss / (options_.temperature * temperature_))))
        at_ = trial.point;
    }
  }

 private:
  Rng rng_;
  AnnealingOptions options_;
  double temperature_ = 1;
  Point at_;
};

}  // namespace

std::unique_ptr<Searcher> annealing_searcher(const Space& space, uint64_t seed,
                                             const AnnealingOptions& options) {
  return std::make_unique<AnnealingSearcher>(space, seed, options);
}

}  // namespace tilewright::search
