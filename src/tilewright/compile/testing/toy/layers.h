// Which layers of an integer graph toy computes, and their instructions.
#pragma once

#include <vector>

#include "tilewright/compile/testing/toy/hardware.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/place.h"

namespace tilewright::toy {

/// Where each node runs: matrix products (ConvInteger over single pixels) with the Requantize
/// behind them are toy's.
std::vector<graph::Placement> place(const graph::Graph& graph);

/// Code of a launch, with its constants in the image.
/// errors: Unsupported, Capacity, at the layer's name.
Result<Program> compile(const graph::Graph& graph, const graph::Group& launch);

}  // namespace tilewright::toy
