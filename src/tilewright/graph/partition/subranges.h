// Values that are a run of another value's bytes, so that nothing is copied between the two.
//
//   y = Concat(a, b) of f32 vectors with 16 and 8 elements: a is bytes 0 to 63 of y, b is bytes 64
//   to 95. Who makes a and b writes there; y takes no work.
#pragma once

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Where the bytes of one value are in another.
struct SubRange {
  ValueId value = -1;
  ValueId whole = -1;  ///< -1: `value` has a place of its own
  int64_t offset = 0;  ///< of the first byte; units: bytes into `whole`
};

}  // namespace tilewright::graph
