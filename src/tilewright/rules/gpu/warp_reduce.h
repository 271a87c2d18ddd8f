// How a block of threads of a GPU works on rows: lanes share the elements of a row, warps the rows,
// or the elements where there is one row.
#pragma once

#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Threads along x; where the target has warps, one of them.
inline constexpr int64_t kRowLanes = 32;

/// Blocks of threads as `warps` (thread.y) of kRowLanes (thread.x).
struct WarpRows {
  std::string loop;  ///< everything that a block computes is inside
  int64_t rows = 1, warps = 1;
};

/// Shares out `block`, whose nest inside rows.loop has a loop over the rows first, if there are
/// several, and then loops over a row's elements. False, with some steps taken, where it does not
/// apply.
bool spread_rows(Draft& draft, const std::string& block, const WarpRows& rows);

/// The same for a reduction of rows: each lane its share of the terms, then all lanes together, by
/// an instruction where the target has one for that. The result is in shared memory.
bool reduce_rows_of_block(Draft& draft, const std::string& block, const WarpRows& rows,
                          const hw::GpuTarget& target);

}  // namespace tilewright::rules
