// Extents known only at run time: where an operator puts those of its inputs.
#pragma once

#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::graph {

/// The axis of a value whose extent is known only at run time.
struct Extent {
  int axis = -1;  ///< -1: all its extents are known
  int id = -1;    ///< values with the same id have the same extent
  bool operator==(const Extent&) const = default;
};

/// The extents of the results, given those of the inputs (one each); `next_id` numbers new ones.
/// An operator that is not listed here takes no such input. requires: `types` are what the shape
/// rule gave. errors: Unsupported, with the reason.
Result<std::vector<Extent>> dynamic_extents(const tensor::OpCall& call,
                                            const std::vector<Extent>& inputs,
                                            const std::vector<tensor::TensorType>& types,
                                            int& next_id);

}  // namespace tilewright::graph
