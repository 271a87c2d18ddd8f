// Operators of ONNX that are networks themselves: read as the operators that they are made of.
#pragma once

#include <vector>

#include "tilewright/graph/onnx/opset.h"

namespace tilewright::graph {

/// Whether nodes of this operator are read so.
bool is_composed(const Node& node);

/// The values that `node` computes, by nodes added through `context.before`; -1 for those that it
/// does not have. requires: is_composed(node). errors: Invalid, Unsupported.
Result<std::vector<ValueId>> compose(const Node& node, UpgradeContext& context);

}  // namespace tilewright::graph
