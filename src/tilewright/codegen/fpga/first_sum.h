// Sums begin with their first term: the nest that only sets them goes away. Internal.
#pragma once

#include "tilewright/accel/fpga/design.h"

namespace tilewright::codegen::fpga_design {

/// `C[i] = 0 for all i; for l, i: C[i] += x`  ->  `for l, i: C[i] = (l == 0 ? 0 : C[i]) + x`
/// where the nest that adds, and nothing before it, goes over exactly the elements that were set.
void start_sums_with_first(fpga::Process& process);

}  // namespace tilewright::codegen::fpga_design
