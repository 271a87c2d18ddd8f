// The static memory plan: where in one arena each value between kernels lives, and when.
#pragma once

#include <vector>

#include "tilewright/graph/partition/fuse.h"

namespace tilewright::graph {

/// Places of the values that groups hand to each other. Inputs, outputs and constants of the graph
/// are not in the arena.
struct MemoryPlan {
  std::vector<int64_t> offset;  ///< bytes into the arena of each value (multiple of 64), or -1
  /// The graph's output that is this value under another shape: its memory is written at once; or
  /// -1.
  std::vector<ValueId> made_in;
  std::vector<ValueId> alias;  ///< the value whose memory this one is under another shape, or -1
  /// Value whose memory this one takes over while being computed (elementwise groups), or -1.
  std::vector<ValueId> in_place;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  ///< most bytes alive at once: no plan of this order can need less
  bool optimal = false;     ///< proven: with these lifetimes no plan needs less than arena_bytes
};

/// requires: `groups` is `fuse` of `graph` (any options).
MemoryPlan plan_memory(const Graph& graph, const std::vector<Group>& groups);

/// errors: Invalid if two values that are alive together overlap (used by tests and debug builds).
Status verify_plan(const Graph& graph, const std::vector<Group>& groups, const MemoryPlan& plan);

}  // namespace tilewright::graph
