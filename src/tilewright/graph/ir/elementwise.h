// Operators that compute every element from those at its place.
#pragma once

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Each element of the output depends on the elements at the same place of the inputs (after
/// broadcasting) only.
bool is_elementwise(const Node& node);

}  // namespace tilewright::graph
