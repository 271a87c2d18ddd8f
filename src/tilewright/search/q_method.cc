// FlexTensor's Q-method: a network learns which move from a point is worth making.
//
//   A state is a point, an action a direction (one decision, up or down). The network maps the
//   features of a point to one value per direction. A search step draws a good trial as start,
//   takes the direction of the highest value that leads to an untried point, and measures it. The
//   reward is how much cheaper that point is; the network is trained on these steps.
//
// PaperSearcher follows the text of the paper, ReleasedSearcher the released code, which differs in
// many details (search/searchers.h lists them). source: FlexTensor paper, section 5.1.
#include <algorithm>
#include <cmath>

#include "tilewright/search/q_learner.h"
#include "tilewright/search/searchers.h"
#include "tilewright/search/starts.h"

namespace tilewright::search {
namespace {

/// How a proposed point was reached.
struct Step {
  Point from;
  size_t learner = 0;
  int chosen = 0;
};

Eigen::VectorXd vector_of(const std::vector<double>& values, bool logarithmic) {
  Eigen::VectorXd out(static_cast<Eigen::Index>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    out(static_cast<Eigen::Index>(i)) =
        logarithmic ? std::log2(1 + std::abs(values[i])) : values[i];
  return out;
}

class PaperSearcher final : public Searcher {
 public:
  PaperSearcher(const Space& space, uint64_t seed, const QMethodOptions& options)
      : Searcher(space),
        rng_(seed),
        options_(options),
        learner_(space.feature_count(), space.moves().size(), options.hidden, rng_) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    const auto seen = static_cast<int>(history_.trials().size() + out().size());
    add_random(batch, std::clamp(options_.warm_up - seen, 0, count), rng_);
    while (batch.size() < static_cast<size_t>(count)) {
      const size_t before = batch.size();
      if (options_.cheapest_starts)
        follow_cheapest(batch, static_cast<size_t>(count));
      else
        for (int s = 0; s < options_.starts && batch.size() < static_cast<size_t>(count); ++s)
          follow_drawn(batch);
      if (batch.size() == before) break;
    }
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    Searcher::tell(trials);
    for (const Trial& trial : trials) {
      const auto step = steps_.find(trial.point);
      if (step == steps_.end()) continue;
      const double before = history_.find(step->second.from)->outcome.cost;
      const double reward =
          std::isfinite(trial.outcome.cost) ? before / trial.outcome.cost - 1 : -1;
      learner_.add(
          {features(step->second.from), features(trial.point), step->second.chosen, reward});
      steps_.erase(step);
      if (++taken_ % kTrainEvery != 0) continue;
      for (int epoch = 0; epoch < options_.epochs; ++epoch)
        learner_.epoch(options_.alpha, options_.learning_rate, rng_);
      learner_.copy_to_target();
    }
  }

 private:
  static constexpr int kTrainEvery = 5;

  Eigen::VectorXd features(const Point& point) const {
    return vector_of(space_.features(point), true);
  }

  bool usable(const std::vector<Point>& batch, const Point& from, const Point& to) const {
    return to != from && !taken(to) && std::find(batch.begin(), batch.end(), to) == batch.end();
  }

  void follow_drawn(std::vector<Point>& batch) {
    while (true) {
      const Trial* start = draw_start(history_, options_.gamma, rng_, [this](const Trial& trial) {
        return !exhausted_.contains(trial.point);
      });
      if (start == nullptr || follow_best(batch, start->point)) return;
    }
  }

  /// One move from each of the cheapest trials that have neighbours left.
  void follow_cheapest(std::vector<Point>& batch, size_t most) {
    int followed = 0;
    for (const size_t trial :
         history_.cheapest(static_cast<size_t>(options_.starts) + exhausted_.size())) {
      if (followed == options_.starts || batch.size() == most) return;
      const Point& from = history_.trials()[trial].point;
      if (!exhausted_.contains(from)) followed += follow_best(batch, from);
    }
  }

  /// One move along the direction of the highest value that leads to a new point; false: there is
  /// none.
  bool follow_best(std::vector<Point>& batch, const Point& from) {
    const Eigen::VectorXd values = learner_.values(features(from));
    int best = -1;
    Point to;
    for (size_t m = 0; m < space_.moves().size(); ++m) {
      const auto output = static_cast<int>(m);
      if (best >= 0 && values(output) <= values(best)) continue;
      Point next = space_.step(from, space_.moves()[m]);
      if (usable(batch, from, next)) best = output, to = std::move(next);
    }
    if (best < 0) {
      exhausted_.insert(from);
      return false;
    }
    steps_[to] = {from, 0, best};
    batch.push_back(std::move(to));
    return true;
  }

  Rng rng_;
  QMethodOptions options_;
  QLearner learner_;
  std::map<Point, Step> steps_;
  std::set<Point> exhausted_;  ///< all of whose neighbours were tried or proposed
  int taken_ = 0;
};

class ReleasedSearcher final : public Searcher {
 public:
  ReleasedSearcher(const Space& space, uint64_t seed, const QMethodOptions& options)
      : Searcher(space), rng_(seed), options_(options) {
    for (const Decision& decision : space.decisions())
      learners_.emplace_back(space.feature_count(), std::max<size_t>(decision.moves.size(), 1),
                             options.hidden, rng_);
  }

