// Older operator versions rewritten to the newest semantics, which the operator library has.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// A node that makes of an output of the upgraded one what the model sees.
struct NodeBehind {
  Node node;          ///< input 0 is filled in with the value so far
  size_t output = 0;  ///< of the upgraded node
};

/// What an upgrade may add around a node.
struct UpgradeContext {
  std::function<ValueId(Array)> constant;
  /// A node before the upgraded one; its only output.
  std::function<Result<ValueId>(Node)> before;
  std::function<const tensor::TensorType&(ValueId)> type;
  std::function<const std::optional<Array>&(ValueId)> value;
  std::vector<NodeBehind> after;
};

/// Changes `node` of ONNX opset `version` to the newest form (attributes that became inputs, ...).
/// errors: Unsupported for old behaviour that has no newest form.
Status upgrade(Node& node, int64_t version, UpgradeContext& context);

}  // namespace tilewright::graph
