// Operands that a nest reads from memory besides what its port moves: each is copied to the chip
// first, as many elements of it as the nest uses. Internal.
//
//   for i in 16, j in 8 { Y[i, j] = max(C[i, j] + bias[j], 0.0) }
//     ->  for j in 8 { bias.l[j] = bias[j] }
//         for i in 16, j in 8 { Y[i, j] = max(C[i, j] + bias.l[j], 0.0) }
#pragma once

#include <vector>

#include "tilewright/codegen/fpga/graph.h"

namespace tilewright::codegen::fpga_design {

struct Fetched {
  struct Copy {
    Buffer buffer;  ///< on the chip
    std::vector<Counter> counters;
    Stmt body;
  };
  std::vector<Copy> copies;
  Stmt body;  ///< that reads the copies
};
/// `counters` are those around `body`.
Fetched fetch_operands(const std::vector<Counter>& counters, const Stmt& body,
                       const Surroundings& around);

}  // namespace tilewright::codegen::fpga_design
