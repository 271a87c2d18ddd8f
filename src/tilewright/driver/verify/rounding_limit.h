// What may differ in a graph that rounds to steps of 8 bits, or to narrower floats on the way.
#pragma once

#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/measure/compare.h"

namespace tilewright::driver {

/// How much more than floats do by themselves two correct results may differ.
struct RoundingLimit {
  double absolute = 0;
  double relative = 0;  ///< of the largest value
};

/// Of each value of `graph`. Sums of floats in another order may fall on the other side of the
/// middle between two steps of a QuantizeLinear, and what follows sees a step more or less: values
/// with a known step may be kRoundingSteps of them apart, what is computed from such values 1 %.
/// Floats computed from floats of fewer bits have the limit of those; with `tf32`, products of f32
/// have that of f16, whose significand is as long.
std::vector<RoundingLimit> rounding_limits(const graph::Graph& graph, bool tf32 = false);
inline constexpr double kRoundingSteps = 2;

/// Of each value of an integer graph of binary points, if the standard form of its layer computes
/// it in f32 from the same integers: nothing where 24 bits hold every number on the way, and one
/// unit where they do not (LeakyRelu of long sums, averages of many elements) or where floats are
/// rounded to integers.
std::vector<RoundingLimit> layer_limits(const graph::Graph& integer);

/// `difference` with its limit as wide as `limit` allows.
measure::Difference within(measure::Difference difference, const RoundingLimit& limit);

}  // namespace tilewright::driver
