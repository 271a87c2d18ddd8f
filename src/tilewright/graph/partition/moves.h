// Operators on tiles that move whole runs of memory: where layers write their results in place,
// nothing is left to do.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/graph/partition/subranges.h"

namespace tilewright::graph {

/// A Concat or Slice along the channel blocks of one image: every part is one run of memory.
struct BlockMove {
  ValueId whole = -1;
  std::vector<SubRange> parts;  ///< the inputs of a Concat, the output of a Slice
  bool gathers = false;         ///< Concat: the parts make the whole
};
/// Absent for other operators, for several images, and where parts are known values.
std::optional<BlockMove> block_move(const Graph& graph, const Node& node);

}  // namespace tilewright::graph
