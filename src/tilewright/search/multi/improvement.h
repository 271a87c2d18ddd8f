// What a point whose objectives are only known as normal distributions promises to add to a front.
#pragma once

#include <vector>

#include "tilewright/search/multi/pareto.h"

namespace tilewright::search {

/// A box [low, high); `low` may be -infinity.
struct ObjectiveBox {
  Objectives low, high;
};

/// Disjoint boxes that fill exactly what is below `reference` and not dominated by `front`. About
/// 2 n of them in three objectives; equal or dominated points in `front` do no harm.
std::vector<ObjectiveBox> non_dominated_boxes(const std::vector<Objectives>& front,
                                              const Objectives& reference);

/// Improvements of one front, for many candidates. All are exact, in any number of objectives,
/// since independent normal distributions factor over boxes.
class Improvement {
 public:
  Improvement(const std::vector<Objectives>& front, const Objectives& reference);

  /// Nothing that is at least `corner` in every objective can add anything.
  bool hopeless(const double* corner) const;
  /// Hypervolume that a point would add.
  double added(const double* point) const;
  /// Probability that a draw is below the reference and not dominated. `deviation`: standard
  /// deviations, of independent objectives; 0 for known ones.
  double probability(const double* mean, const double* deviation) const;
  /// Expected hypervolume that a draw adds.
  double expected(const double* mean, const double* deviation) const;

 private:
  /// Sum over the boxes of the product over the objectives of value(high) - value(low), where
  /// `value` is given per objective and edge.
  template <class Value>
  double sum(const Value& value) const;

  size_t objectives_;
  std::vector<std::vector<double>> edges_;  ///< per objective, ascending, each once
  std::vector<size_t> low_, high_;          ///< indices into edges_: [box * objectives + objective]
};

}  // namespace tilewright::search
