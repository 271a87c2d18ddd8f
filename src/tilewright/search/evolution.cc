// Evolution: after 16 random trials, points are children of the 32 cheapest. A parent is the better
// of two drawn at random. A child takes each decision from either of two parents, or is one parent
// with one move or one decision drawn anew; some points stay random.
#include <algorithm>

#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

class EvolutionSearcher final : public Searcher {
 public:
  EvolutionSearcher(const Space& space, uint64_t seed, const EvolutionOptions& options)
      : Searcher(space), rng_(seed), options_(options) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    const std::vector<size_t> parents = history_.cheapest(static_cast<size_t>(options_.population));
    const bool started = parents.size() >= 2 && history_.trials().size() >= kFirst;
    for (int tries = 0; started && tries < 32 * count; ++tries) {
      if (batch.size() >= static_cast<size_t>(count)) break;
      if (!rng_.chance(options_.random_share))
        add_new(batch, child(parents));
      else
        add_new(batch, space_.random(rng_));
    }
    add_random(batch, count, rng_);
    return batch;
  }

 private:
  static constexpr size_t kFirst = 16;  ///< random trials before breeding starts

  const Point& select(const std::vector<size_t>& parents) {
    // The better of two: parents are sorted by cost.
    const auto count = static_cast<int64_t>(parents.size());
    const auto pick = static_cast<size_t>(std::min(rng_.below(count), rng_.below(count)));
    return history_.trials()[parents[pick]].point;
  }

  Point child(const std::vector<size_t>& parents) {
    Point point = select(parents);
    if (rng_.chance(options_.crossover_share)) {
      const Point& other = select(parents);
      for (size_t d = 0; d < point.size(); ++d)
        if (rng_.chance(0.5)) point[d] = other[d];
      return space_.canonical(std::move(point));
    }
    const std::vector<Move>& moves = space_.moves();
    if (!moves.empty() && rng_.chance(0.7))
      return space_.step(
          point, moves[static_cast<size_t>(rng_.below(static_cast<int64_t>(moves.size())))]);
    const auto d = static_cast<size_t>(rng_.below(static_cast<int64_t>(point.size())));
    const auto values = static_cast<int64_t>(space_.decisions()[d].values.size());
    point[d] = static_cast<int>(rng_.below(values));
    return space_.canonical(std::move(point));
  }

  Rng rng_;
  EvolutionOptions options_;
};

}  // namespace

std::unique_ptr<Searcher> evolution_searcher(const Space& space, uint64_t seed,
                                             const EvolutionOptions& options) {
  return std::make_unique<EvolutionSearcher>(space, seed, options);
}

}  // namespace tilewright::search
