// The pieces of docs/vta-timing.md that one instruction needs alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// One burst: bytes [begin, end) of DRAM, inside one block of the burst size.
struct Burst {
  uint64_t begin = 0, end = 0;
  /// Aligned words of the port that it touches.
  uint64_t beats(const Timing& timing) const {
    const int log_bus = std::countr_zero(static_cast<unsigned>(timing.bus_bytes));
    return ((end + timing.bus_bytes - 1) >> log_bus) - (begin >> log_bus);
  }
};

/// Cuts the rows of a transfer into bursts, in order.
class Bursts {
 public:
  Bursts() = default;  ///< none
  Bursts(const Timing& timing, uint64_t address, uint64_t bytes);
  Bursts(const Config& config, const Transfer& transfer);

  bool done() const { return row_ == rows_; }
  /// requires: not done.
  Burst next();

 private:
  void begin_row() { at_ = (base_ + row_ * pitch_) & 0xffffffffu, row_end_ = at_ + width_; }

  uint64_t block_ = 1;  ///< burst size; units: bytes
  uint64_t base_ = 0, pitch_ = 0, width_ = 0, rows_ = 0;
  uint64_t row_ = 0, at_ = 0, row_end_ = 0;
};

/// The shared read port between grants. units: cycles.
struct ReadPort {
  uint64_t place_free = 0;  ///< first cycle in which a burst can be granted
  uint64_t data_free = 0;   ///< first cycle in which its first beat can move

  /// Grants in cycle `at` >= place_free; returns the cycle of the last beat.
  uint64_t grant(const Timing& timing, uint64_t at, uint64_t beats) {
    const uint64_t first = std::max(at + timing.read_latency, data_free);
    place_free = first;
    data_free = first + beats + timing.burst_gap;
    return first + beats - 1;
  }
};

/// Whether the instruction is a LOAD that writes something: the ones that use the read port.
bool reads(const Insn& insn);
/// Elements of padding that a LOAD writes.
uint64_t pad_elements(const Transfer& transfer);
/// First cycle in which a LOAD that begins in cycle `begin` has a request or writes padding.
inline uint64_t request_cycle(const Timing& timing, uint64_t begin) {
  return begin + std::max(timing.load_overhead - 1, 1);
}
/// `end` of a LOAD: `first` its request_cycle, `last` the cycle of its last beat (0 if none).
inline uint64_t load_end(uint64_t first, uint64_t last, uint64_t pads, uint64_t beats) {
  return std::max(last, first + pads + beats - 1) + 2;
}
/// Duration of everything for which `reads` is false.
uint64_t fixed_cycles(const Config& config, const Insn& insn);
/// Duration of any instruction that has the read port to itself.
uint64_t alone_cycles(const Config& config, const Insn& insn);
/// Initiation interval of register ALU steps.
inline int alu_reg_ii(const Config& config) {
  return config.extensions.pipelined_alu ? 1 : config.timing.alu_reg_ii;
}
/// Steps at their initiation interval with loop fill, without overhead.
uint64_t step_cycles(const Config& config, const Insn& insn);
/// The bursts of a STORE, without the two cycles of control.
uint64_t store_cycles(const Config& config, const Transfer& transfer);

}  // namespace tilewright::vta
