// What nobody who uses a graph may see change.
#pragma once

#include <string>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// The first difference in the names, types and order of inputs and outputs, in words; empty if
/// there is none. `run_passes` checks that no pass makes one. A pass may find out how long an
/// output is of which only a bound was known (NonZero of a constant): that is no difference.
std::string border_difference(const Graph& before, const Graph& after);

}  // namespace tilewright::graph
