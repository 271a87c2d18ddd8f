// How often the loops of FPGA processes begin an iteration.
#pragma once

#include <optional>
#include <string>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// Why the unrolled loops in `loop` (one with mark `ii`) cannot run side by side in exact math:
/// they add several products to one float in one iteration, and only a tree of adders does that in
/// time. Absent if they can.
std::optional<std::string> sums_out_of_order(const For& loop, MathMode math);

}  // namespace tilewright::lower
