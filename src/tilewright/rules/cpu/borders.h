// Loops cut where conditions start and stop to hold, so that the middle runs without them: padding
// costs only the iterations at the border.
#pragma once

#include <string>
#include <vector>

#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Iterations [begin, end) of a loop where every condition of a block holds, whatever the other
/// loops do; empty (begin == end) if there are none.
struct Interior {
  int64_t begin = 0, end = 0;
};

/// The comparisons of integers in a conjunction, each as what must not be negative.
std::vector<Expr> margins_of(const Expr& condition);

/// The interior of `loop` for the block's selects (a conjunction of comparisons each).
Interior interior_of(const BlockFacts& block, const Func& func, const std::string& loop);

/// Cuts all parts of `loop` around pieces of `block` at their interiors. A short border becomes
/// single iterations, in which conditions on this loop are constants. With `ragged`, the last
/// iteration (a partial tile) stands alone as well.
void cut_borders(Draft& draft, const std::string& block, const std::string& loop, bool ragged);

/// Cuts the last iteration of `loop`, a partial tile, off outside of the loops around it, where
/// these alone are too few pieces for `threads`: a loop that is cut inside of them cannot be joined
/// with them. Returns whether it did.
bool cut_outside(Draft& draft, const std::string& block, const std::string& loop, int threads);

}  // namespace tilewright::rules
