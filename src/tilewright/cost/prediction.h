// What a model says a kernel will take, by the resource that would bind alone.
#pragma once

#include <cstdint>
#include <string>

namespace tilewright::cost {

/// Chains of multiply-adds that hide each other's latency.
inline constexpr int64_t kChains = 8;
/// Part of a cache that may be filled by what is to stay in it.
inline constexpr double kFill = 0.75;
inline constexpr double kLineBytes = 64;  ///< of a cache line
/// Writing a cache line again that another worker has read since: what no work hides of it.
/// source: 26-35 ns measured on two cores of a Zen 4; a line only the writer has used takes 0.6.
inline constexpr double kSharedLineNs = 10;
/// What both workers lose together where they write parts of one cache line, of wall time.
/// source: 45 to 50 ns for each row that two cores of a Sapphire Rapids shared, of 448 and 504.
inline constexpr double kMetLineNs = 45;

/// What a worker with a single piece waits for a slower one, of its time; with more pieces it takes
/// over some of the other's. source: two cores of a Sapphire Rapids that others use too, 0.8 to 1.
inline constexpr double kUneven = 0.1;

/// Times overlap except `pack` and `join`. units: ns of wall time with all workers running.
struct Prediction {
  double compute = 0;  ///< arithmetic, at the rate of the register tile, edges included
  double l1 = 0, l2 = 0, l3 = 0, dram = 0;  ///< reading from each level at its bandwidth
  double pack = 0;  ///< staging operands, transforms, what of the overlapping times shows
  double join = 0;  ///< starting and waiting for workers, and their imbalance

  double total() const;
  /// The resource with the longest time of those that overlap: `compute`, `l1`, ..., `dram`.
  std::string bound() const;
};

}  // namespace tilewright::cost
