// Dependence tokens from conflicting addresses: a list of instructions that is right when run one
// after the other becomes one whose queues run beside each other.
//
// A token goes from an instruction of one queue, when it is complete, to one of another, which
// waits for it. The k-th token taken from a queue is the k-th one given there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/accel/common/queues.h"

namespace tilewright::accel {

struct TokenOptions {
  bool serial = false;  ///< every instruction waits for the one before
  int last = -1;        ///< at its end this queue waits for all others; -1: none does
};

inline constexpr size_t kNoOp = static_cast<size_t>(-1);

/// One instruction of the result. Bit q of `takes`: it waits for a token of queue q; of `gives`: it
/// gives one to queue q.
struct Slot {
  int queue = 0;
  size_t given = kNoOp;  ///< index in the input; kNoOp: it only passes tokens
  uint32_t takes = 0, gives = 0;
};

/// Orders exactly the conflicting pairs of different queues (and what follows from them), with no
/// token that others imply, and none left at the end. Where no token can go from one queue to
/// another, it passes through no-ops of those between.
///   queue, footprints: of each instruction.
///   keeps: the order of the input; every token goes forward in it, so nothing can deadlock.
/// errors: Invalid (as `check` and `check_accesses`).
Result<std::vector<Slot>> insert_tokens(const Queues& queues, const std::vector<int>& queue,
                                        const std::vector<Footprint>& footprints,
                                        const TokenOptions& options = {});

}  // namespace tilewright::accel
