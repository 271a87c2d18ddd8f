// A stream of instructions as the four queues see it. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/device.h"
#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu {

/// tok[a][b]: given by unit a, not yet taken by unit b.
using Tokens = std::array<std::array<uint32_t, kUnits>, kUnits>;
inline constexpr uint32_t kMostTokens = 255;  // counters of 8 bits

struct Stream {
  std::vector<uint8_t> unit;                          ///< of each instruction, less END
  std::array<std::vector<uint32_t>, kUnits> of_unit;  ///< in order
};
/// errors: Invalid (END not last, or not there; masks that cannot be).
Result<Stream> split(const std::vector<Insn>& insns);

/// Where each queue is: instructions that were fetched, and that began.
struct Progress {
  size_t next = 0;  ///< of the stream: the first not fetched
  std::array<size_t, kUnits> fetched{}, begun{};

  /// Fetches in order until the end or a full queue; whether any was.
  bool fetch(const Stream& stream, size_t queue);
};

bool can_begin(const Tokens& tokens, const Insn& insn, size_t unit);
void take(Tokens& tokens, const Insn& insn, size_t unit);
void give(Tokens& tokens, const Insn& insn, size_t unit);
/// errors: Invalid (more tokens than counters hold).
Status check_counters(const Tokens& tokens);
/// Whether the launch came to its end. errors: Invalid (deadlock with who waits for what; tokens
/// left).
Status check_end(const std::vector<Insn>& insns, const Stream& stream, const Progress& progress,
                 const Tokens& tokens);

/// An error with the instruction it is about.
Error at_insn(Error error, const std::vector<Insn>& insns, size_t index);

/// Adds what an instruction does, whatever its time.
void count(const Config& config, const Insn& insn, const Inits& inits, Counters& counters);

}  // namespace tilewright::dpu
