// The three queues of a program, tile by tile: when each instruction begins and ends.
#pragma once

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

struct SpatialTimeline {
  double end = 0;                           ///< of the last instruction
  double load = 0, compute = 0, store = 0;  ///< cycles in which the modules work
};

SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping);

}  // namespace tilewright::cost
