// FlexTensor's P-method: starts are drawn among the good trials (search/starts.h), and all
// neighbours of a start are tried, in every direction, before the next one is drawn.
#include "tilewright/search/searchers.h"
#include "tilewright/search/starts.h"

namespace tilewright::search {
namespace {

class PSearcher final : public Searcher {
 public:
  PSearcher(const Space& space, uint64_t seed, const PMethodOptions& options)
      : Searcher(space), rng_(seed), options_(options) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    while (batch.size() < static_cast<size_t>(count)) {
      if (waiting_.empty() && !expand()) break;
      add_new(batch, std::move(waiting_.back()));
      waiting_.pop_back();
    }
    add_random(batch, count, rng_);
    return batch;
  }

 private:
  /// Queues all neighbours of a start that has not been expanded yet.
  bool expand() {
    const Trial* start =
        draw_start_or_best(history_, options_.gamma, rng_,
                           [this](const Trial& trial) { return !expanded_.contains(trial.point); });
    if (start == nullptr) return false;
    expanded_.insert(start->point);
    waiting_ = space_.neighbours(start->point);
    return !waiting_.empty() || expand();
  }

  Rng rng_;
  PMethodOptions options_;
  std::set<Point> expanded_;
  std::vector<Point> waiting_;
};

}  // namespace

std::unique_ptr<Searcher> p_searcher(const Space& space, uint64_t seed,
                                     const PMethodOptions& options) {
  return std::make_unique<PSearcher>(space, seed, options);
}

}  // namespace tilewright::search
