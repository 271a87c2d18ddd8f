// When the queues of a program are free, and who reads and waits for what: all that decides what
// comes next.
//
// Two moments that are alike, but for a shift of all times, go on alike. A loop nest brings about
// the same moment again and again: its inner loops are followed once and repeated from then on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewright::cost {

struct DelayedArray;  // array_walk.h

/// When queues are free, and what they have done.
struct SpatialTotals {
  double load_free = 0, compute_free = 0, store_free = 0;
  double instructions = 0, load = 0, compute = 0, store = 0;
  double loads = 0, computes = 0;  ///< what LOADs and COMPUTEs took without delays
};

/// A COMPUTE while it reads.
struct SpatialReading {
  double begin = 0, end = 0;
  double late = 0;                        ///< by LOADs
  const DelayedArray* delayed = nullptr;  ///< when the last of them ended; the costs keep it
  uint32_t key = 0;                       ///< of its costs
  double store_begin = 0, stored = 0;     ///< of the STORE behind it; 0: there is none
};

/// When what happens next may happen. All are points in time but for what SpatialTotals counts.
struct SpatialClock : SpatialTotals {
  /// The COMPUTE before the latest one, and that: LOADs run ahead of both.
  std::array<SpatialReading, 2> reading;
  std::array<double, 2> loaded{};  ///< end of the LOAD of the present tile
  std::array<std::array<double, 2>, 2>
      used{};                      ///< by factor: last use of this tile, of the one before
  std::array<double, 2> stored{};  ///< end of the latest STORE, of the one before

  /// Times that have changed since `before` come later; the others are as in `now`.
  void shift(double cycles, const SpatialClock& before, const SpatialClock& now);
};

/// What some instructions made of a clock.
struct SpatialPassage {
  SpatialClock before, after;

  struct Rules {
    double latency = 0;  ///< cycles until a queue hears of another one's end
    double fetch = 0;    ///< cycles to fetch an instruction; `first`: of those before the first one
    double first = 0;
    std::array<int, 2> free_since{};  ///< by factor: which of `used` its LOAD waits for
  };
  /// Whether the same instructions take the same from another clock on. What the clock has of a
  /// past that they cannot notice does not matter.
  bool fits(const SpatialClock& clock, const Rules& rules) const;
  /// The clock after the same instructions. requires: it fits.
  SpatialClock from(const SpatialClock& clock) const;
};

}  // namespace tilewright::cost
