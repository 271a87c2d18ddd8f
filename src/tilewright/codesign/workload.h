// What a design has to run: the layers of a model that its unit can do, each distinct one once, and
// the rest, which its host does.
//
// Example: ResNet-50 has 53 convolutions and a product, of which 21 are distinct; its pools and
// additions are the host's. Batch normalisation and ReLU cost nothing: they go into weights and
// into the STORE behind a layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/codesign/association.h"
#include "tilewright/cost/spatial/layer.h"
#include "tilewright/graph/ir/graph.h"

namespace tilewright::codesign {

struct WorkloadLayer {
  cost::SpatialLayer layer;
  int64_t runs = 1;                ///< how often the model runs it; a group counts as a run
  std::vector<std::string> nodes;  ///< that are this layer
};

/// A node that no unit does: bytes that it reads and writes as int8, and its multiplications.
struct HostNode {
  std::string node, op, reason;
  int64_t bytes = 0, macs = 0;
};

struct Workload {
  std::string name;
  std::vector<WorkloadLayer> layers;
  std::vector<HostNode> host;
  int64_t macs() const;  ///< of the layers
};

/// errors: Unsupported (no layer in the whole model; why, node by node).
Result<Workload> workload_of(const graph::Graph& graph);

/// The computations of a tensor expression as layers that run once each; products of three and more
/// factors as `with_order` has them.
/// errors: Unsupported (no layer; why, stage by stage), Usage (of with_order).
Result<Workload> workload_of(const Func& func, int order = 0);

}  // namespace tilewright::codesign
