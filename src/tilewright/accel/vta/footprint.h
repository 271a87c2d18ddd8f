// What an instruction of VTA touches (accel/common/footprint.h).
#pragma once

#include <span>

#include "tilewright/accel/common/footprint.h"
#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// Numbers of memories: those of the instruction encoding, Acc8 as Acc, and DRAM.
inline constexpr int kDramMemory = 5;
constexpr int number(Mem mem) { return static_cast<int>(mem == Mem::Acc8 ? Mem::Acc : mem); }

/// On-chip memories in elements, with a hull per operand; DRAM in bytes, row by row. `uops`:
/// contents of the micro-op memory when the instruction runs. GEMM and ALU write Out wherever they
/// write Acc. requires: uop_begin <= uop_end <= uops.size().
accel::Footprint footprint(const Config& config, const Insn& insn, std::span<const Uop> uops);

}  // namespace tilewright::vta
