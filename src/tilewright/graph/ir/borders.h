// What nobody who uses a graph may see change.
#pragma once

#include <string>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// The first difference in the names, types and order of inputs and outputs, in words; empty if
/// there is none. `run_passes` checks that no pass makes one.
std::string border_difference(const Graph& before, const Graph& after);

}  // namespace tilewright::graph
