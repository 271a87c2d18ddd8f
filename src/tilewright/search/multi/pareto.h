// Comparing outcomes in several objectives under limits: domination, ranking, the Pareto front.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tilewright::search {

/// One number per objective; lower is better.
using Objectives = std::vector<double>;

/// What evaluating a point gave.
struct MultiOutcome {
  Objectives objectives;  ///< positive; empty where there is no result
  /// One number per limit; at most 0: met. log10(value / limit) is the natural one: how far below
  /// the limit a value stays helps models, but 0 for every value that meets the limit works too.
  std::vector<double> violations;
  std::string reason;  ///< why there is no result; empty if there is one
};

/// Sum of the violations above 0.
double total_violation(const MultiOutcome& outcome);
/// There is a result, and every limit is met.
bool feasible(const MultiOutcome& outcome);

/// At most as high in every objective and lower in one.
bool dominates(const Objectives& a, const Objectives& b);
/// Constrained domination: results before none, feasible before infeasible, of infeasible ones the
/// smaller violation, of feasible ones by `dominates`. source: Deb et al., NSGA-II, section VI.
bool dominates(const MultiOutcome& a, const MultiOutcome& b);

/// Indices by rank: those dominated by none, then those dominated by none of the rest, and so on;
/// ascending within a rank. Time grows with the square of the number: for populations.
std::vector<std::vector<size_t>> non_dominated_sort(const std::vector<MultiOutcome>& outcomes);

/// For each of `rank` (indices into `outcomes`, all with as many objectives): the sum over the
/// objectives of the distance between its two neighbours, as a share of the range within the rank;
/// infinite at the ends of an objective. 0 for what has no result.
std::vector<double> crowding_distances(const std::vector<MultiOutcome>& outcomes,
                                       const std::vector<size_t>& rank);

/// Indices of the points that no other dominates, ascending; of equal points all. Fast enough for
/// a million points with a front of thousands.
std::vector<size_t> pareto_front(const std::vector<Objectives>& points);

}  // namespace tilewright::search
