// Concatenations and splits that need no code: the parts of a concatenation are written where the
// whole is read, the pieces of a split are read where the whole was written.
#pragma once

#include <vector>

#include "tilewright/graph/partition/subranges.h"

namespace tilewright::graph {

/// Where the parts of a Concat or Split along an outermost axis (those before it have one element)
/// are in the whole, in their order; nothing where one would not lie on a multiple of 64 bytes, or
/// for other operators.
std::optional<std::vector<SubRange>> parts_of(const Graph& graph, const Node& node);

struct Views {
  std::vector<SubRange> part;  ///< of each value
  std::vector<bool> is_parts;  ///< of each node: a Concat or Split that needs no code
};

/// Chooses the operators that become places. A value has one place: where several operators want
/// it, the first in the order of the graph gets it, and inputs, outputs and constants of the graph
/// keep their own. `movable` says whether a node's results may be placed freely.
Views find_views(const Graph& graph, const std::vector<bool>& movable);

}  // namespace tilewright::graph
