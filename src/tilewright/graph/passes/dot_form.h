// Convolutions and products in the form of dot-product instructions: when they have one, and the
// weights packed for it.
#pragma once

#include <optional>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {

/// How a Conv, ConvInteger, MatMul, Gemm or MatMulInteger with known weights is a sum of groups.
struct DotForm {
  int64_t depth = 0;            ///< elements in a group
  int64_t zero = 0;             ///< of the first operand: what padding holds
  std::optional<Array> offset;  ///< [filters], added to the sums: bias, zero point times weights
};

/// The form of `node` on the target of `context`; absent if it has none.
std::optional<DotForm> dot_form(const Graph& graph, const Node& node, const PassContext& context);

/// Whether each channel has one window of its own.
bool is_depthwise(const Shape& weight, int64_t groups);

/// Groups of whole blocks of `block` channels and filters that the groups of a convolution with
/// this weight fill, several each; 0 if they fill none, or so little of them that zeros would take
/// longer than groups by themselves. One group is always whole.
int64_t merged_groups(const Shape& weight, int64_t groups, int64_t block);
/// The weight of `merged` groups, with zeros between the channels of one group and the filters of
/// another.
Array merge_groups(const Array& weight, int64_t groups, int64_t merged);

/// Result of PackConvDotWeight or PackGemmDotWeight of a known input; nothing for others.
std::optional<Array> pack_dot_known(const tensor::OpCall& call, const tensor::TensorType& type);

}  // namespace tilewright::graph
