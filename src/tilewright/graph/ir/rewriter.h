// Graphs that grow node by node: fresh names, constants, types that are inferred.
//
// An Editor goes on with a graph and keeps the ids of its values; a Rewriter reads one graph and
// writes another, and knows what the old values became. A pass derives from one of them:
//
//   for (const Node& node : old().nodes) {        // x * x for every Square; all else stays
//     release(node);
//     if (node.op == "Square") {
//       const ValueId x = keep(node.inputs[0]);
//       define(node.outputs[0], TW_TRY(append(node.name, "Mul", {x, x})));
//     } else {
//       copy(node);
//     }
//   }
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Axes, pads, strides, ...: what attributes and known vectors hold.
using Ints = std::vector<int64_t>;

/// Attributes of a node, for places where their type does not say what braces mean.
tensor::Attrs attrs_of(std::map<std::string, tensor::AttrValue> values);

/// A graph that is being written. Names that are asked for become `base_2`, ... where taken.
class Editor {
 public:
  Editor() = default;
  /// Goes on with `graph`: ids of values stay, names of values and nodes are taken.
  explicit Editor(Graph graph) : graph_(std::move(graph)), names_(graph_) {}

  // --- What is there. A Rewriter answers these of the graph it reads.

  /// The value with this id. requires: id >= 0
  const Value& value(ValueId id) const { return new_value(id); }
  /// Its shape.
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  /// What it holds if that is known, else null; absent values (-1) hold nothing.
  const Array* known(ValueId id) const {
    return id >= 0 && value(id).constant ? &*value(id).constant : nullptr;
  }

  // --- What is written.

  /// The graph so far.
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  /// A value of it.
  Value& new_value(ValueId id) { return graph_.values[static_cast<size_t>(id)]; }
  const Value& new_value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  /// Its shape.
  const Shape& new_shape(ValueId id) const { return new_value(id).type.shape; }

  /// A known value, named like `base`.
  ValueId constant(const std::string& base, Array array);
  /// Integers as the i64 vector that some inputs want (axes, shapes, pads).
  ValueId ints(const std::string& base, const Ints& values);
  /// The only output of an operator of ONNX; node and output are named like `base`.
  Result<ValueId> append(const std::string& base, const std::string& op,
                         std::vector<ValueId> inputs, tensor::Attrs attrs = {});
  /// The same for an operator of the domain `tilewright`.
  Result<ValueId> append_own(const std::string& base, const std::string& op,
                             std::vector<ValueId> inputs, tensor::Attrs attrs = {});
  /// The outputs of a node like `node`, on inputs of the graph so far.
  Result<std::vector<ValueId>> append_like(Node node, int num_outputs);
  /// Its only output.
  Result<ValueId> append_like(Node node);
  /// `x` under the shape `target`; an extent of 0 in it means 0.
  Result<ValueId> reshape(const std::string& base, ValueId x, const Shape& target);
  /// Adds a node as it is: its name and its outputs are the caller's to choose.
  void put(Node node) { graph_.nodes.push_back(std::move(node)); }
  /// Takes all nodes out, to put them back, or others, in their order.
  std::vector<Node> take_nodes() { return std::exchange(graph_.nodes, {}); }

  /// Gives a node's name back, for the node that takes its place.
  void release(const Node& node) { names_.release_node(node.name); }
  /// A node's name like `base` that is not taken.
  std::string node_name(const std::string& base) { return names_.node(base); }
  /// A value's name like `base` that is not taken.
  std::string value_name(const std::string& base) { return names_.value(base); }

 protected:
  Editor(Graph graph, FreshNames names) : graph_(std::move(graph)), names_(std::move(names)) {}

 private:
  Graph graph_;
  FreshNames names_;
};

/// Reads one graph and writes another. requires: the old graph outlives it.
class Rewriter : private Editor {
 public:
  /// The new graph has the name, the warnings and the inputs of the old one; the names of the old
  /// one are taken until they are released.
  explicit Rewriter(const Graph& old);

  // --- The old graph.

  const Graph& old() const { return old_; }
  const Value& value(ValueId id) const { return old_.values[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  const Array* known(ValueId id) const {
    return id >= 0 && value(id).constant ? &*value(id).constant : nullptr;
  }

  // --- The new graph.

  using Editor::append;
  using Editor::append_like;
  using Editor::append_own;
  using Editor::constant;
  using Editor::graph;
  using Editor::ints;
  using Editor::new_shape;
  using Editor::new_value;
  using Editor::node_name;
  using Editor::put;
  using Editor::release;
  using Editor::reshape;
  using Editor::value_name;

  /// What an old value became; -1 as long as it became nothing.
  ValueId now(ValueId old) const { return now_[static_cast<size_t>(old)]; }
  /// What an old value became; if nothing yet, the same value. Absent ones (-1) stay absent.
  ValueId keep(ValueId old);
  /// Readers of the old value read `made` instead.
  void replace(ValueId old, ValueId made) { now_[static_cast<size_t>(old)] = made; }
  /// Readers of the old value read `made`, which takes its name.
  void define(ValueId old, ValueId made);
  /// The node as it was, on what its inputs became.
  void copy(const Node& node);
  /// The node as it was, on these values of the new graph.
  void copy(const Node& node, std::vector<ValueId> inputs);
  /// The next output of the new graph.
  void output(ValueId made) { graph().outputs.push_back(made); }
  /// The new graph, without what no output needs.
  Graph finish() const { return compact(graph()); }

 private:
  const Graph& old_;
  std::vector<ValueId> now_;  ///< of each old value
};

}  // namespace tilewright::graph
