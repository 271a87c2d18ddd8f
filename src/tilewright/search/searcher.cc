#include "tilewright/search/searcher.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright::search {

void History::add(Trial trial) {
  if (!index_.emplace(trial.point, trials_.size()).second) return;
  if (std::isfinite(trial.outcome.cost)) by_cost_.emplace(trial.outcome.cost, trials_.size());
  trials_.push_back(std::move(trial));
}

const Trial* History::find(const Point& point) const {
  const auto found = index_.find(point);
  return found == index_.end() ? nullptr : &trials_[found->second];
}

const Trial* History::best() const {
  return by_cost_.empty() ? nullptr : &trials_[by_cost_.begin()->second];
}

std::vector<size_t> History::cheapest(size_t count) const {
  std::vector<size_t> found;
  for (auto it = by_cost_.begin(); it != by_cost_.end() && found.size() < count; ++it)
    found.push_back(it->second);
  return found;
}

std::vector<Point> Searcher::propose(int count) {
  std::vector<Point> batch = choose(count);
  expect(batch);
  return batch;
}

void Searcher::tell(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) {
    out_.erase(trial.point);
    history_.add(trial);
  }
}

void Searcher::expect(const std::vector<Point>& points) {
  out_.insert(points.begin(), points.end());
}

void Searcher::give_up(const std::vector<Point>& points) {
  for (const Point& point : points) out_.erase(point);
}

bool Searcher::add_new(std::vector<Point>& batch, Point point) const {
  if (taken(point) || std::find(batch.begin(), batch.end(), point) != batch.end()) return false;
  batch.push_back(std::move(point));
  return true;
}

void Searcher::add_random(std::vector<Point>& batch, int count, Rng& rng) const {
  constexpr int kAttempts = 64;  // per point; a nearly exhausted space is walked through instead
  const auto wanted = static_cast<size_t>(count);
  for (int i = 0; i < kAttempts * count && batch.size() < wanted; ++i)
    add_new(batch, space_.random(rng));
  constexpr double kWalkable = 1 << 16;
  const double size = space_.size();
  if (batch.size() >= wanted || size > kWalkable) return;
  const auto all = static_cast<int64_t>(size);
  const int64_t start = rng.below(all);
  for (int64_t i = 0; i < all && batch.size() < wanted; ++i)
    add_new(batch, space_.at((start + i) % all));
}

namespace {

using Clock = std::chrono::steady_clock;

class Runner {
 public:
  Runner(Searcher& searcher, const Evaluate& evaluate, const Budget& budget)
      : searcher_(searcher), evaluate_(evaluate), budget_(budget) {}

  RunResult go(const std::vector<Point>& warm_up) {
    for (size_t i = 0; i < warm_up.size() && !stop(); i += batch_size())
      evaluate({warm_up.begin() + static_cast<long>(i),
                warm_up.begin() + static_cast<long>(std::min(i + batch_size(), warm_up.size()))});
    while (!stop()) {
      const std::vector<Point> points = searcher_.propose(static_cast<int>(batch_size()));
      if (points.empty()) {
        stop_ = Stop::Exhausted;
        break;
      }
      evaluate(points);
    }
    return {std::move(trials_), stop_};
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  size_t batch_size() const {
    const int left = budget_.trials - static_cast<int>(trials_.size());
    return static_cast<size_t>(std::max(1, std::min(budget_.batch, left)));
  }

  bool stop() {
    if (budget_.interrupted && budget_.interrupted()) return stop_ = Stop::Interrupted, true;
    if (static_cast<int>(trials_.size()) >= budget_.trials) return stop_ = Stop::Trials, true;
    if (elapsed() >= budget_.seconds) return stop_ = Stop::Time, true;
    if (since_gain_ >= budget_.stall_trials) return stop_ = Stop::Stall, true;
    return false;
  }

  void evaluate(const std::vector<Point>& points) {
    const std::vector<Evaluation> outcomes = evaluate_(points);
    TW_CHECK(outcomes.size() == points.size(), "{} points, {} outcomes", points.size(),
             outcomes.size());
    std::vector<Trial> batch;
    for (size_t i = 0; i < points.size(); ++i) {
      batch.push_back({points[i], outcomes[i], elapsed()});
      ++since_gain_;
      if (outcomes[i].cost < reference_ * (1 - budget_.stall_gain))
        reference_ = outcomes[i].cost, since_gain_ = 0;
    }
    searcher_.tell(batch);
    trials_.insert(trials_.end(), batch.begin(), batch.end());
    if (budget_.progress) budget_.progress(searcher_.history());
  }

  Searcher& searcher_;
  const Evaluate& evaluate_;
  const Budget& budget_;
  Clock::time_point start_ = Clock::now();
  std::vector<Trial> trials_;
  double reference_ = kInvalid;
  int since_gain_ = 0;
  Stop stop_ = Stop::Trials;
};

}  // namespace

RunResult run(Searcher& searcher, const Evaluate& evaluate, const Budget& budget,
              const std::vector<Point>& warm_up) {
  return Runner(searcher, evaluate, budget).go(warm_up);
}

}  // namespace tilewright::search
