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

/// A way to search. What is proposed is *out* until it is told or given up, so several batches may
/// be evaluated at the same time, and told in any order:
///
///   a = propose(8), b = propose(8)     16 points, all different
///   tell(costs of b), tell(costs of a)
class Searcher {
 public:
  explicit Searcher(const Space& space) : space_(space) {}
  virtual ~Searcher() = default;
  /// Points that are neither told of nor out; fewer than asked where no more are found.
  std::vector<Point> propose(int count);
  virtual void tell(const std::vector<Trial>& trials);
  /// Points that others chose to evaluate are out, too.
  void expect(const std::vector<Point>& points);
  /// These will never be told: they may be proposed again.
  void give_up(const std::vector<Point>& points);

  const History& history() const { return history_; }
  const std::set<Point>& out() const { return out_; }

 protected:
  virtual std::vector<Point> choose(int count) = 0;
  /// Whether `point` is tried or out.
  bool taken(const Point& point) const { return history_.tried(point) || out_.contains(point); }
  /// Adds `point` to `batch` if it is neither taken nor already in it.
  bool add_new(std::vector<Point>& batch, Point point) const;
  /// Fills `batch` up to `count` with random points that are not taken.
  void add_random(std::vector<Point>& batch, int count, Rng& rng) const;

  const Space& space_;
  History history_;

 private:
  std::set<Point> out_;
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
