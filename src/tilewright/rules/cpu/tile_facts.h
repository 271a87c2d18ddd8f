// What a register tile needs to know of the sum it computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {

/// 1 for a loop that is not around the block.
int64_t extent_of_loop(const BlockFacts& block, const std::string& loop);

/// Whether the operand that rows share a step of is read at places that overlap between rows as
/// `tap` moves. Written out, each such element would be kept in a register of its own.
bool slides(const BlockFacts& block, const RegisterTile& tile, const Var& tap);

/// Bytes of a constant operand that one column of tiles reads, again for each of its tiles; 0 if
/// what rows share is not constant. `reduced`: extents of the loops of the sum.
int64_t bytes_of_weights(const Func& func, const BlockFacts& block, const RegisterTile& tile,
                         const std::vector<int64_t>& reduced);

}  // namespace tilewright::rules
