// The rewriting inside prepare_quantize, for graphs that are already rounded in places.
#pragma once

#include <set>
#include <string>

#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/quantize/abilities.h"

namespace tilewright::graph {

/// Whatever can be a convolution becomes one (see prepare_quantize). Values named in `boundaries`
/// are kept: no two nodes are merged across them. Convolutions keep the names of their nodes.
Result<Graph> to_convolutions(const Graph& graph, PassContext& context,
                              const std::set<std::string>& boundaries,
                              const IntegerAbilities& target = {});

}  // namespace tilewright::graph
