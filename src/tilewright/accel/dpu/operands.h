// Where the operands of an instruction are: the address arithmetic that footprints, the checker and
// simulators share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/common/footprint.h"
#include "tilewright/accel/common/queues.h"
#include "tilewright/accel/dpu/program.h"

namespace tilewright::dpu {

/// The INITs that hold where an instruction stands.
struct Inits {
  std::optional<ConvInit> conv;
  std::optional<PoolInit> pool;
  std::optional<ElewInit> elew;

  /// Takes over what an INIT says; nothing for other instructions.
  void update(const Op& op);
  /// Whether the INIT that `op` needs is there.
  bool complete_for(const Op& op) const;
};

/// Rows of a feature map as an instruction names them. Row j, column x, group g is in bank
/// (bank + j) mod 8 of the memory, at (address + ((bank + j) div 8) * endl + x * jump + g) mod
/// depth.
struct Rows {
  int memory = 0, bank = 0, address = 0, jump = 0, endl = 0;

  int bank_of(int row) const { return (bank + row) % kBanks; }
  /// Of group 0, before the memory's end is considered.
  int64_t address_of(int row, int column) const {
    return address + int64_t{(bank + row) / kBanks} * endl + int64_t{column} * jump;
  }
};

/// One axis of what a window reads: output o and tap k meet input at(o, k).
struct Axis {
  int outputs = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  int exist = 1;  ///< rows or columns of the input that are there

  int at(int output, int tap) const { return output * stride + tap * dilation - pad; }
  bool inside(int place) const { return place >= 0 && place < exist; }
  /// Places that some tap needs, in order.
  std::vector<int> needed() const;
  /// Taps inside, of all outputs together.
  int64_t taps_inside() const;
  /// Whether an output has no tap inside.
  bool has_empty_window() const;
};

/// What an operand touches: of the rows and columns that exist, those that are needed.
struct WordWindow {
  Rows rows;
  Axis y, x;
  int groups = 1;
};

/// Words of PM that a CONV reads.
struct PmRange {
  int address = 0;
  int64_t words = 0;
};

/// The operands of a CONV, POOL or ELEW.
struct Operands {
  std::vector<WordWindow> reads;
  WordWindow write;
  std::vector<PmRange> weights;  ///< weights, biases
};
/// requires: `check_fields` accepts it, its INIT is there; empty for other instructions.
Operands operands_of(const Op& op, const Inits& inits);

/// That addresses are in their memories, rows and columns that exist are at least one, and nothing
/// is written twice: all problems. requires: check_fields; the INIT is there.
/// errors: Capacity (beyond a memory), Invalid.
Status check_ranges(const Config& config, const Insn& insn, const Inits& inits);
/// That a LOAD or SAVE stays in its region and is aligned. errors: Invalid.
Status check_ddr(const Config& config, const std::array<Region, kRegs>& regions, const Insn& insn);

/// Bytes of DDR of a LOAD or SAVE: from `begin`, `steps` pieces of `bytes`, `pitch` apart.
struct DdrSteps {
  int reg = 0;
  uint64_t begin = 0, pitch = 0, bytes = 0, steps = 0;
  uint64_t end() const { return begin + (steps - 1) * pitch + bytes; }
};
std::optional<DdrSteps> ddr_of(const Config& config, const Op& op);

/// Numbers of memories in footprints. Feature memories: word = bank * depth + address.
inline constexpr int kPmMemory = kMemories;
inline constexpr int kDdrMemory = kPmMemory + 1;  ///< plus the register; units: bytes
/// The four units with what they touch, as data for token insertion and the checker.
accel::Queues queues();
/// Exactly what it touches. requires: as operands_of, and check_ranges.
accel::Footprint footprint(const Config& config, const Insn& insn, const Inits& inits);

/// Calls f(address, first, count) for the runs of neighbouring words that `columns` steps of
/// `groups` words, `jump` apart, take in a memory of `depth` words; `first` counts words.
template <class F>
void for_each_run(int depth, int64_t start, int jump, int columns, int groups, F&& f) {
  const bool dense = jump == groups;
  const int64_t length = dense ? int64_t{columns} * groups : groups;
  for (int x = 0; x < (dense ? 1 : columns); ++x) {
    int64_t address = (start + int64_t{x} * jump) % depth;
    for (int64_t at = 0; at < length;) {
      const int64_t count = std::min<int64_t>(length - at, depth - address);
      f(static_cast<size_t>(address), static_cast<size_t>(int64_t{x} * groups + at),
        static_cast<size_t>(count));
      at += count;
      address = 0;
    }
  }
}

}  // namespace tilewright::dpu
