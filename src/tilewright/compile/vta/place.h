// What runs on VTA: decided once, by compiling each layer, for `check` and `compile` alike.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/vta/launch.h"
#include "tilewright/graph/partition/place.h"

namespace tilewright::compile {

/// Whether there is code for this hardware at all: 8-bit operands and results.
/// errors: Unsupported, naming the widths.
Status check_compilable(const vta::Config& config);

/// Where each node of a tiled graph runs. A layer that the compiler has no code for, or that does
/// not fit the memories, is the CPU's, with what the compiler said as the reason; moves of whole
/// channel blocks between layers of the accelerator are its own too (graph/partition/moves.h).
/// errors: Interrupted.
Result<std::vector<graph::Placement>> place_on_vta(const graph::Graph& tiled,
                                                   const vta::Config& config,
                                                   const VtaLaunchOptions& options);

}  // namespace tilewright::compile
