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

/// Unrolls `loops` of block `name`, which reads or writes a tile in registers. Loops along which
/// the tile does not move (those of the channels of a softmax, all of which are divided by one sum)
/// are unrolled only where that makes little code.
void write_out(Draft& draft, const std::string& name, const LoopNest& loops);

/// Makes a loop of one iteration parallel in a piece of a cut loop that has no other loop, so that
/// threads run the piece beside the other ones (lower/join_parallel.cc).
void share_piece(Draft& draft, const std::string& piece);

}  // namespace tilewright::rules
