// What the importer knows of integers that the run decides: shapes, counts and limits computed
// from extents that are known only at run time.
#pragma once

#include <optional>
#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::graph {

/// An integer, of at least 0 unless it is exact; or a bool, 0 or 1.
struct BoundedInt {
  int64_t most = 0;    ///< an upper bound
  bool exact = false;  ///< it is `most`, whatever the run finds
  int extent = -1;     ///< it equals the extent with this id (Extent, onnx/dynamic.h)
  bool operator==(const BoundedInt&) const = default;
};
using BoundedInts = std::vector<BoundedInt>;

constexpr int64_t kMostBoundedInts =
    64;  ///< of a tensor that is followed: shapes have few elements

/// The elements of a tensor whose value is known, as if those beyond 2^40 were 2^40; none where
/// there are many.
std::optional<BoundedInts> exact_ints(const Array& value);

/// The elements of `call`'s only result, of shape `result`, from those of its inputs (none where
/// nothing is known). Shapes of tensors are not computed here.
std::optional<BoundedInts> derived_ints(const tensor::OpCall& call,
                                        const std::vector<std::optional<BoundedInts>>& inputs,
                                        const Shape& result);

}  // namespace tilewright::graph
