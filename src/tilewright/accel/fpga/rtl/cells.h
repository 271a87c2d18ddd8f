// Cells that the Verilog of a design takes on an FPGA of the xc7 family, before anyone synthesises
// it, module by module.
//
// Nothing is flattened, so what a module takes depends on its parameters alone: an adder of 17 bits
// is 17 LUTs wherever it stands. Registers are counted from the text of the modules, memories by
// their words and bits. What else a module takes are formulas in its parameters, whose constants
// were fitted to Yosys (bench/results/fpga.md). The kernel, which connects them, is counted from
// its own lines: bits that are chosen, compared and added.
//
// `bench_fpga cells` holds them against Yosys.
#pragma once

#include <string>

#include "tilewright/accel/common/rtl/synth.h"

namespace tilewright::fpga {

/// What Yosys would make of `verilog`: the text of `verilog(design, Numbers::Fixed)`.
accel::Synthesis predicted_cells(const std::string& verilog);

}  // namespace tilewright::fpga
