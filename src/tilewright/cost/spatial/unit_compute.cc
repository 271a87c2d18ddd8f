// Cycles of a COMPUTE (docs/spatial-timing.md, 4).
#include <algorithm>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

/// Cycles from the first read of a row to the last step, and accesses, if nothing else reads.
SpatialUnit::RowsRead SpatialUnit::read_rows(const SpatialSizes& size, int64_t steps,
                                             SpatialRows how) const {
  if (how == SpatialRows::Followed) {
    const RowCosts all = rows(size).costs();
    return {double(all.cycles), double(all.accesses)};
  }
  const double accesses = mean_accesses(0, size) + (stationary ? 0 : mean_accesses(1, size));
  return {std::max(double(steps), accesses), accesses};
}

/// Accesses for the weights of one block of `rows` rows.
double SpatialUnit::read_block(const SpatialSizes& size, double rows, double blocks,
                               SpatialRows how) const {
  if (how == SpatialRows::Followed) return double(block_rows(size).costs().accesses) / blocks;
  // Rows that do not follow each other have an access each.
  const int loop = row_loop_of_blocks();
  const double bytes = double(row_bytes(1, size)), line = double(line_bytes());
  const double pitch = double(strides(1, size)[loop]) / double(lanes[loop]);
  return rows * std::max(bytes / line, pitch > bytes ? std::min(1.0, pitch / line) : 0);
}

double SpatialUnit::compute_overhead() const {
  return double(design.timing.compute_overhead + 1 + fill);
}

SpatialUnit::Compute SpatialUnit::compute(const SpatialSizes& size, SpatialRows how) const {
  int64_t steps = 1, block_count = 1;
  for (int loop = 0; loop < loops; ++loop) {
    const int64_t count = ceil_div(size[loop], lanes[loop]);
    steps *= count;
    if (in(block_loops, loop)) block_count *= count;
  }
  const double overhead = compute_overhead();
  const auto [cycles, accesses] = read_rows(size, steps, how);
  if (!stationary) return {overhead + cycles, accesses, steps};
  // Lanes of ragged blocks that do nothing are not read.
  const int row_loop = row_loop_of_blocks();
  const double valid =
      double(size[row_loop]) / double(ceil_div(size[row_loop], lanes[row_loop]) * lanes[row_loop]);
  const double rows = double(rows_of_block(size)) * valid, blocks = double(block_count);
  const double weights = read_block(size, rows, blocks, how);
  const double load = std::max(rows, weights), stream = cycles / blocks;
  const double both = std::max({stream, load, accesses / blocks + weights});
  // Rows of the first steps are read while the first block is loaded.
  const double per_row = accesses / double(steps);
  const double early = std::min(
      {std::min(8.0, double(steps)) * per_row, load - weights, stream - double(steps) / blocks});
  const double work = load + (blocks - 1) * both + stream - std::max(0.0, early);
  return {overhead - 1 + work, accesses + blocks * weights, steps};
}

}  // namespace tilewright::cost
