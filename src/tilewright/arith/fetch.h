// What one store of a copy reads: for copies into the memory of a block of threads, whose axes a
// copy engine or a layout cares about. Whole nests are arith/copy.h's.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/arith/bounds.h"

namespace tilewright::arith {

/// Where the value of a store comes from: the element of `from` at `at`, or zero where an index is
/// not below its limit (none: it always is).
struct Fetch {
  Buffer from;
  std::vector<Expr> at;
  std::vector<std::optional<int64_t>> limits;  ///< by axis
};
/// Absent if the store does anything else. `guards`: conditions around it.
std::optional<Fetch> fetch_of(const Store& store, const std::vector<Expr>& guards,
                              const Bounds& bounds);

/// The axis that alone moves with `var`, by one element per iteration; absent: there is none.
std::optional<size_t> moved_axis(const Var& var, const std::vector<Expr>& indices);

}  // namespace tilewright::arith
