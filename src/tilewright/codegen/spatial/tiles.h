// The tiles of a mapping, in the order of the program, and where those of a packed tensor lie.
#pragma once

#include <functional>
#include <map>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::spatial {

struct Tile {
  cost::SpatialBox box;
  bool begins = false, ends = false;  ///< sums
};
void for_each_tile(const cost::SpatialLayer& layer, const cost::SpatialMapping& mapping,
                   const std::function<void(const Tile&)>& visit);

/// Starts of the loops that move a tensor, 0 for the others: what tells its tiles apart.
cost::SpatialSizes tile_key(const cost::SpatialUnit& unit, int tensor, const cost::SpatialBox& box);

/// One tile of a packed tensor.
struct PackedTile {
  cost::SpatialBox box;
  uint64_t offset = 0;  ///< from the first one on; biases, if any, come first
  int64_t biases = 0;   ///< 32-bit words
};
/// By `tile_key`; offsets in the order of first use.
using PackedTiles = std::map<cost::SpatialSizes, PackedTile>;
PackedTiles packed_tiles(const cost::SpatialUnit& unit, const cost::SpatialMapping& mapping,
                         bool biased);

}  // namespace tilewright::spatial
