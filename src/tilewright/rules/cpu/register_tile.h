// Choosing the register tile of a reduction: which loops form rows, columns and vector lanes, and
// how many of each fit the register file.
#pragma once

#include <string>

#include "tilewright/cost/tile_space.h"
#include "tilewright/hw/target.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

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
  bool reuse = false;         ///< rows share the vectors: a product of matrices
  bool rows_outside = false;  ///< the loops over tiles: rows around columns
  int64_t ahead = 0;          ///< reduction steps that vectors are fetched ahead
  int64_t block = 0;          ///< iterations of the last loop around that pass all columns; 0: all
  int64_t unroll = 0;         ///< reduction steps written out; 0: as the rule finds best
  int64_t pieces = 0;         ///< of work per thread; 0: as the rule finds best
};

/// An access as cost models see it: indices as terms in `axes`.
cost::Operand operand_of(const Buffer& buffer, const std::vector<Expr>& indices,
                         const std::vector<Var>& axes);

/// A block whose result runs along vector lanes: as its cost model sees it.
struct TiledBlock {
  cost::Contraction contraction;
  /// The loops of the block cut as `point` says.
  RegisterTile at(const cost::TilePoint& point) const;
};

/// Finds loops for lanes, columns and rows by the roles of the operands. Declines if no axis of the
/// result runs along vector lanes.
Answer<TiledBlock> tiled_block(const BlockFacts& block, const hw::CpuTarget& target, MathMode math);

/// The same, with what `blocks` make of the sum: if a copy brings it out of its order, the
/// contraction says what that writes.
Answer<TiledBlock> tiled_block(const BlockFacts& block, const std::vector<BlockFacts>& blocks,
                               const hw::CpuTarget& target, MathMode math);

/// Tiles to choose from: all, or those that divide the rows (a partial one at the end of a strip of
/// rows would compute rows of the next strip, too).
enum class TileRows { Any, Whole };

/// The tile of the fastest point. Absent where `tiled_block` declines, or no tile is of such rows.
std::optional<RegisterTile> choose_register_tile(const BlockFacts& block,
                                                 const hw::CpuTarget& target, int threads = 1,
                                                 MathMode math = MathMode::Fast,
                                                 TileRows rows = TileRows::Any);

}  // namespace tilewright::rules
