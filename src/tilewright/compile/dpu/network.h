// From the nodes of one launch of an integer graph to the layers that the DPU's compiler takes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tilewright/accel/dpu/config.h"
#include "tilewright/codegen/dpu/network.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

/// Binary points: real value = integer * 2^-fix_point. Per value of a graph; absent where unknown.
using FixPoints = std::vector<std::optional<int>>;
/// Those of the values of `quantized.graph`, from its scales.
FixPoints fix_points(const graph::QuantizedGraph& quantized);

/// What the DPU does itself, for prepare_quantize and quantize.
graph::IntegerAbilities dpu_abilities(const dpu::Config& config);

struct DpuNetwork {
  dpu::Network network;
  /// Per value of `network`: the value of the graph that it is. Of an input that FromTiles reads,
  /// and of an output that ToTiles makes, it is the value in tiles.
  std::vector<graph::ValueId> origin;
  /// Values of the graph that are values of `network`, their forms in tiles too.
  std::map<graph::ValueId, dpu::ValueId> ids;
};

/// The layers of `nodes` (indices of nodes of `graph`, ascending). A network is about one image:
/// the batch is the caller's. Values that others make are its inputs, in the order they are read;
/// values that others read, or that are outputs of `graph`, its outputs, in the order they are
/// made.
///   requires: `graph` is in integers, as quantize() makes it for dpu_abilities.
///   errors: Unsupported, Invalid: every node that is no layer of the DPU, with the reason.
Result<DpuNetwork> dpu_network(const graph::Graph& graph, const std::vector<int>& nodes,
                               const FixPoints& fix_points);

/// Whether layer_nodes(node) (compile/fixed_layers.h) is a layer within the limits of the hardware.
/// errors: Unsupported, with the reason.
Status supports_layer(const dpu::Config& config, const graph::Graph& graph, int node,
                      const FixPoints& fix_points);

}  // namespace tilewright::compile
