// How many accesses of one iteration of a loop meet in one bank. Private to lower.
#pragma once

#include <set>

#include "tilewright/lower/processes.h"

namespace tilewright::lower {

/// An access by indices over the loops of a counter and the unrolled loops inside.
struct ElementAccess {
  std::vector<Expr> indices;
  std::vector<const For*> unrolled;  ///< around it, inside of the counter's loops
};

/// The most different elements that `accesses` reach in one bank in one iteration of `counter`;
/// where there are too many iterations to try, a bound from above. Other variables count as 0.
int64_t most_in_a_bank(const std::vector<ElementAccess>& accesses, const Buffer& buffer,
                       const std::vector<Banking>& banking, const std::vector<const For*>& counter);

}  // namespace tilewright::lower
