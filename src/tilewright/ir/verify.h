// The verifier: what a program must satisfy at each stage.
#pragma once

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// Tensor: one nest per block, serial loops, global scope. Scheduled: anything steps may build.
/// Lowered: also If outside blocks, compacted allocations, unrolled loops.
enum class Stage { Tensor, Scheduled, Lowered };

/// errors: Invalid, one per broken rule (others hold the rest), with the loop, block or buffer
/// named.
Status verify(const Func& func, Stage stage);

}  // namespace tilewright
