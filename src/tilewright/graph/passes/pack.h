// Layout conversions of known values, computed without an evaluator: weights are large, and moving
// their elements needs no arithmetic.
#pragma once

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Result of ToBlocked, PackConvWeight, PackDepthwiseWeight or PackGemmWeight of a known input;
/// nothing for other operators. `type` is what `infer` gave.
std::optional<Array> pack_known(const tensor::OpCall& call, const tensor::TensorType& type);

}  // namespace tilewright::graph
