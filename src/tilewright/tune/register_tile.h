// Choosing the register tile of a reduction: which loops form rows, columns and vector lanes, and
// how many of each fit the register file.
#pragma once

#include <string>

#include "tilewright/hw/target.h"
#include "tilewright/tune/program_facts.h"

namespace tilewright::tune {

/// One loop cut into tiles of `tile`; absent if `loop` is empty.
struct TiledLoop {
  std::string loop;
  int64_t extent = 1;
  int64_t tile = 1;
  bool exact() const { return extent % tile == 0; }
};

/// rows x columns x vectors accumulators, each one vector register wide.
struct RegisterTile {
  TiledLoop vec;  ///< lanes: tile = lanes * vectors, or the whole extent if smaller
  int64_t vectors = 1;
  TiledLoop column;  ///< a further loop the vector operand varies with (output channel blocks)
  TiledLoop row;     ///< a loop along which the vector operand is reused
  /// A further such loop, where a whole `row` leaves registers over (7 of 7 columns of an image):
  /// the tile holds `plane.tile` rows, so that each vector is loaded that much more seldom.
  TiledLoop plane;
};

/// Picks loops by the roles of the operands (performance.md 1.3: accumulators + vector operands + 1
/// broadcast must fit the registers) and sizes by the cheapest count of instructions, edges
/// included. Absent if no axis of the result runs along vector lanes.
std::optional<RegisterTile> choose_register_tile(const BlockFacts& block,
                                                 const hw::CpuTarget& target);

}  // namespace tilewright::tune
