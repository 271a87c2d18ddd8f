// Steps that several rules take alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/hw/target.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Moves the readers of `accumulator` into loop `anchor`; their names, or none if one cannot move.
std::vector<std::string> fuse_readers(Draft& draft, const Buffer& accumulator,
                                      const std::string& anchor);

/// Splits the innermost loop of `name` into periods of 8 elements or more after which the block
/// reads the same again or moves on by one (`x[i % 28]`, `x[i / 28]`), so that vectors lie in one
/// of them; the loop over a period, or "" where there are none.
std::string split_period(Draft& draft, const std::string& name);

/// Splits the innermost loop of `name` into vectors where its accesses allow, of `registers`
/// registers each.
void vectorize_innermost(Draft& draft, const std::string& name, const hw::CpuTarget& target,
                         int64_t registers = 1);

/// Moves the loop over the rows of images outside of that over channels, so that threads share out
/// rows, as in convolutions: each finds what it wrote itself, and writes where no other has read.
/// Rows stay inside where they are part of a tile, where they are cut at the padding, and where a
/// copy writes rows that end within a cache line: two threads would write it in every channel.
/// source: 504 channels of 9x9 on two cores of a Sapphire Rapids, 35 us against 10.
void rows_outside(Draft& draft, const std::string& name);

/// Unrolls `loops` of block `name`, which reads or writes a tile in registers. Loops along which
/// the tile does not move (those of the channels of a softmax, all of which are divided by one sum)
/// are unrolled only where that makes little code.
void write_out(Draft& draft, const std::string& name, const LoopNest& loops);

/// Makes a loop of one iteration parallel in a piece of a cut loop that has no other loop, so that
/// threads run the piece beside the other ones (lower/join_parallel.cc).
void share_piece(Draft& draft, const std::string& piece);

}  // namespace tilewright::rules
