// Layers of an integer graph whose scales are powers of two (graph/quantize/abilities.h), and where
// they run: for accelerators that take whole layers.
//
//   ConvInteger -> RequantizeFixed      one layer: a convolution, its bias, shift and activation
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/partition/place.h"
#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::compile {

/// A convolution, or a transposed one, and the requantisation behind it, in numbers.
struct FixedConv {
  int sum = -1;                 ///< the node of the sum
  std::vector<int8_t> weights;  ///< as ConvInteger's
  std::vector<int32_t> bias;    ///< of each output channel
  int64_t groups = 1;
  int shift = 0;
};

/// The nodes that make one layer together with `node`: itself, and the sum that only it reads.
std::vector<int> layer_nodes(const graph::Graph& graph, int node);

/// A sum of products, which belongs to the requantisation behind it.
bool is_sum(const graph::Node& node);

/// What `node`, a RequantizeFixed, ends. `mine`: nodes of the launch; only they may read the sum.
/// errors: Unsupported, with the reason.
Result<FixedConv> fixed_conv(const graph::Graph& graph, int node, const std::set<int>& mine);

/// Nodes without a path through the processor between them share a launch: for each node the number
/// of its launch, or -1 where `on_device` is false.
std::vector<int> launches_of(const graph::Graph& graph, const std::vector<bool>& on_device);

/// Nodes that are layers, or the sum inside of one; the others' reasons by name.
struct LayerChoice {
  std::vector<bool> on_device;
  std::map<std::string, Error> reasons;
  std::map<std::string, std::string> left_out;  ///< on purpose, with the reason
};
/// `supports(node)`: whether layer_nodes(node) is a layer; `left_out(node)`: why it stays on the
/// processor on purpose, or nothing.
LayerChoice choose_layers(const graph::QuantizedGraph& quantized,
                          const std::function<Status(int)>& supports,
                          const std::function<std::string(int)>& left_out);

/// Of a graph that is the chosen one, or has conversions at the borders of launches besides, for
/// which `between` is the reason.
std::vector<graph::Placement> placements_of(const graph::Graph& graph,
                                            const std::vector<int>& launch,
                                            const LayerChoice& choice, const std::string& between);

}  // namespace tilewright::compile
