// Windows of feature maps that are in DDR, or between the nodes of one group: how much of them must
// be on the chip while a group runs, and where.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/codegen/dpu/occupancy.h"
#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

// Bits of jump_read_endl, jump_read, length.
inline constexpr int64_t kMaxEndl = 8191, kMaxJump = 1023, kMaxLength = 1023;

/// Staging of one feature map in one group, and when it is read and written there.
struct StagedMap {
  int root = -1;
  bool written = false;         ///< by the group, and not only read
  bool internal = false;        ///< written and read by it
  std::vector<Range> rows;      ///< by tile: what is read (or written, if nothing reads)
  std::vector<int64_t> newest;  ///< by tile: end of the rows that are there by then
  int skew = 0;                 ///< stages between the first that writes and the last that reads
  int64_t columns = 0, groups = 0;  ///< most of a strip and pass
  Range read_groups;                ///< of the root, that are read
  int64_t all_columns = 0, all_groups = 0;
};

/// Columns of a strip of the first node's output.
int64_t strip_of(const Lowered& lowered, const GroupPlan& group);

/// What `group` needs of root `r`. `internal`: it makes and reads it.
StagedMap staged_map(const Lowered& lowered, const GroupPlan& group,
                     const std::vector<RowTile>& tiles, int r, bool written, bool internal);

/// A place for it in group `g`; nothing: no room. `compact`: only what a tile needs. `skewed`
/// becomes false if there is no room for tiles of several stages at once.
std::optional<Place> stage(const Lowered& lowered, const StagedMap& map, const GroupPlan& group,
                           int g, Occupancy& memory, bool compact, bool& skewed);

}  // namespace tilewright::dpu
