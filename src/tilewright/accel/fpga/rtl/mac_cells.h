// Cells of one multiply-accumulate of our Verilog, by Yosys: what a device file says of it under
// [operator.mac.TYPE.rtl].
#pragma once

#include <string>

#include "tilewright/accel/common/rtl/synth.h"
#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {

/// Products of two operands of `type`, added to sums of `sum`: integers of 32 bits, or f32, as
/// programs have them.
struct MacUnit {
  Number type, sum;
  int product_cycles = 2, sum_cycles = 1;
  bool pair = false;  ///< two products of integers with a common factor, in one multiplier
};

/// Module `kMac`, as the generator connects product and sum, with the modules that it is made of.
std::string mac_verilog(const MacUnit& unit);
inline constexpr const char* kMac = "mac";

/// Of the unit, module by module; of a pair, of both. A tool that flattens may put the sum of an
/// integer into its DSP. errors: those of accel::synthesise.
Result<accel::Cells> mac_cells(const MacUnit& unit, accel::CellFamily family);

}  // namespace tilewright::fpga
