#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

class RandomSearcher final : public Searcher {
 public:
  RandomSearcher(const Space& space, uint64_t seed) : Searcher(space), rng_(seed) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    add_random(batch, count, rng_);
    return batch;
  }

 private:
  Rng rng_;
};

}  // namespace

std::unique_ptr<Searcher> random_searcher(const Space& space, uint64_t seed) {
  return std::make_unique<RandomSearcher>(space, seed);
}

}  // namespace tilewright::search
