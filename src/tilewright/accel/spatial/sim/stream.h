// A stream of instructions as the three queues see it, and the tokens between them. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

/// tokens[a][b]: given by queue a, not yet taken by queue b.
using Tokens = std::array<std::array<uint32_t, kQueues>, kQueues>;

/// Indices of the instructions of each queue, in order.
using Stream = std::array<std::vector<uint32_t>, kQueues>;
Stream split(const std::vector<Insn>& insns);

/// Where each queue is: instructions that were fetched, and that began.
struct Progress {
  size_t next = 0;  ///< of the stream: the first not fetched
  std::array<size_t, kQueues> fetched{}, begun{};

  /// Fetches in order until the end or a full queue; whether any was.
  bool fetch(const std::vector<Insn>& insns, size_t queue);
};

bool can_begin(const Tokens& tokens, const Insn& insn);
void take(Tokens& tokens, const Insn& insn);
void give(Tokens& tokens, const Insn& insn);
/// Whether the launch came to its end. errors: Invalid (deadlock, with who waits for what; tokens
/// left).
Status check_end(const std::vector<Insn>& insns, const Stream& stream, const Progress& progress,
                 const Tokens& tokens);

/// An error with the instruction it is about.
Error at_insn(Error error, const std::vector<Insn>& insns, size_t index);

}  // namespace tilewright::spatial
