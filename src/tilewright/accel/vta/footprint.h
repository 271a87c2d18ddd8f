// What an instruction touches: the common ground of token insertion, checker and simulators.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// Elements [begin, end) of an on-chip memory.
struct SramRange {
  Mem mem = Mem::Inp;  ///< Acc8 counts as Acc
  uint32_t begin = 0, end = 0;
  bool write = false;
};

/// Rows of DRAM; units: bytes. Row i is [address + i*pitch, address + i*pitch + width).
struct DramRows {
  uint64_t address = 0, pitch = 0, width = 0;
  uint32_t rows = 0;
  bool write = false;
};

struct Footprint {
  std::vector<SramRange> sram;  ///< a hull per operand: may be larger than what is touched
  std::vector<DramRows> dram;
};

/// `uops`: contents of the micro-op memory when the instruction runs. GEMM and ALU write Out
/// wherever they write Acc. requires: uop_begin <= uop_end <= uops.size().
Footprint footprint(const Config& config, const Insn& insn, std::span<const Uop> uops);

/// Whether both touch a byte and one of them writes.
bool conflict(const SramRange& a, const SramRange& b);
bool conflict(const DramRows& a, const DramRows& b);  ///< exact, rows against rows
bool conflict(const Footprint& a, const Footprint& b);

}  // namespace tilewright::vta
