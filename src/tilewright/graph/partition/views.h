// Values that lie inside others: the parts of a concatenation are written where the whole is read,
// the pieces of a split are read where the whole was written. Nothing is copied.
#pragma once

#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Where a value's bytes are.
struct Part {
  ValueId whole = -1;  ///< -1: nowhere but its own place
  int64_t offset = 0;  ///< units: bytes into `whole`
};

/// One operator whose result takes no work: each of its parts has its place in the whole.
struct PartsOf {
  ValueId whole = -1;
  std::vector<ValueId> parts;
  std::vector<int64_t> offsets;  ///< units: bytes
};

/// How a Concat or Split along an outermost axis (those before it have one element) divides its
/// bytes; nothing where parts would not lie on multiples of 64 bytes, or for other operators.
std::optional<PartsOf> parts_of(const Graph& graph, const Node& node);

struct Views {
  std::vector<Part> part;      ///< of each value
  std::vector<bool> is_parts;  ///< of each node: a Concat or Split that needs no code
};

/// Chooses the operators that become places. A value has one place: where several operators want
/// it, the first in the order of the graph gets it, and inputs, outputs and constants of the graph
/// keep their own. `movable` says whether a node's results may be placed freely.
Views find_views(const Graph& graph, const std::vector<bool>& movable);

}  // namespace tilewright::graph
