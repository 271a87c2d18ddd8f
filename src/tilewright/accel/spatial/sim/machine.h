// Cycles of a program of `spatial`, one by one: three queues, tokens, the read port, the banks of
// the scratchpad. There is no data: time never depends on it. docs/spatial-timing.md is the
// contract.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

/// A loop of a COMPUTE; `step` bytes further in the scratchpad, for each factor.
struct SimLoop {
  int64_t count = 1;
  std::array<int64_t, 2> step{};
};

struct SimInstruction {
  Queue queue = Queue::Load;
  /// Instructions of each queue that must be complete before this one begins.
  std::array<int64_t, 3> after{};

  // LOAD, STORE: contiguous runs in DRAM, in bytes.
  std::vector<int64_t> runs;
  int64_t padding = 0;   ///< bytes of zeros
  bool gathers = false;  ///< one element per cycle, `pitch` bytes apart in the scratchpad
  int64_t pitch = 1;
  /// Runs whose pieces of `piece` bytes go to `pieces` places in turn, `piece_pitch` bytes apart;
  /// 0: they lie as they come.
  int64_t piece = 0, pieces = 1, piece_pitch = 0;
  int64_t address = 0;  ///< of the buffer

  // COMPUTE: outermost first; the first `block_loops` ones change the block that stays.
  std::vector<SimLoop> loops;
  int block_loops = 0;
  bool stationary = false;  ///< factor 1 is loaded block by block
  int64_t block_rows = 0;   ///< of a block
  std::array<int64_t, 2> base{}, row_bytes{}, fetches{1, 1};
  int64_t fill = 0;
};

struct SimCounts {
  int64_t cycles = 0, steps = 0, computes = 0, instructions = 0;
  std::array<int64_t, 2> bytes_read{};  ///< by the array, of each factor's role
  int64_t loads = 0, load_bytes = 0, load_bursts = 0, padding = 0;
  int64_t stores = 0, store_bytes = 0, store_bursts = 0;
};

SimCounts simulate(const Design& design, const std::vector<SimInstruction>& program);

}  // namespace tilewright::spatial
