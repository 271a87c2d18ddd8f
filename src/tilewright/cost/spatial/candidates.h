// Tiles that a mapper looks at, by a time that none of their mappings beats.
//
// Example: of two loops with the sizes 16, 32 and 8, 56 the tiles 16x8, 16x56, 32x8 and 32x56 are
// looked at; if 32x8 does not fit a memory, 32x56 is not, either. What a tensor's LOADs take
// depends on loops that move it only, so it is counted once for each pair of their sizes.
#pragma once

#include <vector>

#include "tilewright/cost/spatial/model.h"

namespace tilewright::cost {

struct SpatialCandidate {
  double least = 0;               ///< cycles that no order and no number of copies beats
  double before = 0;              ///< of these, those before the first COMPUTE
  std::array<double, 2> loads{};  ///< of all LOADs of each factor, each distinct tile once
  SpatialSizes tile{};
};

/// Tiles of these sizes (by loop, ascending) that fit and may take fewer cycles than `limit`, by
/// `least`, the least first; those that are equal in the order of their sizes.
std::vector<SpatialCandidate> promising_tiles(SpatialEvaluator& evaluator,
                                              const std::vector<std::vector<int64_t>>& sizes,
                                              double limit);

}  // namespace tilewright::cost
