// Drawing starting points among the trials, as FlexTensor does.
#pragma once

#include "tilewright/search/searcher.h"

namespace tilewright::search {

/// Draws a valid trial with probability proportional to start_probability, among those for which
/// `usable` holds; null if there is none.
const Trial* draw_start(const History& history, double gamma, Rng& rng,
                        const std::function<bool(const Trial&)>& usable);

/// Draws a valid trial evenly and takes it with probability exp(-gamma (cost - best) / best), else
/// the cheapest for which `usable` holds; null if there is none. source: FlexTensor's released
/// code, whose rule is in costs where the paper's is in performances.
const Trial* draw_start_or_best(const History& history, double gamma, Rng& rng,
                                const std::function<bool(const Trial&)>& usable);

}  // namespace tilewright::search
