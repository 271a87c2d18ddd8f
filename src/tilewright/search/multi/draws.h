// The legal points of a problem, in an order drawn by a seed.
#pragma once

#include <map>

#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::search {

/// All legal points in the space's order. requires: a space small enough to walk through.
std::vector<Point> legal_points(const MultiProblem& problem);

/// The same in the order in which evaluating all of them shares most: by the decisions that are not
/// `sharing`, then from the last values of `sharing` down. Example: of (rows, memory, banks),
/// memory sharing: 0 1 0, 0 0 0, 0 1 1, 0 0 1, 1 1 0, ...
std::vector<Point> points_that_share(const MultiProblem& problem);

class Draws {
 public:
  Draws(const MultiProblem& problem, const MultiOptions& options);

  /// All legal points are known: points() are these, in the order in which they are drawn.
  bool listed() const { return listed_; }
  const std::vector<Point>& points() const { return points_; }
  /// The first drawn point neither tried nor in `batch`; absent if no more are found.
  std::optional<Point> next(const MultiSearcher& searcher, const std::vector<Point>& batch);
  /// Adds such points to `batch` until it has `count`.
  void fill(const MultiSearcher& searcher, std::vector<Point>& batch, size_t count);

 private:
  bool draw_more();

  const MultiProblem& problem_;
  Rng rng_;
  bool listed_;
  std::vector<Point> points_;
  size_t first_ = 0;      ///< all before it are tried
  std::set<Point> seen_;  ///< points_, where they are not listed
};

/// A seed for one purpose among several: `seed`, and the numbers that tell the purpose.
uint64_t mixed_seed(uint64_t seed, uint64_t a, uint64_t b = 0);

}  // namespace tilewright::search
