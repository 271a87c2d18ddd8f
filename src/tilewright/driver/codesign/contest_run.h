// Contests of searches for designs: everything that a space holds is evaluated once and kept, then
// searches are replayed on that table, which takes seconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/driver/codesign/search_run.h"

namespace tilewright::driver {

struct ContestSettings {
  /// Of `search::multi_methods`, perhaps with an acquisition: `mobo:ehvi`.
  std::vector<std::string> methods = {"random", "nsga2", "mobo", "mobo:ehvi", "ours"};
  /// Budgets; a quarter of each is the initial sample of methods that have one.
  std::vector<int> evaluations = {10, 20, 40};
  int seeds = 20;
};

/// A method with one budget, over all seeds. Shares are of the true front's hypervolume.
struct ContestLine {
  std::string method;
  int evaluations = 0;
  double median = 0, worst = 0, best = 0;
  double feasible = 0;  ///< share of the proposals behind the initial sample
  double seconds = 0;   ///< of one run's proposals
};

/// Evaluations until a method's median is what another one has with the largest budget.
struct ContestRace {
  std::string method, other;
  std::optional<size_t> evaluations;  ///< absent: the method has less in the end
};

struct ContestResult {
  size_t points = 0, feasible = 0, front = 0;
  double table_seconds = 0;      ///< of the evaluations that this run added
  std::vector<double> ceilings;  ///< by budget: share of as many points of the front, picked best
  std::vector<ContestLine> lines;
  /// How far the prior is off, by objective: mean and standard deviation over all points, log10.
  std::vector<std::pair<double, double>> prior_off;
  std::vector<ContestRace> races;  ///< each method with each other one
};

/// Keeps the table in `folder`/table.sqlite: every point of the space with all objectives; goals
/// of another contest on it may be others.
/// errors: as `search_designs`.
Result<ContestResult> run_contest(const SearchSubject& subject, const ContestSettings& settings,
                                  const std::string& folder);

}  // namespace tilewright::driver
