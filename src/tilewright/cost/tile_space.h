// The points among which a contraction's schedule is chosen: register tile, loop order,
// prefetching; and the time of each by a closed form.
#pragma once

#include <string>
#include <vector>

#include "tilewright/cost/contraction.h"
#include "tilewright/cost/prediction.h"
#include "tilewright/hw/target.h"

namespace tilewright::cost {

/// Named discrete decisions. Extents are composed of tiles of `rows` and one shorter tile, if any.
struct TilePoint {
  int64_t rows = 1;           ///< accumulator rows of the register tile
  int64_t columns = 1;        ///< vectors of a row
  int64_t plane = 1;          ///< rows of the second row axis within the tile
  bool rows_outside = false;  ///< rows around columns: weights stay in cache, not the input
  int64_t ahead = 0;          ///< steps of the innermost reduction that vectors are fetched ahead
  /// Iterations of `blocked_axis` whose rows are done for all columns before the next ones: their
  /// input stays in cache meanwhile; 0: all of them. Rows of a tile at least so many, in whole
  /// tiles.
  int64_t block = 0;
  int64_t unroll = 0;  ///< reduction steps written out; 0: what the rule for tiles finds best
  int64_t pieces =
      0;  ///< of work per thread at least, where there are so many; 0: the usual number
  friend bool operator==(const TilePoint&, const TilePoint&) = default;
};

struct RankedPoint {
  TilePoint point;
  Prediction time;
};

/// Why a point cannot be; empty if it can.
std::string reject(const Contraction& contraction, const TilePoint& point,
                   const hw::CpuTarget& target);

/// units: ns with `threads` workers. requires: a point that is not rejected.
Prediction predict(const Contraction& contraction, const TilePoint& point,
                   const hw::CpuTarget& target, int threads);

/// All points worth a thought, fastest first; equal ones in a fixed order. Never empty.
std::vector<RankedPoint> rank_points(const Contraction& contraction, const hw::CpuTarget& target,
                                     int threads);

/// Register tiles that fit and make sense, fastest alone first. Never empty.
std::vector<TilePoint> register_tiles(const Contraction& contraction, const hw::CpuTarget& target,
                                      int threads);
/// The axis that `block` cuts: the last one around the tile that moves rows; -1: none.
int blocked_axis(const Contraction& contraction, const TilePoint& point);
/// How the loops around the tiles run: whole columns outside, whole rows outside, or in blocks.
struct LoopOrder {
  bool rows_outside = false;
  int64_t block = 0;
};
/// The orders worth a thought; columns outside first, then rows, then blocks from large to small.
std::vector<LoopOrder> loop_orders(const Contraction& contraction, const hw::CpuTarget& target);
/// Work is handed to threads in at least so many pieces each, where there are so many: who is done
/// early takes over from others, so a piece is what they may be apart in the end.
inline constexpr int64_t kPiecesPerThread = 32;
/// How far ahead vectors are fetched: the steps of the tile, each as long as it has accumulators,
/// that memory needs to answer; no more than L1 keeps until they are used.
int64_t usual_ahead(const TilePoint& point);

/// `14x2 vectors, rows outside, fetched 32 steps ahead`.
std::string describe(const TilePoint& point);

}  // namespace tilewright::cost
