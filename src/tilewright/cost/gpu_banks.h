// Conflicts on the banks of a GPU's shared memory: 32 of 4 bytes each, all of which a pass reads or
// writes once.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::cost {

inline constexpr int64_t kBanks = 32, kBankBytes = 4;

/// Passes that one access of a warp takes. `offsets`: of the lanes in order, in bytes; `width`:
/// bytes per lane (up to 16, and a multiple of 4 where more than 4). Lanes share a pass where they
/// use different banks or the same word; as many lanes go together as 128 bytes are for, so
/// accesses of 8 and 16 bytes take 2 and 4 passes at least.
/// source: CUDA C++ Programming Guide, section on shared memory of compute capability 5.x and
/// later.
int64_t bank_passes(const std::vector<int64_t>& offsets, int64_t width);

/// An access of a warp to a matrix in shared memory: row and column (in elements) of the first
/// element of each lane, and how many elements next to each other a lane uses.
struct RowAccess {
  std::vector<std::pair<int64_t, int64_t>> lanes;
  int64_t elements = 1;
  int64_t weight = 1;  ///< how often it happens, relative to other accesses
};

/// The access of lanes that count through a box, first along columns: lane l is at row
/// (l / columns) * row_step, column (l % columns) * column_step.
RowAccess lane_box(int64_t columns, int64_t column_step, int64_t row_step, int64_t elements);

/// Passes of all accesses, by weight, to a matrix whose rows are `pitch` elements apart.
int64_t row_passes(const std::vector<RowAccess>& accesses, int64_t pitch, int64_t element_bytes);

/// The fewest elements to leave free behind rows of `row` elements, a multiple of `unit`, with
/// which the accesses take the fewest passes.
int64_t best_row_pad(const std::vector<RowAccess>& accesses, int64_t row, int64_t element_bytes,
                     int64_t unit);

}  // namespace tilewright::cost
