// What a design of any kind is made of, as formulas of area and energy see it.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/codesign/hardware.h"

namespace tilewright::codesign {

/// `banks` memories of equal size that work side by side.
struct BankedMemory {
  double kb = 0;  ///< of all banks
  double banks = 1, bank_bytes = 1;
  double bank_kb() const { return kb / banks; }
};

struct Parts {
  double units = 1;        ///< multipliers with their adders
  double moving_bits = 0;  ///< registers of one unit that change in every step
  double register_bits = 0;
  spatial::Links links = spatial::Links::Full;
  /// What steps read operands from. Of `spatial` one; of VTA weights, inputs, micro-ops.
  std::vector<BankedMemory> scratchpads;
  /// Private memory for sums (of VTA: accumulators and results), cut into equal parts that are read
  /// and written in one cycle.
  double local_kb = 0, local_parts = 1;
  double bus_bytes = 8, burst_bytes = 64, command_queue = 1;
  double clock_mhz = 100;
  /// Of `spatial` the design itself: its cells are counted by the modules of its Verilog.
  std::optional<spatial::Design> spatial;

  // Implicit: where parts are asked for, a design is an answer.
  Parts(const spatial::Design& design);
  Parts(const vta::Config& config);
  Parts(const Hardware& hardware);
  double scratchpad_kb() const;     ///< of all
  double scratchpad_banks() const;  ///< of all
  double part_kb() const { return local_kb / local_parts; }
};

}  // namespace tilewright::codesign
