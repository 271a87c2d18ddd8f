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

/// Part of the time of what runs beside the longest that shows all the same. source: 0 to 0.28 of
/// the time to read from L2, measured beside register tiles on two cores of a Sapphire Rapids.
inline constexpr double kUnhidden = 0.2;

/// Times overlap, but for `kUnhidden` of them and for `pack` and `join`. units: ns of wall time
/// with all workers running.
struct Prediction {
  double compute = 0;  ///< arithmetic, at the rate of the register tile, edges included
  double l1 = 0, l2 = 0, l3 = 0, dram = 0;  ///< reading from each level at its bandwidth
  double pack = 0;  ///< staging operands, transforms: before or after the rest
  double join = 0;  ///< starting and waiting for workers, and their imbalance

  double total() const;
  /// The resource with the longest time of those that overlap: `compute`, `l1`, ..., `dram`.
  std::string bound() const;
};

}  // namespace tilewright::cost
