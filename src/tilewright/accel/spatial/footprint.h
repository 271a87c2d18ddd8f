// What instructions touch, and the tokens that follow from it.
#pragma once

#include <vector>

#include "tilewright/accel/common/footprint.h"
#include "tilewright/accel/common/queues.h"
#include "tilewright/accel/spatial/isa.h"

namespace tilewright::spatial {

/// Memories by number. Addresses are bytes; of Sums words, part p of place s at s * sum_parts + p;
/// of Bias words.
enum class ChipMemory { Dram, Spad, Sums, Bias };

/// The three queues with what they touch, as data for token insertion and the checker.
accel::Queues queues();

/// What an instruction touches, or more: boxes with very many gaps are taken as less broken than
/// they are. Sums that a COMPUTE changes are written, and so are the words that its block takes at
/// the end of each part. requires: `check_fields` accepts it.
accel::Footprint footprint(const Design& design, const Insn& insn);

/// The instructions, right when run one after the other, with tokens that make them right when the
/// queues run beside each other. Tokens that they have are lost; order and number stay.
/// errors: Invalid (as `check_fields`, with the index).
Result<std::vector<Insn>> with_tokens(const Design& design, std::vector<Insn> insns);

}  // namespace tilewright::spatial
