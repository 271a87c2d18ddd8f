// A space of designs and a workload as a problem that searchers solve: points, objectives, limits,
// and what is known of a point before it is evaluated.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/codesign/evaluation.h"
#include "tilewright/codesign/space.h"
#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::codesign {

struct Goals {
  std::vector<Objective> objectives = {Objective::Latency, Objective::Power, Objective::Area};
  std::vector<Limit> limits;
};

/// What is known of a design without mapping layers: area, peak power and fixed power exactly, time
/// as a bound, energy and the power of counted events as an opinion. This and `expected` take about
/// a hundredth of an evaluation.
DesignResult optimistic(const DesignEvaluator& evaluator, const Hardware& hardware);
/// The same with opinions instead of bounds (opinion.h; of VTA there are only bounds): what an
/// evaluation will probably give.
DesignResult expected(const DesignEvaluator& evaluator, const Hardware& hardware);

/// Decisions about memories: with designs that differ in these alone one after the other, from
/// large ones to small ones, an evaluator reuses most mappings.
std::vector<size_t> memory_decisions(const DesignSpace& space);

/// Its points are useful ones (unmatched.h), `expected` is its prior, and `optimistic` gives its
/// bounds where every objective and limit has one. `space` and `evaluator` must outlive the
/// problem.
search::MultiProblem make_problem(const DesignSpace& space, const DesignEvaluator& evaluator,
                                  const Goals& goals);

}  // namespace tilewright::codesign
