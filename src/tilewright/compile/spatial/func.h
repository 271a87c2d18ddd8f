// Tensor expressions on a spatial accelerator: a Func that is one sum of products becomes a layer.
#pragma once

#include "tilewright/cost/spatial/layer.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

/// A sum of products of 8-bit integers in 32 bits:
///   C[i in m, j in n] = sum(l in k) i32(A[i, l]) * i32(B[l, j])
struct SpatialFunc {
  cost::SpatialLayer layer;
  /// Parameters of the Func that are the tensors of the layer, by index.
  std::array<size_t, cost::kSpatialTensors> params{};
};

/// errors: Unsupported, with what is in the way: several blocks, other types, indices that are no
/// sums of loops, more loops or axes than a layer has.
Result<SpatialFunc> spatial_func(const Func& func);

}  // namespace tilewright::compile
