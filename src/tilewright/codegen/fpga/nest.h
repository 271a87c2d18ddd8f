// A perfect nest of loops as a nest of the design. Internal.
//
// Loops are changed until their accesses fit the memories: the innermost loop moves as many
// elements side by side as a beat has and banks take, and a loop over several banks becomes two.
#pragma once

#include <vector>

#include "tilewright/codegen/fpga/graph.h"

namespace tilewright::codegen::fpga_design {

struct BuiltNest {
  fpga::Nest nest;
  int argument = -1;  ///< that it moves; -1: none
  bool writes = false;
};

/// `loops.counters` around `body`, at most one iteration every `wanted` cycles.
/// errors: Unsupported, as GraphBuilder.
Result<BuiltNest> build_nest(const Loops& loops, const Stmt& body, int64_t wanted,
                             const fpga::Design& design, const Surroundings& around);

}  // namespace tilewright::codegen::fpga_design
