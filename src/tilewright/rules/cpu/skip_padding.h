// Sums whose terms count only where a window's tap lies inside of the input: loops are cut so that
// no register tile takes taps that lie in the padding for all of its rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/cpu/register_tile.h"

namespace tilewright::rules {

/// The terms of a sum count only where 0 <= stride * place + dilation * tap - begin < extent.
struct WindowTerm {
  Var place, tap;  ///< iterations of the block: of the result, of the sum
  int64_t stride = 1, dilation = 1, begin = 0, extent = 0;
};

/// Whether `block` is a sum that leaves terms out: `C += select(p, v, -0.0)`.
bool skips_padding(const BlockFacts& block);

/// What the condition of such terms says of each axis with a window; none for a sum of all terms.
std::vector<WindowTerm> window_terms(const BlockFacts& block);

/// Tiles along a row of results, and the window along it.
struct RowTiles {
  WindowTerm term;
  std::string tap_loop;
  int64_t taps = 1, tile = 1, extent = 1;
};

/// Those of `row`, if terms are left out along it.
std::optional<RowTiles> row_tiles(const BlockFacts& block, const TiledLoop& row);

/// Cuts the loop over tiles (`tiles`; empty where one tile takes the whole row), and in each part
/// the loop over taps, so that each piece takes a tap for all rows of its tiles or for none; where
/// a tap leaves the input inside of a tile, that tile and tap are a piece of their own.
void cut_taps(Draft& draft, const RowTiles& rows, const std::string& tiles);

}  // namespace tilewright::rules
