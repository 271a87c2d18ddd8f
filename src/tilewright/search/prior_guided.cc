#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

/// Linear model of log(cost / prior) with a normal prior on its weights: gives mean and spread.
class Residual {
 public:
  explicit Residual(size_t features)
      : precision_(Eigen::MatrixXd::Identity(size_of(features), size_of(features)) * kRidge),
        sum_(Eigen::VectorXd::Zero(size_of(features))) {}

  void add(const Eigen::VectorXd& x, double residual) {
    precision_ += x * x.transpose();
    sum_ += residual * x;
    solver_.compute(precision_);
    weights_ = solver_.solve(sum_);
  }

  double mean(const Eigen::VectorXd& x) const { return weights_.size() ? x.dot(weights_) : 0; }
  double spread(const Eigen::VectorXd& x) const {
    return weights_.size() ? std::sqrt(x.dot(solver_.solve(x))) : 1;
  }

 private:
  static constexpr double kRidge = 1.0;
  static Eigen::Index size_of(size_t n) { return static_cast<Eigen::Index>(n); }

  Eigen::MatrixXd precision_;
  Eigen::VectorXd sum_, weights_;
  Eigen::LDLT<Eigen::MatrixXd> solver_;
};

class PriorSearcher final : public Searcher {
 public:
  PriorSearcher(const Space& space, uint64_t seed, const PriorGuidedOptions& options)
      : Searcher(space), rng_(seed), options_(options) {
    if (!options_.features)
      options_.features = [&space](const Point& point) { return space.features(point); };
    collect();
  }

  std::vector<Point> propose(int count) override {
    std::vector<Point> batch;
    const auto wanted = static_cast<size_t>(count);
    const bool first = history_.trials().size() < static_cast<size_t>(options_.first);
    if (!first && history_.best() != nullptr) {
      const auto local = static_cast<size_t>(std::ceil(options_.local_share * count));
      take_best(batch, near_best(), std::min(local, wanted));
    }
    take_best(batch, pool_, wanted);
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    for (const Trial& trial : trials) {
      const double prior = options_.prior(trial.point);
      if (!std::isfinite(trial.outcome.cost) || !std::isfinite(prior)) continue;
      const Eigen::VectorXd x = features(trial.point);
      if (!residual_) residual_ = std::make_unique<Residual>(static_cast<size_t>(x.size()));
      residual_->add(x, std::log(trial.outcome.cost / prior));
    }
  }

 private:
  /// The points worth ranking: all of a small space, else the ends of descents along the prior.
  void collect() {
    const double size = space_.size();
    if (size <= options_.enumerate) {
      for (int64_t i = 0; i < static_cast<int64_t>(size); ++i) pool_.push_back(space_.at(i));
    } else {
      constexpr int kDescents = 16;
      for (int i = 0; i < kDescents; ++i) descend(space_.random(rng_));
    }
    std::erase_if(pool_, [this](const Point& p) { return !std::isfinite(options_.prior(p)); });
    std::sort(pool_.begin(), pool_.end());
    pool_.erase(std::unique(pool_.begin(), pool_.end()), pool_.end());
  }

  void descend(Point at) {
    double cost = options_.prior(at);
    for (bool better = true; better;) {
      better = false;
      for (Point& next : space_.neighbours(at)) {
        const double there = options_.prior(next);
        pool_.push_back(next);
        if (there < cost) cost = there, at = std::move(next), better = true;
      }
    }
  }

  std::vector<Point> near_best() const {
    std::vector<Point> near;
    for (size_t index : history_.cheapest(4))
      for (Point& point : space_.neighbours(history_.trials()[index].point))
        near.push_back(std::move(point));
    return near;
  }

  Eigen::VectorXd features(const Point& point) const {
    const std::vector<double> raw = options_.features(point);
    Eigen::VectorXd x(static_cast<Eigen::Index>(raw.size()) + 1);
    for (size_t i = 0; i < raw.size(); ++i)
      x(static_cast<Eigen::Index>(i)) = std::log2(1 + std::abs(raw[i])) / 4;
    x(x.size() - 1) = 1;
    return x;
  }

  /// Expected logarithm of the cost, lowered where little is known.
  double merit(const Point& point) const {
    const double prior = options_.prior(point);
    if (!std::isfinite(prior)) return kInvalid;
    if (!residual_) return std::log(prior);
    const Eigen::VectorXd x = features(point);
    return std::log(prior) + residual_->mean(x) - options_.spread * residual_->spread(x);
  }

  void take_best(std::vector<Point>& batch, const std::vector<Point>& from, size_t up_to) const {
    std::vector<std::pair<double, const Point*>> ranked;
    for (const Point& point : from)
      if (!history_.tried(point)) ranked.emplace_back(merit(point), &point);
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : *a.second < *b.second;
    });
    for (const auto& [value, point] : ranked) {
      if (batch.size() >= up_to || !std::isfinite(value)) break;
      add_new(batch, *point);
    }
  }

  Rng rng_;
  PriorGuidedOptions options_;
  std::vector<Point> pool_;
  std::unique_ptr<Residual> residual_;
};

}  // namespace

std::unique_ptr<Searcher> prior_searcher(const Space& space, uint64_t seed,
                                         const PriorGuidedOptions& options) {
  return std::make_unique<PriorSearcher>(space, seed, options);
}

}  // namespace tilewright::search
