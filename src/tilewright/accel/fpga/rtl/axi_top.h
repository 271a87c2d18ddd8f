// A design as boards take it: AXI4 and AXI4-Lite with the names that vendors' tools look for.
//
//   ap_clk, ap_rst_n                 s_axi_control_*   registers, in the layout of
//   docs/fpga-timing.md m_axi_gmem0_*, m_axi_gmem1_*     a port to memory each
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga {

/// The module at the top.
inline constexpr const char* kAxiTop = "fpga_axi";

/// What a design answers when it is asked which one it is: a number made of its Verilog, never 0.
/// With a table designs that differ in numbers alone have the same. requires: rtl_supports(design).
uint32_t identity(const Design& design, Numbers numbers = Numbers::Fixed);

/// The module at the top alone; those below are in `verilog(design, numbers)`.
/// requires: rtl_supports(design).
std::string axi_top(const Design& design, Numbers numbers = Numbers::Fixed);

}  // namespace tilewright::fpga
