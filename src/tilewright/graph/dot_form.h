// Convolutions and products in the form of dot-product instructions: when they have one, and the
// weights packed for it.
#pragma once

#include <optional>

#include "tilewright/graph/graph.h"
#include "tilewright/graph/passes.h"

namespace tilewright::graph {

/// How a Conv, ConvInteger, MatMul, Gemm or MatMulInteger with known weights is a sum of groups.
struct DotForm {
  int64_t depth = 0;            ///< elements in a group
  int64_t zero = 0;             ///< of the first operand: what padding holds
  std::optional<Array> offset;  ///< [filters], added to the sums: bias, zero point times weights
};

/// The form of `node` on the target of `context`; absent if it has none.
std::optional<DotForm> dot_form(const Graph& graph, const Node& node, const PassContext& context);

/// Result of PackConvDotWeight or PackGemmDotWeight of a known input; nothing for others.
std::optional<Array> pack_dot_known(const tensor::OpCall& call, const tensor::TensorType& type);

}  // namespace tilewright::graph
