// TVM's explorer: many simulated-annealing chains walk over the scores of a learned model, which
// cost no measurement; the best untried points that they saw are measured, with some random ones.
// After 16 new trials the model is fitted anew, and the chains go on from where they are. Where
// samples of other spaces are known the model learns from them, too, and guides the first batch
// already: costs of each space count as shares of its cheapest.
#include <algorithm>
#include <cmath>

#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

class ModelSearcher final : public Searcher {
 public:
  ModelSearcher(const Space& space, uint64_t seed, std::unique_ptr<Model> model,
                const ModelGuidedOptions& options)
      : Searcher(space), rng_(seed), model_(std::move(model)), options_(options) {
    if (!options_.features)
      options_.features = [&space](const Point& point) { return space.features(point); };
    for (const KnownSamples& known : options_.known) {
      features_.insert(features_.end(), known.features.begin(), known.features.end());
      add_shares(known.costs, costs_);
    }
    learned_ = !costs_.empty();
    if (learned_) model_->fit(features_, costs_);
  }

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    if (learned_) {
      walk(count);
      const int guided = count - static_cast<int>(std::ceil(options_.random_share * count));
      for (auto it = found_.rbegin(); it != found_.rend(); ++it)
        if (batch.size() < static_cast<size_t>(guided)) add_new(batch, it->second);
    }
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    const size_t known = history_.trials().size();
    if (history_.best() == nullptr || known < fitted_ + static_cast<size_t>(options_.refit_every))
      return;
    std::vector<std::vector<double>> features = features_;
    std::vector<double> own, costs = costs_;
    for (const Trial& trial : history_.trials()) {
      features.push_back(options_.features(trial.point));
      own.push_back(trial.outcome.cost);
    }
    add_shares(own, costs);
    model_->fit(features, costs);
    fitted_ = known;
    learned_ = true;
  }

 private:
  /// Costs of one space, in multiples of the cheapest: so that those of several can be compared.
  static void add_shares(const std::vector<double>& costs, std::vector<double>& shares) {
    const double least = costs.empty() ? 1 : *std::min_element(costs.begin(), costs.end());
    for (const double cost : costs) shares.push_back(std::isfinite(cost) ? cost / least : cost);
  }

  std::vector<double> score(const std::vector<Point>& points) const {
    std::vector<std::vector<double>> features;
    for (const Point& point : points) features.push_back(options_.features(point));
    return model_->score(features);
  }

  /// Moves every chain `steps` times and keeps the best untried points seen.
  void walk(int count) {
    while (chains_.size() < static_cast<size_t>(options_.chains))
      chains_.push_back(space_.random(rng_));
    std::vector<double> scores = score(chains_);
    found_.clear();
    for (int step = 0; step < options_.steps; ++step) {
      const double left = 1 - static_cast<double>(step) / options_.steps;
      const double temperature = options_.temperature * left;
      std::vector<Point> next;
      for (const Point& point : chains_) next.push_back(neighbour(point));
      const std::vector<double> after = score(next);
      for (size_t i = 0; i < chains_.size(); ++i) {
        keep(next[i], after[i], static_cast<size_t>(count));
        const double loss = scores[i] - after[i];
        if (loss > 0 && !rng_.chance(std::exp(-loss / std::max(temperature, 1e-9)))) continue;
        chains_[i] = std::move(next[i]);
        scores[i] = after[i];
      }
    }
  }

  Point neighbour(const Point& point) {
    if (space_.moves().empty()) return space_.random(rng_);
    const auto count = static_cast<int64_t>(space_.moves().size());
    return space_.step(point, space_.moves()[static_cast<size_t>(rng_.below(count))]);
  }

  void keep(const Point& point, double value, size_t most) {
    if (taken(point)) return;
    found_.insert({value, point});
    if (found_.size() > most) found_.erase(found_.begin());
  }

  Rng rng_;
  std::unique_ptr<Model> model_;
  ModelGuidedOptions options_;
  std::vector<Point> chains_;
  std::set<std::pair<double, Point>> found_;
  std::vector<std::vector<double>> features_;  ///< of known samples
  std::vector<double> costs_;                  ///< of these, in multiples
  size_t fitted_ = 0;                          ///< trials
  bool learned_ = false;
};

}  // namespace

std::unique_ptr<Searcher> model_searcher(const Space& space, uint64_t seed,
                                         std::unique_ptr<Model> model,
                                         const ModelGuidedOptions& options) {
  return std::make_unique<ModelSearcher>(space, seed, std::move(model), options);
}

}  // namespace tilewright::search
