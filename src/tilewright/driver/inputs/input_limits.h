// Which values made-up inputs may have, so that they keep a model's own rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::driver {

/// Whole numbers from `low` to `high`, both included.
struct InputLimits {
  int64_t low = 0, high = 9;
};

/// Limits of the graph inputs that are used as indices, lengths, counts, axes, shifts or divisors,
/// by name. An input is followed to its users through casts, views and sums with known numbers. If
/// several uses leave no common value, the input has the limits of the first.
std::map<std::string, InputLimits> input_limits(const graph::Graph& graph);

}  // namespace tilewright::driver
