// Hypervolume, and the share of the true front's hypervolume that a search has found.
#pragma once

#include <vector>

#include "tilewright/search/multi/pareto.h"

namespace tilewright::search {

/// Volume of what `points` dominate below `reference`, exactly, in any number of objectives. Points
/// that are not below the reference in every objective add nothing. Two and three objectives take
/// n log n steps, each further one n times as many.
double hypervolume(const std::vector<Objectives>& points, const Objectives& reference);

/// Objectives on a common scale: z = (log10 f - low) / (high - low), 0 where an objective does not
/// vary.
struct ObjectiveScale {
  std::vector<double> low, high;  ///< of log10 f

  /// The smallest scale on which all `points` lie in [0, 1]. requires: points; objectives positive.
  static ObjectiveScale of(const std::vector<Objectives>& points);
  Objectives operator()(const Objectives& point) const;
  /// `width` of log10 of objective `j` on the scale.
  double unit(size_t j) const { return high[j] > low[j] ? 1 / (high[j] - low[j]) : 0; }
};

/// The reference in every objective on that scale.
inline constexpr double kReference = 1.1;

/// Judges what a search found by all points there are.
class FrontScore {
 public:
  /// `points`: of everything that is legal and meets the limits. requires: at least one.
  explicit FrontScore(const std::vector<Objectives>& points);

  /// Indices of the true front in `points`.
  const std::vector<size_t>& front() const { return front_; }
  const ObjectiveScale& scale() const { return scale_; }
  /// Hypervolume of the true front.
  double whole() const { return whole_; }
  /// Share of it that `chosen`, feasible points, dominate.
  double share(const std::vector<Objectives>& chosen) const;
  /// Entry i: the share of i + 1 points of the true front, each the best to add to those before.
  /// No search that knows everything and picks greedily gets more. Ends early if the front does.
  std::vector<double> ceiling(size_t count) const;

 private:
  ObjectiveScale scale_;
  std::vector<size_t> front_;
  std::vector<Objectives> scaled_front_;
  Objectives reference_;
  double whole_ = 0;
};

}  // namespace tilewright::search
