// The searchers behind `multi_searcher`.
#pragma once

#include "tilewright/search/multi/multi_objective.h"

namespace tilewright::search {

/// Even draws without repetition.
std::unique_ptr<MultiSearcher> multi_random(MultiProblem problem, const MultiOptions& options);

/// NSGA-II: tournaments of two by rank and crowding, ordinal crossover like SBX with probability
/// 0.9, one decision mutated on average, duplicates drawn anew. Each `population` trials are a
/// generation; the first one is the best of the initial sample. source: Deb et al., 2002.
std::unique_ptr<MultiSearcher> nsga2(MultiProblem problem, const MultiOptions& options);

/// Bayesian optimisation: a Gaussian process per objective on its logarithm and per limit.
std::unique_ptr<MultiSearcher> mobo(MultiProblem problem, const MultiOptions& options);

/// Ours: the prior is the mean, Gaussian processes learn how far it is off; needs no initial
/// sample. requires: a prior.
std::unique_ptr<MultiSearcher> multi_prior(MultiProblem problem, const MultiOptions& options);

/// All points; with bounds the most promising first, and those left out whose bounds prove that
/// they are dominated or break a limit, so that the front is exact all the same. requires: a space
/// of at most `list_up_to` points.
std::unique_ptr<MultiSearcher> multi_enumerate(MultiProblem problem, const MultiOptions& options);

}  // namespace tilewright::search
