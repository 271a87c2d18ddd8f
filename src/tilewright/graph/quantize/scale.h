// Numbers behind quantisation: which power of two fits a histogram, and factors as shifts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tilewright/graph/quantize/quantize.h"

namespace tilewright::graph {

inline constexpr int kInt8Max = 127;  ///< weights and scales use the symmetric range

/// Adds the counts of `b` to `a` (channel sums are dropped where they differ in length).
void merge(Observed& a, const Observed& b);

/// The exponent e for which 2^e * i8 comes nearest to the values seen (least squared error).
/// requires: something was seen.
int best_exponent(const Observed& seen);
/// The smallest exponent e with 127 * 2^e >= magnitude; -126 for 0.
int covering_exponent(double magnitude);
/// The exponent for known values, by trying the covering one and two below.
int best_exponent(std::span<const float> values);

/// round(x), ties to the even neighbour.
double round_even(double x);
/// e if `x` is exactly 2^e.
std::optional<int> exact_log2(double x);

}  // namespace tilewright::graph
