#include <algorithm>
#include <cmath>
#include <numeric>

#include "tilewright/search/multi/draws.h"
#include "tilewright/search/multi/methods.h"

namespace tilewright::search {
namespace {

class MultiEnumerate final : public MultiSearcher {
 public:
  explicit MultiEnumerate(MultiProblem of)
      : MultiSearcher(std::move(of)), points_(points_that_share(problem())) {
    if (!problem().bounds) return;
    for (const Point& point : points_) bounds_.push_back(problem().bounds(point));
    order_by_promise();
  }

  std::vector<Point> propose(int count) override {
    for (; seen_ < trials().size(); ++seen_) learn(trials()[seen_].outcome);
    std::vector<Point> batch;
    // What is tried or proved worthless stays so; the rest may be proposed again.
    for (size_t i = start_; i < points_.size() && batch.size() < static_cast<size_t>(count); ++i) {
      if (done_[i] || tried(points_[i])) {
        done_[i] = true;
      } else if (worthless(i)) {
        done_[i] = true;
        ++skipped_;
      } else {
        batch.push_back(points_[i]);
      }
    }
    while (start_ < points_.size() && done_[start_]) ++start_;
    return batch;
  }

  size_t skipped() const override { return skipped_; }

 private:
  /// Ascending by the sum of the bounds of log objectives: good points first prove most.
  void order_by_promise() {
    std::vector<double> sums;
    for (const PriorValue& bound : bounds_)
      sums.push_back(
          std::accumulate(bound.log_objectives.begin(), bound.log_objectives.end(), 0.0));
    std::vector<size_t> order(points_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return sums[a] < sums[b]; });
    std::vector<Point> points;
    std::vector<PriorValue> bounds;
    for (size_t i : order) {
      points.push_back(std::move(points_[i]));
      bounds.push_back(std::move(bounds_[i]));
    }
    points_ = std::move(points);
    bounds_ = std::move(bounds);
  }

  void learn(const MultiOutcome& outcome) {
    if (!feasible(outcome)) return;
    Objectives logs;
    for (double objective : outcome.objectives) logs.push_back(std::log10(objective));
    if (std::any_of(front_.begin(), front_.end(),
                    [&](const Objectives& known) { return dominates(known, logs); }))
      return;
    std::erase_if(front_, [&](const Objectives& known) { return dominates(logs, known); });
    front_.push_back(std::move(logs));
  }

  bool worthless(size_t i) const {
    if (bounds_.empty()) return false;
    const PriorValue& bound = bounds_[i];
    for (double violation : bound.violations)
      if (violation > 0) return true;
    // A bound equal to a known point proves nothing: the point may be its equal.
    return std::any_of(front_.begin(), front_.end(), [&](const Objectives& known) {
      return dominates(known, bound.log_objectives);
    });
  }

  std::vector<Point> points_;
  std::vector<PriorValue> bounds_;
  std::vector<Objectives> front_;
  std::vector<bool> done_ = std::vector<bool>(points_.size(), false);
  size_t start_ = 0, seen_ = 0, skipped_ = 0;
};

}  // namespace

std::unique_ptr<MultiSearcher> multi_enumerate(MultiProblem problem, const MultiOptions&) {
  return std::make_unique<MultiEnumerate>(std::move(problem));
}

}  // namespace tilewright::search
