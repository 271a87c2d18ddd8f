// From the nodes of one launch of an integer graph to the layers of a spatial accelerator.
#pragma once

#include <map>
#include <vector>

#include "tilewright/codegen/spatial/network.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

/// What these accelerators do themselves, for prepare_quantize and quantize.
graph::IntegerAbilities spatial_abilities();

struct SpatialNetwork {
  spatial::Network network;
  /// Values of the graph that are values of `network`.
  std::map<graph::ValueId, int> ids;
};

/// The layers of `nodes` (indices of nodes of `graph`, ascending). Values that others make are its
/// inputs, in the order they are read; values that others read, or that are outputs of `graph`, its
/// outputs, in the order they are made.
///   requires: `graph` is in integers, as quantize() makes it for spatial_abilities.
///   errors: Unsupported: every node that is no layer, with the reason.
Result<SpatialNetwork> spatial_network(const graph::Graph& graph, const std::vector<int>& nodes);

}  // namespace tilewright::compile
