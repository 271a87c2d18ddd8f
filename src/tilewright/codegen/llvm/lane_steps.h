// Where the lanes of a vector read when an index divides: at constant distances, not anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/ir/expr.h"

namespace tilewright::codegen {

/// An index as one number for all lanes and a constant one for each.
struct LaneSteps {
  Expr shared;
  std::vector<int64_t> steps;
};

/// `e` for `count` lanes, lane l of which stands for iteration `base` + l of `lane`; absent unless
/// `e` is `lane`, or a quotient or remainder by a constant of which all that lanes share is a
/// multiple.
///   (16 * i + lane) / 2  =>  8 * i, and 0, 0, 1, 1, 2, 2, ..
///   (28 * i + lane) % 28 =>  0, and 0, 1, 2, ..
std::optional<LaneSteps> lane_steps(const Expr& e, const Var& lane, int64_t base, unsigned count);

}  // namespace tilewright::codegen
