// Values known without running anything: shapes, constants and their views.
#pragma once

#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Outputs of operators whose value follows from shapes alone, or that only relabel a known value:
/// Shape, Size, small ConstantOfShape; Identity, Reshape, Squeeze, Unsqueeze, Flatten of a
/// constant. `types` is what `infer` gave. requires: no input of Shape or Size has a dynamic axis.
std::optional<std::vector<Array>> fold_trivially(const tensor::OpCall& call,
                                                 const std::vector<tensor::TensorType>& types,
                                                 int64_t max_fill = 4096);

/// Operators that keep the bytes of input 0 as they are (Reshape, Squeeze, Unsqueeze, Flatten,
/// Identity).
bool is_view(const Node& node);

/// The inputs of `node` as arrays; nothing if one is unknown.
std::optional<std::vector<Array>> known_inputs(const Graph& graph, const Node& node);

}  // namespace tilewright::graph
