// Searchers: they propose points, are told what these cost, and propose better ones. Costs are
// positive and lower is better (nanoseconds, cycles); how they are found is not a searcher's
// concern.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tilewright/search/space.h"

namespace tilewright::search {

inline constexpr double kInvalid = std::numeric_limits<double>::infinity();

/// What evaluating a point gave.
struct Evaluation {
  double cost = kInvalid;
  std::string reason;  ///< why there is no cost; empty if there is one
};

struct Trial {
  Point point;
  Evaluation outcome;
  double seconds = 0;  ///< since the start of the run
};

/// Everything tried so far; no trial is ever dropped.
class History {
 public:
  void add(Trial trial);
  const std::vector<Trial>& trials() const { return trials_; }
  bool tried(const Point& point) const { return index_.contains(point); }
  const Trial* find(const Point& point) const;
  /// The cheapest trial; null while none is valid.
  const Trial* best() const;
  /// Indices of the valid trials, cheapest first, at most `count`.
  std::vector<size_t> cheapest(size_t count) const;

 private:
  std::vector<Trial> trials_;
  std::map<Point, size_t> index_;
  std::multimap<double, size_t> by_cost_;
};

/// A way to search. Proposals are points never told of; fewer than asked where no more are found.
class Searcher {
 public:
  explicit Searcher(const Space& space) : space_(space) {}
  virtual ~Searcher() = default;
  virtual std::vector<Point> propose(int count) = 0;
  virtual void tell(const std::vector<Trial>& trials);

  const History& history() const { return history_; }

 protected:
  /// Adds `point` to `batch` if it is neither tried nor already in it.
  bool add_new(std::vector<Point>& batch, Point point) const;
  /// Fills `batch` up to `count` with untried random points.
  void add_random(std::vector<Point>& batch, int count, Rng& rng) const;

  const Space& space_;
  History history_;
};

/// Evaluates a batch; one outcome per point, in order.
using Evaluate = std::function<std::vector<Evaluation>(const std::vector<Point>&)>;

struct Budget {
  int trials = 1000;
  double seconds = kInvalid;
  /// Stop when this many trials in a row brought less than `stall_gain` (a share of the cost).
  int stall_trials = std::numeric_limits<int>::max();
  double stall_gain = 0.02;
  int batch = 8;
  std::function<bool()> interrupted;  ///< asked between batches; empty: never
  std::function<void(const History&)> progress;
};

enum class Stop { Trials, Time, Stall, Exhausted, Interrupted };

struct RunResult {
  std::vector<Trial> trials;
  Stop stop = Stop::Trials;
};

/// Lets `searcher` propose and `evaluate` judge until the budget is spent or nothing is left to
/// try. `warm_up`: points to evaluate first, whatever the searcher (so that several start alike).
RunResult run(Searcher& searcher, const Evaluate& evaluate, const Budget& budget,
              const std::vector<Point>& warm_up = {});

/// A learned model of cost: higher scores for points it thinks cheaper.
class Model {
 public:
  virtual ~Model() = default;
  /// Learns from features and costs of valid trials; costs of invalid ones are kInvalid.
  virtual void fit(const std::vector<std::vector<double>>& features,
                   const std::vector<double>& costs) = 0;
  virtual std::vector<double> score(const std::vector<std::vector<double>>& features) const = 0;
};

/// What a model sees of a point; the decisions' own features if not given.
using Features = std::function<std::vector<double>(const Point&)>;

}  // namespace tilewright::search
