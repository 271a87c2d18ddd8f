#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

/// Linear model of log(cost / prior) with a normal prior on its weights: gives mean and spread.
class Residual {
 public:
  explicit Residual(Eigen::Index features)
      : precision_(Eigen::MatrixXd::Identity(features, features) * kRidge),
        sum_(Eigen::VectorXd::Zero(features)) {}

  void add(const Eigen::VectorXd& x, double residual) {
    sum_ += residual * x;
    expect(x);
    weights_ = solver_.solve(sum_);
  }
  /// As if `x` had been measured: the spread of what is like it falls, means stay.
  void expect(const Eigen::VectorXd& x) {
    precision_ += x * x.transpose();
    solver_.compute(precision_);
  }

  double mean(const Eigen::VectorXd& x) const { return weights_.size() > 0 ? x.dot(weights_) : 0; }
  double spread(const Eigen::VectorXd& x) const {
    return solver_.rows() > 0 ? std::sqrt(x.dot(solver_.solve(x))) : x.norm();
  }

 private:
  static constexpr double kRidge = 1.0;

  Eigen::MatrixXd precision_;
  Eigen::VectorXd sum_, weights_;
  Eigen::LDLT<Eigen::MatrixXd> solver_;
};

class PriorSearcher final : public Searcher {
 public:
  PriorSearcher(const Space& space, uint64_t seed, const PriorGuidedOptions& options)
      : Searcher(space), rng_(seed), options_(options) {
    collect();
  }

  std::vector<Point> propose(int count) override {
    std::vector<Point> batch;
    const auto wanted = static_cast<size_t>(count);
    std::optional<Residual> expected = residual_;
    const bool first = history_.trials().size() < static_cast<size_t>(options_.first);
    if (!first && history_.best() != nullptr) {
      const auto local = static_cast<size_t>(std::ceil(options_.local_share * count));
      take_best(batch, near_best(), std::min(local, wanted), expected);
    }
    take_best(batch, pool_, wanted, expected);
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    for (const Trial& trial : trials) {
      const Known& known = look(trial.point);
      if (!std::isfinite(trial.outcome.cost) || !std::isfinite(known.log_prior)) continue;
      residual(known.x).add(known.x, std::log(trial.outcome.cost) - known.log_prior);
    }
  }

 private:
  /// What is known of a point before it is measured.
  struct Known {
    double log_prior = 0;
    Eigen::VectorXd x;
  };

  using Ranked = std::vector<std::pair<double, Point>>;

  /// The points worth ranking: all of a small space, else what breeding along the prior finds.
  void collect() {
    const double size = space_.size();
    Ranked ranked;
    if (size <= options_.enumerate) {
      for (int64_t i = 0; i < static_cast<int64_t>(size); ++i) consider(space_.at(i), ranked);
      keep_best(ranked, kPool);
    } else {
      ranked = breed();
    }
    for (auto& [prior, point] : ranked) pool_.push_back(std::move(point));
  }

  void consider(Point point, Ranked& ranked) const {
    const double prior = options_.prior(point);
    if (std::isfinite(prior)) ranked.emplace_back(prior, std::move(point));
  }

  static void keep_best(Ranked& ranked, size_t most) {
    std::sort(ranked.begin(), ranked.end());
    ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
    if (ranked.size() > most) ranked.resize(most);
  }

  /// Generations of random points' children, judged by the prior alone; a descent would end in the
  /// first hollow.
  Ranked breed() {
    constexpr size_t kParents = 512;
    Ranked all;
    for (size_t i = 0; i < 4 * kParents; ++i) consider(space_.random(rng_), all);
    keep_best(all, kPool);
    for (int tried = 4 * kParents; tried < options_.enumerate && !all.empty(); tried += kParents) {
      const size_t parents = std::min(all.size(), kParents);
      for (size_t i = 0; i < kParents; ++i) consider(child(all, parents), all);
      keep_best(all, kPool);
    }
    return all;
  }

  Point child(const Ranked& all, size_t parents) {
    const auto parent = [&]() -> const Point& {
      const auto n = static_cast<int64_t>(parents);
      return all[static_cast<size_t>(std::min(rng_.below(n), rng_.below(n)))].second;
    };
    Point point = parent();
    const Point& other = parent();
    for (size_t d = 0; d < point.size(); ++d)
      if (rng_.chance(0.3)) point[d] = other[d];
    point = space_.canonical(std::move(point));
    const auto moves = static_cast<int64_t>(space_.moves().size());
    for (int64_t i = rng_.below(3); i > 0 && moves > 0; --i)
      point = space_.step(point, space_.moves()[static_cast<size_t>(rng_.below(moves))]);
    return point;
  }

  std::vector<Point> near_best() const {
    std::vector<Point> near;
    for (size_t index : history_.cheapest(4))
      for (Point& point : space_.neighbours(history_.trials()[index].point))
        near.push_back(std::move(point));
    return near;
  }

  const Known& look(const Point& point) {
    const auto [at, fresh] = known_.try_emplace(point);
    Known& known = at->second;
    if (!fresh) return known;
    known.log_prior = std::log(options_.prior(point));
    // The prior's terms say where it may be wrong in size, the decisions where in kind.
    std::vector<double> x;
    if (options_.features)
      for (const double f : options_.features(point)) x.push_back(std::log2(1 + std::abs(f)) / 4);
    for (const double f : space_.features(point)) x.push_back(std::log2(1 + std::abs(f)));
    x.push_back(1);
    known.x = Eigen::Map<const Eigen::VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
    return known;
  }

  Residual& residual(const Eigen::VectorXd& x) {
    if (!residual_) residual_.emplace(x.size());
    return *residual_;
  }

  /// Expected logarithm of the cost, lowered where little is known.
  double merit(const Known& known, const std::optional<Residual>& expected) const {
    if (!expected) return known.log_prior;
    return known.log_prior + expected->mean(known.x) - options_.spread * expected->spread(known.x);
  }

  /// Adds the best of `from` one by one; each makes those like it less worth knowing.
  void take_best(std::vector<Point>& batch, const std::vector<Point>& from, size_t up_to,
                 std::optional<Residual>& expected) {
    std::vector<std::pair<double, const Point*>> ranked;
    for (const Point& point : from) {
      if (history_.tried(point) || std::find(batch.begin(), batch.end(), point) != batch.end())
        continue;
      const double value = merit(look(point), expected);
      if (std::isfinite(value)) ranked.emplace_back(value, &point);
    }
    const auto better = [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : *a.second < *b.second;
    };
    std::sort(ranked.begin(), ranked.end(), better);
    if (ranked.size() > kShortList) ranked.resize(kShortList);
    while (batch.size() < up_to && !ranked.empty()) {
      const auto best = std::min_element(ranked.begin(), ranked.end(), better);
      const Known& known = look(*best->second);
      add_new(batch, *best->second);
      ranked.erase(best);
      if (!expected) expected.emplace(known.x.size());
      expected->expect(known.x);
      for (auto& [value, point] : ranked) value = merit(look(*point), expected);
    }
  }

  static constexpr size_t kPool = 4096, kShortList = 128;

  Rng rng_;
  PriorGuidedOptions options_;
  std::vector<Point> pool_;  ///< best prior first
  std::map<Point, Known> known_;
  std::optional<Residual> residual_;
};

}  // namespace

std::unique_ptr<Searcher> prior_searcher(const Space& space, uint64_t seed,
                                         const PriorGuidedOptions& options) {
  return std::make_unique<PriorSearcher>(space, seed, options);
}

}  // namespace tilewright::search
