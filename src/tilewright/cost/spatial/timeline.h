// The three queues of a program, tile by tile: when each instruction begins and ends.
#pragma once

#include <limits>

#include "tilewright/cost/spatial/tile_costs.h"

namespace tilewright::cost {

struct SpatialTimeline {
  double end = 0;                           ///< of the last instruction
  double load = 0, compute = 0, store = 0;  ///< cycles in which the modules work
};

/// When a program is of no use, and what of it is known without following it.
struct SpatialPatience {
  double limit = std::numeric_limits<double>::infinity();  ///< an end from this one on is of no use
  double loads = 0;                                        ///< all LOADs together
  double computes = 0;  ///< all COMPUTEs, and the STORE behind the last one
};

/// Gives up (the end is infinite) as soon as a queue has been idle or delayed for so long that what
/// it has to do cannot end before the limit. requires: `costs` of this unit and of the mapping's
/// tile.
SpatialTimeline timeline(const SpatialUnit& unit, const SpatialMapping& mapping,
                         SpatialTileCosts& costs, const SpatialPatience& patience = {});

}  // namespace tilewright::cost
