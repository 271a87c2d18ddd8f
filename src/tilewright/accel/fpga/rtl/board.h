// A design on an iCE40 UltraPlus: the memory outside is its four RAMs of 32 KiB, one for each
// argument, and a host loads, starts and reads over two wires (verilog/ice40.v).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/design.h"
#include "tilewright/base/result.h"

namespace tilewright::fpga {

/// The module at the top: clk, rx, tx.
inline constexpr const char* kBoardTop = "ice40_top";
/// Cycles of the clock for each bit of the host's wires.
inline constexpr int kBoardDivide = 8;
/// Words of 16 bits of one argument's memory.
inline constexpr int64_t kBoardWords = 16384;

/// All modules. `bytes`: of each argument.
/// errors: Capacity (more or larger arguments than there are RAMs); Unsupported (an argument that
/// two processes move, beats of other than 2 bytes, several bursts under way), as rtl_supports.
Result<std::string> board_verilog(const Design& design, const std::vector<int64_t>& bytes);

}  // namespace tilewright::fpga
