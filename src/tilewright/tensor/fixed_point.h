// Arithmetic on integers with one binary point per tensor, as accelerators without multipliers
// behind their sums do it: shifts, rounding to the nearest with ties towards plus infinity.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// The slope of the leaky form: numbers below 0 are multiplied by kLeakyFactor / 2^kLeakyShift.
inline constexpr int64_t kLeakyFactor = 26;
inline constexpr int kLeakyShift = 8;
inline constexpr double kLeakySlope = 26.0 / 256;

/// 1 / taps as factor / 2^shift.
struct MeanFactor {
  int64_t factor = 0, shift = 0;
  friend bool operator==(const MeanFactor&, const MeanFactor&) = default;
};
inline constexpr int64_t kMaxMeanFactor = 1023;  ///< what ten bits hold
/// The largest shift whose factor, rounded, is no more than `most`. requires: taps, most >= 1.
MeanFactor mean_factor(int64_t taps, int64_t most = kMaxMeanFactor);

/// What an AveragePoolFixed multiplies the sum of each window with, i32 [h, w], and the one shift
/// behind it. requires: `infer` accepts the call.
struct MeanTable {
  Array factors;
  int64_t shift = 0;
};
MeanTable mean_table(const OpCall& call);

// RequantizeFixed(sum i32, bias i32) -> i8:
//   clip(round(act((sum + bias) / 2^shift)), lo, hi)
// EltwiseFixed(a i8, b i8, the second optional) -> i8, with shift_read = [of a, of b]:
//   u = floor(4 a / 2^shift_read[0]) + floor(4 b / 2^shift_read[1])
//   clip(round(act(u * 2^shift_write / 4)), lo, hi)
// AveragePoolFixed(x i8 [n, c, h, w]) -> i8, padding is 0:
//   clip(round(sum * factor / 2^shift), -128, 127)
//   With count_include_pad 0, windows at borders use the mean_factor of the elements inside.
// act is the leaky form if the attribute `leaky` is 1. lo = 0 is relu, hi = round(6 / scale) with
// it relu6: rounding and clipping commute. Sums and products wrap at 32 bits.
void add_fixed_point_ops(std::vector<OpDef>& table);

}  // namespace tilewright::tensor
