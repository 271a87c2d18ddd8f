// Tiles at the border of launches only: for accelerators that take whole networks.
#pragma once

#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/layout/tiles.h"

namespace tilewright::graph {

/// A graph and the launch of each of its nodes; -1: the CPU's.
struct Launched {
  Graph graph;
  std::vector<int> launch;
  std::vector<ValueId> origin;  ///< per value: the value of the first graph with its numbers
};

/// Values that pass from one launch to another, or between a launch and the CPU, do so in tiles of
/// `block_in` channels and `batch` images; places beyond the batch or the channels hold 0:
///
///   CPU --x--> launch 0  =>  CPU -> ToTiles (CPU) --tiles--> FromTiles (launch 0) -> launch 0
///
/// Inside, a launch has its values as before: a FromTiles or ToTiles of a launch says how its
/// memory is to be read. Computes the same; names of inputs and outputs stay.
///   requires: `launch` has an entry per node.
///   errors: Unsupported: a value at a border that is no image, with its name.
Result<Launched> tile_borders(const Graph& graph, const std::vector<int>& launch,
                              const TileShape& tile);

}  // namespace tilewright::graph