  std::vector<Point> choose(int count) override {
    while (waiting_.size() < static_cast<size_t>(count) && !heap_.empty()) {
      const Point start = history_.trials()[heap_.begin()->second].point;
      retired_.insert(*heap_.begin());
      heap_.erase(heap_.begin());
      for (size_t d = 0; d < learners_.size(); ++d) follow(start, d);
    }
    std::vector<Point> batch;
    auto next = waiting_.begin();
    for (; next != waiting_.end() && batch.size() < static_cast<size_t>(count); ++next)
      add_new(batch, std::move(*next));
    waiting_.erase(waiting_.begin(), next);
    add_random(batch, count, rng_);
    return batch;
  }

  void tell(const std::vector<Trial>& trials) override {
    for (const Trial& trial : trials) {
      const double best = history_.best() == nullptr ? kInvalid : history_.best()->outcome.cost;
      const size_t index = history_.trials().size();
      Searcher::tell({trial});
      const double cost = trial.outcome.cost;
      if (std::isfinite(cost) &&
          (cost <= best || rng_.chance(std::exp(-options_.gamma * (cost - best) / best))))
        heap_.emplace(cost, index);
      learn(trial);
    }
    const auto done = static_cast<int>(history_.trials().size());
    const int period = std::max(1, (options_.planned_trials + 4) / 5);
    if (done / period == trained_) return;
    trained_ = done / period;
    train();
  }

 private:
  Eigen::VectorXd features(const Point& point) const {
    return vector_of(space_.features(point), false);
  }

  /// One neighbour of `start` in one decision joins those that wait to be tried.
  void follow(const Point& start, size_t decision) {
    const size_t directions = space_.decisions()[decision].moves.size();
    if (directions == 0) return;
    const double trial = static_cast<double>(history_.trials().size());
    const double epsilon = std::max(0.8 * std::exp(-0.01 * trial), 0.1);
    Eigen::Index chosen = rng_.below(static_cast<int64_t>(directions));
    if (!rng_.chance(epsilon)) learners_[decision].values(features(start)).maxCoeff(&chosen);
    Point to = space_.step(start, {static_cast<int>(decision), static_cast<int>(chosen)});
    if (add_new(waiting_, to)) steps_[to] = {start, decision, static_cast<int>(chosen)};
  }

  void learn(const Trial& trial) {
    const auto step = steps_.find(trial.point);
    if (step == steps_.end()) return;
    const double gain = history_.find(step->second.from)->outcome.cost - trial.outcome.cost;
    const double reward = std::tanh(std::max(0.0, gain * options_.cost_to_ms));
    learners_[step->second.learner].add(
        {features(step->second.from), features(trial.point), step->second.chosen, reward});
    steps_.erase(step);
  }

  void train() {
    heap_.insert(retired_.begin(), retired_.end());
    retired_.clear();
    for (QLearner& learner : learners_) {
      learner.reset_optimiser();
      for (int epoch = 0; epoch < options_.epochs; ++epoch) {
        learner.epoch(options_.alpha, options_.learning_rate, rng_);
        learner.copy_to_target();
      }
    }
  }

  Rng rng_;
  QMethodOptions options_;
  std::vector<QLearner> learners_;
  std::vector<Point> waiting_;
  std::set<std::pair<double, size_t>> heap_, retired_;  ///< cost and index of the trial
  std::map<Point, Step> steps_;
  int trained_ = 0;
};

/// With the form's own values where there are none.
QMethodOptions complete(QMethodOptions options) {
  const bool paper = options.form == QMethodOptions::Form::Paper;
  if (options.gamma <= 0) options.gamma = paper ? 5 : 0.5;
  if (options.alpha <= 0) options.alpha = paper ? 0.3 : 0.9;
  if (options.learning_rate <= 0) options.learning_rate = paper ? 1 : 0.02;
  if (options.epochs <= 0) options.epochs = paper ? 2 : 20;
  return options;
}

}  // namespace

std::unique_ptr<Searcher> q_searcher(const Space& space, uint64_t seed,
                                     const QMethodOptions& options) {
  if (options.form == QMethodOptions::Form::Paper)
    return std::make_unique<PaperSearcher>(space, seed, complete(options));
  return std::make_unique<ReleasedSearcher>(space, seed, complete(options));
}

}  // namespace tilewright::search
