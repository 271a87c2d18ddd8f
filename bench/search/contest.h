// Searchers against each other: the same space, warm-up, evaluation and budgets; several seeds.
#pragma once

#include <string>
#include <vector>

#include "judge.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/space.h"

namespace tilewright::bench {

/// A case that was searched before.
struct Teacher {
  tune::KnownProgram program;
  std::vector<std::string> points;  ///< the best, in words, the best first
};

struct ContestOptions {
  /// Names of tune/methods.h; `xgb`: TVM's explorer on loop programs, `xgb-decisions`: on the
  /// decisions' own features, `xgb-cost`: on those, fitting the cost instead of the rank; `tree`:
  /// on the loop tree; `xgb-taught`, `tree-taught`: that begins as with `tune --transfer model`:
  /// its model learns from `teachers`, and the points of the nearest one are tried first.
  std::vector<std::string> methods;
  int seeds = 5, trials = 200, warm_up = 8, batch = 8;
  double seconds = search::kInvalid;  ///< searching, compiling and measuring
  /// Costs are the space's own prior, a function that can be evaluated any number of times: for
  /// searchers that do not know it.
  bool by_model = false;
  /// Those of a case's structure are taken.
  std::vector<Teacher> teachers = {};
};

/// One search.
struct Run {
  std::string method;
  uint64_t seed = 0;
  std::vector<double> costs;    ///< of the rule's; by trial; kInvalid for those that do not work
  std::vector<double> seconds;  ///< when each trial was known: thinking, compiling, measuring
  double thinking = 0;          ///< units: s
  std::string trace;            ///< of the cheapest, printed
};

struct Contest {
  std::string name, space;
  double space_size = 0;
  double rule_ns = 0;
  int trials = 0, warm_up = 0;
  double seconds = search::kInvalid;
  std::vector<std::string> methods;
  std::vector<Run> runs;
  /// The cheapest schedule that any run found.
  double oracle() const;
};

/// Trials until `run` has a schedule within `share` of `cost`; 0 if it never has.
size_t trials_to(const Run& run, double cost, double share);
/// The same. units: s.
double seconds_to(const Run& run, double cost, double share);

/// What a search of `trials` by `method` teaches about a case, with costs by the model of the
/// machine. errors: as hold_contest.
Result<Teacher> taught_by(const measure::Task& task, const tune::ScheduleSpace& space,
                          const std::string& method, int trials);

/// `task` must outlive the call. Points of other spaces than `space` take part where a method says
/// so. errors: Usage (a method that does not exist), Unsupported (a model this build lacks).
Result<Contest> hold_contest(const measure::Task& task, const std::string& space_name,
                             const tune::ScheduleSpace& space, Judge& judge,
                             const ContestOptions& options);

}  // namespace tilewright::bench
