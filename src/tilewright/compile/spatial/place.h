// What runs on a spatial accelerator: the layers that its unit does faster than its host.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/options.h"
#include "tilewright/compile/quantized_model.h"
#include "tilewright/compile/spatial/network.h"

namespace tilewright::compile {

/// What `prepare_for_spatial` decided about the graph; nobody else can compile it.
struct SpatialMemo : BackendMemo {
  explicit SpatialMemo(const spatial::Design& design) : mappings(design) {}
  std::vector<std::string> devices;  ///< of each node: `spatial/0`, or nothing
  spatial::Mappings mappings;
};

/// `model` quantised to scales of powers of two, its layers placed.
/// errors: Usage (no samples), Unsupported and Capacity (every node that is no layer of this
/// design, unless those may run on the processor), what the steps report.
Result<QuantizedModel> prepare_for_spatial(const graph::Graph& model, const spatial::Design& design,
                                           const QuantizeSettings& settings,
                                           const CompileOptions& options);

}  // namespace tilewright::compile
