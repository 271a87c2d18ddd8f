#include "tilewright/graph/ir/rewriter.h"

#include <algorithm>

namespace tilewright::graph {

tensor::Attrs attrs_of(std::map<std::string, tensor::AttrValue> values) {
  tensor::Attrs attrs;
  attrs.values = std::move(values);
  return attrs;
}

ValueId Editor::constant(const std::string& base, Array array) {
  return add_constant(graph_, names_, base, std::move(array));
}

ValueId Editor::ints(const std::string& base, const Ints& values) {
  Array array(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
  return constant(base, std::move(array));
}

Result<ValueId> Editor::append(const std::string& base, const std::string& op,
                               std::vector<ValueId> inputs, tensor::Attrs attrs) {
  return append_like({base, "", op, std::move(attrs), std::move(inputs), {}});
}

Result<ValueId> Editor::append_own(const std::string& base, const std::string& op,
                                   std::vector<ValueId> inputs, tensor::Attrs attrs) {
  return append_like({base, "tilewright", op, std::move(attrs), std::move(inputs), {}});
}

Result<std::vector<ValueId>> Editor::append_like(Node node, int num_outputs) {
  return append_node(graph_, names_, std::move(node), num_outputs);
}

Result<ValueId> Editor::append_like(Node node) {
  return append_node(graph_, names_, std::move(node));
}

Result<ValueId> Editor::reshape(const std::string& base, ValueId x, const Shape& target) {
  return append(base, "Reshape", {x, ints(base + ".shape", target)},
                attrs_of({{"allowzero", int64_t{1}}}));
}

namespace {

Graph empty_like(const Graph& old) {
  Graph graph;
  graph.name = old.name;
  graph.warnings = old.warnings;
  return graph;
}

}  // namespace

Rewriter::Rewriter(const Graph& old)
    : Editor(empty_like(old), FreshNames(old)), old_(old), now_(old.values.size(), -1) {
  for (const ValueId id : old.inputs) graph().inputs.push_back(keep(id));
}

ValueId Rewriter::keep(ValueId old) {
  if (old < 0) return old;
  ValueId& mine = now_[static_cast<size_t>(old)];
  if (mine < 0) mine = graph().add_value(value(old).name, value(old).type, value(old).constant);
  return mine;
}

void Rewriter::define(ValueId old, ValueId made) {
  new_value(made).name = value(old).name;
  replace(old, made);
}

void Rewriter::copy(const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& id : inputs) id = keep(id);
  copy(node, std::move(inputs));
}

void Rewriter::copy(const Node& node, std::vector<ValueId> inputs) {
  Node mine = node;
  mine.name = node_name(node.name);
  mine.inputs = std::move(inputs);
  for (ValueId& id : mine.outputs) id = keep(id);
  put(std::move(mine));
}

}  // namespace tilewright::graph
