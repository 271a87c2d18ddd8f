// Contests: searches replayed on a table of everything an evaluation would give, so that all
// methods and many seeds take seconds.
#pragma once

#include "tilewright/search/multi/hypervolume.h"
#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::search {

/// An enumerated space.
struct ContestTable {
  MultiProblem problem;  ///< `legal` is set by the contest: the points of the table
  std::vector<Point> points;
  std::vector<MultiOutcome> outcomes;  ///< one per point
};

/// The score of what is feasible in the table; refused where nothing is.
Result<FrontScore> true_front(const ContestTable& table);

struct ContestRun {
  uint64_t seed = 0;
  std::vector<MultiTrial> trials;
  /// Entry i: share of the true front's hypervolume after i + 1 evaluations. Every evaluation
  /// counts: initial, infeasible and failed ones too.
  std::vector<double> shares;
};

/// One run of `evaluations` per seed. `options.seed` is not used.
Result<std::vector<ContestRun>> contest(const ContestTable& table, const std::string& method,
                                        const MultiOptions& options,
                                        const std::vector<uint64_t>& seeds, int evaluations);

/// Shares after `evaluations` (the last ones of runs that ended before), in the order of the runs.
std::vector<double> shares_after(const std::vector<ContestRun>& runs, size_t evaluations);
/// Evaluations until the median over the runs is at least `share`; absent if it never is.
std::optional<size_t> evaluations_to(const std::vector<ContestRun>& runs, double share);
/// Share of feasible trials among those after the first `skip` of each run; 1 if there are none.
double feasible_share(const std::vector<ContestRun>& runs, size_t skip);

}  // namespace tilewright::search
