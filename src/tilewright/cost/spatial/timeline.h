// The three queues of a program, tile by tile: when each instruction begins and ends.
#pragma once

#include "tilewright/cost/spatial/tile_costs.h"

namespace tilewright::cost {

struct SpatialTimeline {
  double end = 0;                           ///< of the last instruction
  double load = 0, compute = 0, store = 0;  ///< cycles in which the modules work
};

/// requires: `costs` of this unit and of the mapping's tile.
SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping,
                         SpatialTileCosts& costs);

}  // namespace tilewright::cost
