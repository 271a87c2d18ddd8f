// Builds a graph node by node, with shapes inferred on the way (the model zoo, tests).
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/rewriter.h"

namespace tilewright::graph {

using AttrList = std::vector<std::pair<std::string, tensor::AttrValue>>;

/// Problems do not stop the building: `finish` reports all of them. The value of a node that failed
/// is -1; nodes that use it are skipped.
class Builder {
 public:
  explicit Builder(std::string name) { editor_.graph().name = std::move(name); }

  ValueId input(const std::string& name, DType dtype, Shape shape);
  ValueId constant(const std::string& name, Array value);
  /// An integer list as the i64 constant some inputs want (axes, shapes, pads).
  ValueId ints(const std::vector<int64_t>& values);
  /// The only output of a node.
  ValueId node(const std::string& op, std::vector<ValueId> inputs, AttrList attrs = {},
               const std::string& name = {}, const std::string& domain = {});
  /// All outputs of a node that has several.
  std::vector<ValueId> nodes(const std::string& op, std::vector<ValueId> inputs, AttrList attrs,
                             int num_outputs, const std::string& name = {},
                             const std::string& domain = {});
  /// Declares an output and gives the value that name.
  void output(ValueId id, const std::string& name = {});

  const tensor::TensorType& type(ValueId id) const;
  const Graph& graph() const { return editor_.graph(); }

  /// The graph, verified. errors: everything that went wrong, each with its node.
  Result<Graph> finish();

 private:
  Editor editor_;
  std::vector<Error> errors_;
};

}  // namespace tilewright::graph
