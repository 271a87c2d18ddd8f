// An array that reads rows from the scratchpad, cycle by cycle (docs/spatial-timing.md, 2 and 4):
// alone, or beside a LOAD that writes there. Where weights stay, rows of the present block and the
// weights of the next one share the port in a way that no sum of accesses tells.
//
// Example: units without links fetch a row for each step, so the port is taken while a block works.
// Of the next block, whose rows are of a few bytes, several come with one access: those need no
// port and are read beside the steps, until the first one that does; it waits for the last step.
#pragma once

#include <cstdint>
#include <memory>

#include "tilewright/cost/spatial/load_walk.h"
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

/// An array behind a LOAD, which changed how it goes on.
struct DelayedArray;

/// What an array and a LOAD beside each other do to each other.
struct ArrayMeeting {
  double cycles = 0;  ///< until one of them is done, or they were followed for long enough
  /// By how much the array's last step is delayed. Less than nothing, if it gets into a better step
  /// with its own accesses.
  double late = 0;
  double written = 0;  ///< cycles that the LOAD would have taken alone for what it did
  std::shared_ptr<const DelayedArray> array{};  ///< then; null: not known
};

/// The cycle of a delayed array, with its delays, from which on it is as one that was never
/// delayed.
int64_t undelayed_from(const DelayedArray& array);

/// A COMPUTE as its array goes through it, alone once: iterations of a loop after which all is as
/// it was are not followed again. Cycles count from its first read on.
class FollowedArray {
 public:
  /// Its first `most` steps; what is behind them is not known.
  FollowedArray(const ArrayWalk& walk, int64_t most);
  ~FollowedArray();

  int64_t cycles() const { return cycles_; }  ///< alone, up to the last step
  /// From the array's cycle `after` on and the LOAD's cycle `written`, each of what it is alone;
  /// for `most` cycles at most.
  ArrayMeeting meet(int64_t after, const LoadWalk& load, int64_t written, int64_t most) const;
  /// The same of an array that LOADs have delayed; `after`: cycles with these delays.
  ArrayMeeting meet(const DelayedArray& array, int64_t after, const LoadWalk& load, int64_t written,
                    int64_t most) const;

 private:
  class Followed;

  ArrayMeeting meet_from(const DelayedArray& array, const LoadWalk& load, int64_t written,
                         int64_t most) const;

  std::unique_ptr<Followed> followed_;
  int64_t cycles_ = 0;
};

}  // namespace tilewright::cost
