// Which layers of an integer graph Gemmini computes, and their program.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/gemmini/program.h"
#include "tilewright/compile/backend.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/quantize/abilities.h"

namespace tilewright::compile {

/// What Gemmini does itself: it rounds sums half to even when they leave the accumulator.
graph::IntegerAbilities gemmini_abilities();

/// What `prepare_for_gemmini` decided about the graph that it laid out.
struct GemminiMemo : BackendMemo {
  std::vector<std::string> devices;  ///< of each node: `gemmini/0`, or nothing
};

/// `model` quantised to scales of powers of two, its layers placed, and values at the borders of
/// launches pixel by pixel, their channels filled up to a multiple of DIM.
/// errors: Usage (no samples), Unsupported and Capacity (every node that is no layer of this
/// hardware, unless those may run on the processor), what the steps report.
Result<QuantizedModel> prepare_for_gemmini(const graph::Graph& model, const gemmini::Config& config,
                                           const QuantizeSettings& settings,
                                           const CompileOptions& options);

struct GemminiLaunch {
  gemmini::Program program;
  std::vector<LayerNote> notes;  ///< the tile of each layer, and the bytes that it moves
};
/// errors: Unsupported, Capacity, at the layer's name.
Result<GemminiLaunch> compile_for_gemmini(const gemmini::Config& config, const graph::Graph& graph,
                                          const graph::Group& launch);

}  // namespace tilewright::compile
