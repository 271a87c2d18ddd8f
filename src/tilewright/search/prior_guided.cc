// `ours`: a search that begins with the cost model's ranking and corrects it by measurements.
//
//   log(cost) is modelled as log(prior) + w * features. With no measurements w = 0, and the points
//   of the smallest prior come first. Each measurement moves w (linear regression with a normal
//   prior); points whose features were seen little count as a bit better than expected.
//
// Points to choose from: all of a small space, else what breeding by the prior finds; from then on
// half of a batch are neighbours of the four cheapest. Within a batch, each chosen point makes
// those like it less worth knowing, so that a batch is not one point in eight variations; points of
// other batches that are not told yet do the same.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
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

  /// Of the points whose features are the columns of `x`: means, and spreads times `share` below.
  Eigen::VectorXd hopes(const Eigen::MatrixXd& x, double share) const {
    Eigen::VectorXd hopes = Eigen::VectorXd::Zero(x.cols());
    if (x.size() == 0) return hopes;  // triangular solves touch the first element
    if (weights_.size() > 0) hopes = x.transpose() * weights_;
    if (solver_.rows() > 0)
      hopes -= share * solver_.matrixL().solve(x).colwise().norm().transpose();
    else
      hopes -= share * x.colwise().norm().transpose();
    return hopes;
  }

 private:
  static constexpr double kRidge = 1.0;

  Eigen::MatrixXd precision_;
  Eigen::VectorXd sum_, weights_;
  Eigen::LLT<Eigen::MatrixXd> solver_;
};

class PriorSearcher final : public Searcher {
 public:
  PriorSearcher(const Space& space, uint64_t seed, const PriorGuidedOptions& options)
      : Searcher(space), rng_(seed), options_(options) {
    collect();
  }

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    const auto wanted = static_cast<size_t>(count);
    std::optional<Residual> expected = residual_;
    for (const Point& point : out()) {
      const Eigen::VectorXd& x = look(point).x;
      if (!expected) expected.emplace(x.size());
      expected->expect(x);
    }
    const bool first = history_.trials().size() < static_cast<size_t>(options_.first);
    if (!first && history_.best() != nullptr) {
      const auto local = static_cast<size_t>(std::ceil(options_.local_share * count));
      take_best(batch, view_of(near_best()), std::min(local, wanted), expected);
    }
    if (!pool_) pool_ = view_of(std::move(ranked_));
    take_best(batch, *pool_, wanted, expected);
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    for (const Trial& trial : trials) {
      const Known& known = look(trial.point);
      if (!std::isfinite(trial.outcome.cost) || !std::isfinite(known.log_prior)) continue;
      if (!residual_) residual_.emplace(known.x.size());
      residual_->add(known.x, std::log(trial.outcome.cost) - known.log_prior);
    }
  }

 private:
  /// What is known of a point before it is measured.
  struct Known {
    double log_prior = 0;
    Eigen::VectorXd x;
  };

  /// What is known of many points; features are columns.
  struct View {
    std::vector<Point> points;
    Eigen::VectorXd log_prior;
    Eigen::MatrixXd x;
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
    for (auto& [prior, point] : ranked) ranked_.push_back(std::move(point));
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

  View view_of(std::vector<Point> points) {
    View view;
    const auto count = static_cast<Eigen::Index>(points.size());
    view.log_prior.resize(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const Known& known = look(points[static_cast<size_t>(i)]);
      if (i == 0) view.x.resize(known.x.size(), count);
      view.log_prior[i] = known.log_prior;
      view.x.col(i) = known.x;
    }
    view.points = std::move(points);
    return view;
  }

  /// Expected logarithms of costs, lowered where little is known.
  Eigen::VectorXd merits(const View& view, const std::optional<Residual>& expected) const {
    if (!expected) return view.log_prior;
    return view.log_prior + expected->hopes(view.x, options_.spread);
  }

  /// The most promising of `from` that are neither tried nor in `batch`; the best first.
  View short_list(const View& from, const std::vector<Point>& batch,
                  const std::optional<Residual>& expected) const {
    const Eigen::VectorXd value = merits(from, expected);
    std::vector<Eigen::Index> order(from.points.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Eigen::Index i, Eigen::Index j) { return value[i] < value[j]; });
    std::vector<Eigen::Index> kept;
    View best;
    for (const Eigen::Index i : order) {
      const Point& point = from.points[static_cast<size_t>(i)];
      if (kept.size() == kShortList || !std::isfinite(value[i])) break;
      if (taken(point) || std::find(batch.begin(), batch.end(), point) != batch.end()) continue;
      kept.push_back(i);
      best.points.push_back(point);
    }
    best.log_prior = from.log_prior(kept);
    best.x = from.x(Eigen::all, kept);
    return best;
  }

  /// Adds the best of `from` one by one; each makes those like it less worth knowing.
  void take_best(std::vector<Point>& batch, const View& from, size_t up_to,
                 std::optional<Residual>& expected) {
    if (batch.size() >= up_to || from.points.empty()) return;
    const View list = short_list(from, batch, expected);
    Eigen::VectorXd value = merits(list, expected);
    std::vector<Eigen::Index> gone;
    while (batch.size() < up_to && gone.size() < list.points.size()) {
      Eigen::Index best = 0;
      value.minCoeff(&best);
      add_new(batch, list.points[static_cast<size_t>(best)]);
      gone.push_back(best);
      if (!expected) expected.emplace(list.x.rows());
      expected->expect(list.x.col(best));
      value = merits(list, expected);
      for (const Eigen::Index i : gone) value[i] = kInvalid;
    }
  }

  static constexpr size_t kPool = 4096, kShortList = 128;

  Rng rng_;
  PriorGuidedOptions options_;
  std::vector<Point> ranked_;  ///< best prior first; until they are looked at
  std::optional<View> pool_;   ///< the same
  std::map<Point, Known> known_;
  std::optional<Residual> residual_;
};

}  // namespace

std::unique_ptr<Searcher> prior_searcher(const Space& space, uint64_t seed,
                                         const PriorGuidedOptions& options) {
  return std::make_unique<PriorSearcher>(space, seed, options);
}

}  // namespace tilewright::search
