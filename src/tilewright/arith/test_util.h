// Brute force for the tests of this layer: an evaluator of its own, and all assignments of a few
// variables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/rng.h"

namespace tilewright::arith::testing {

using Values = std::map<Var, int64_t>;

/// A variable with its range, both ends included.
struct Ranged {
  Var var;
  int64_t lo, hi;
};

/// Value of an integer or bool expression; absent if undefined (division by zero, negative shift).
std::optional<int64_t> evaluate(const Expr& e, const Values& values);

/// Calls f for every assignment until it answers false.
void for_all(const std::vector<Ranged>& vars, const std::function<bool(const Values&)>& f);

Bounds bounds_of(const std::vector<Ranged>& vars);

/// A random integer or bool expression over `vars` (all of one dtype).
Expr random_int(Rng& rng, const std::vector<Ranged>& vars, DType dtype, int depth);
Expr random_bool(Rng& rng, const std::vector<Ranged>& vars, DType dtype, int depth);

}  // namespace tilewright::arith::testing
