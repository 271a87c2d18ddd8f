// An array that reads rows from the scratchpad, cycle by cycle (docs/spatial-timing.md, 2 and 4):
// alone, or beside a LOAD that writes there. Where weights stay, rows of the present block and the
// weights of the next one share the port in a way that no sum of accesses tells.
//
// Example: units without links fetch a row for each step, so the port is taken while a block works.
// Of the next block, whose rows are of a few bytes, several come with one access: those need no
// port and are read beside the steps, until the first one that does; it waits for the last step.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/cost/spatial/row_walk.h"

namespace tilewright::cost {

struct ArrayWalk {
  RowWalk rows;  ///< of both factors; of the first one where blocks of the second stay
  RowWalk block_rows;
  int64_t steps = 1;
  int64_t blocks = 0;  ///< that stay, one after the other, each for as many steps; 0: none
  /// Rows of a block, and of each one at the last place of a loop: every `ragged_count` blocks of
  /// `ragged_inside`.
  int64_t block_height = 0, ragged_height = 0, ragged_inside = 1, ragged_count = 1;
};

/// A LOAD as the scratchpad sees it: bursts of pieces, a piece in a cycle, and pieces of zeros
/// between them, which need no burst.
struct LoadWalk {
  struct Part {
    int64_t zeros = 0, burst = 0;  ///< pieces: zeros first
  };
  std::vector<Part> parts;
  double accesses = 0;  ///< of a piece
  int64_t latency = 0, gap = 0;
};

/// What an array and a LOAD beside each other do to each other.
struct BothPaces {
  double reads = 1, writes = 1;  ///< how fast each is, of what it is alone
};

/// An array alone until so many steps fired.
int64_t cycles_alone(const ArrayWalk& array, int64_t steps);
/// The LOAD's first beat comes so many cycles after the array's first read. Until one is done, or
/// for so many cycles.
BothPaces beside(const ArrayWalk& array, const LoadWalk& load, int64_t after, int64_t cycles);

}  // namespace tilewright::cost
