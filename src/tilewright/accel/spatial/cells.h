// Cells that the Verilog of a design takes on an FPGA of the xc7 family, before anyone synthesises
// it: LUTs, flip-flops, DSPs and block RAMs, module by module.
//
// Each module is counted as its text reads (rtl/verilog/*.v.in). A register is as many flip-flops
// as it has bits, a product of bytes is a DSP, a memory with a read of its own cycle is block RAM,
// one that is read at once is LUTs with a choice among them, and a choice among n words costs
// n - 1 thirds of a LUT for each bit. So the queue of LOAD, 1 024 bits wide and 512 deep, is 29
// block RAMs of 512 words of 36 bits, and the register for a word that is read as it is written is
// 1 024 flip-flops. What no such rule gives (the logic of walks through loops, of bursts, of
// lines) is a constant of the module, measured.
//
// `tilewright synth` prints both; codesign/synth holds one to the other.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/accel/spatial/design.h"

namespace tilewright::spatial {

/// What a module is there for.
enum class CellPart {
  Array,       ///< units: multipliers, adders, and the registers between them
  Wiring,      ///< what brings operands and sums into step
  Scratchpad,  ///< banks, and what chooses among them
  Local,       ///< private memory for sums, and for the weights of taps
  Port,        ///< LOAD and STORE
  Control      ///< queues, fetch, biases, COMPUTE and its reads of rows
};

struct ModuleCells {
  std::string_view name;  ///< of the Verilog
  CellPart part = CellPart::Control;
  double copies = 1;
  double luts = 0, ffs = 0, dsps = 0;  ///< of one copy, without the modules in it
  double brams = 0;                    ///< of 18 Kb
};

/// All modules; one that is there with several parameters is there several times.
/// requires: a legal design.
std::vector<ModuleCells> predicted_cells(const Design& design);

}  // namespace tilewright::spatial
