// How many bytes kernels hand to each other, beside what they cannot do without.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/graph/partition/fuse.h"

namespace tilewright::graph {

/// Bytes between the steps of a graph; inputs, outputs and constants of the graph do not count.
///
/// A group is a *worker* if its anchor computes sums, products or something opaque, else a *mover*:
/// elementwise operators, copies, changes of layout. Movers could in principle happen while a
/// worker writes or reads, so the compulsory bytes are: each value a worker makes that another one
/// needs, written once, and read once by each worker that needs it, directly or through movers, at
/// the smallest size it has on the way.
struct Traffic {
  int64_t moved = 0;  ///< values that each step reads (once each, of a slice its part) and writes
  int64_t compulsory = 0;
  /// Bytes of movers by the step's name, most first: what could be saved.
  std::vector<std::pair<std::string, int64_t>> movers;
};

/// requires: `groups` is `fuse` of `graph`, or launches gathered from it.
Traffic traffic_of(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tilewright::graph
