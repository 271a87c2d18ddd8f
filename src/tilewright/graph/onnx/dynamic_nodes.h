// Nodes whose extents the run decides: what the importer makes of those that compiled code, made
// for fixed extents, cannot compute as they are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/graph/onnx/bounded_ints.h"
#include "tilewright/graph/onnx/dynamic.h"

namespace tilewright::graph {

/// The graph in the making, as DynamicNodes sees it.
class NodeSink {
 public:
  virtual ~NodeSink() = default;
  virtual const Graph& graph() const = 0;
  /// Whether the value depends on an input of the graph.
  virtual bool decided_by_run(ValueId id) const = 0;
  /// Makes a constant of a value that depends on nothing else, if that is possible.
  virtual void compute(ValueId id) = 0;
  virtual ValueId add_constant(const std::string& name, Array array) = 0;
  /// Infers, checks and appends; calls DynamicNodes::add first. errors: what does not fit.
  virtual Result<std::vector<ValueId>> add(Node node, int num_outputs) = 0;
  /// Appends a node whose results are known.
  virtual Result<std::vector<ValueId>> append(Node node, const tensor::OpCall& call,
                                              const std::vector<tensor::TensorType>& types,
                                              const std::vector<Extent>& extents) = 0;
};

class DynamicNodes {
 public:
  using Values = std::vector<ValueId>;
  using Made = std::optional<Values>;
  using AttrMap = std::map<std::string, tensor::AttrValue>;

  explicit DynamicNodes(NodeSink& sink) : sink_(sink) {}

  /// What `node` becomes: the values that are its outputs; nothing for nodes that compiled code can
  /// compute. errors: Unsupported.
  Result<Made> add(const Node& node, int num_outputs);
  /// Where the plain operator puts extents (onnx/dynamic.h). errors: Unsupported.
  Result<std::vector<Extent>> place(const tensor::OpCall& call, const Node& node,
                                    const std::vector<tensor::TensorType>& types);
  /// Follows what a node that was appended says about its results; `runtime`: the run decides them.
  void note(const Node& node, const tensor::OpCall& call, const std::vector<Extent>& extents,
            bool runtime);
  /// The value of `id` where it is the same whatever the run finds: the extents of a tensor that
  /// are known.
  std::optional<Array> settled(ValueId id) const;
  /// One of two values, by a condition of the run; `name` is that of the node that it stands for.
  /// errors: Unsupported (other types, two extents that differ).
  Result<ValueId> choose(const std::string& name, ValueId condition, ValueId yes, ValueId no);
  /// Whether the branch being imported is taken; -1: it always is.
  ValueId guard = -1;

 private:
  using Rule = Result<Made> (DynamicNodes::*)(const Node&, int num_outputs);
  struct Scaled {
    int of = -1;
    int64_t numerator = 1, denominator = 1;
  };
  struct Asked;

  // What is known.
  const Value& value(ValueId id) const { return sink_.graph().values[static_cast<size_t>(id)]; }
  Shape shape(ValueId id) const { return value(id).type.shape; }  // values move when one is added
  Extent extent_of(ValueId id) const;
  std::vector<Extent> extents_of(const std::vector<ValueId>& ids) const;
  /// The extents of a value as integers.
  BoundedInts shape_ints(ValueId id) const;
  Scaled scaled_of(int id) const;
  /// Attribute `axis`, counted from the front.
  static int64_t axis_of(const Node& node, size_t rank, int64_t fallback);
  /// Nothing where they are not integers, or nobody can tell.
  std::optional<BoundedInts> ints_of(ValueId id);
  /// The id of the extent that `text` describes: equal texts, equal extents.
  int extent_named(const std::string& text);
  /// The extent `id` * numerator / denominator.
  int scaled_extent(int id, int64_t numerator, int64_t denominator);
  /// Where the plain operator puts the axis (-1: nowhere), if it takes these inputs.
  std::optional<int> plain_axis(const Node& node, int num_outputs);

  // Building blocks.
  /// A host function in the place of `node`; all its results have the extent.
  Result<Values> add_host(const Node& node, const char* op, Values inputs, Shape bound,
                          Extent extent, int num_outputs = 1, AttrMap attrs = {});
  ValueId add_list(const Node& node, const std::vector<int64_t>& values);
  /// A node on behalf of another; its only output.
  Result<ValueId> add_part(const Node& of, const char* op, Values inputs, AttrMap attrs = {});
  /// i64[1] that holds the extent of `like`.
  Result<ValueId> count_of(const Node& node, ValueId like);
  /// `id` with as many rows as there can be, so that compiled code takes it. `fill`: what is in the
  /// rows that there are not (host function PadToStatic); null: anything.
  Result<ValueId> to_static(const Node& node, ValueId id, const char* fill);
  /// `node` on static inputs; its outputs, cut to the extent of the input `like` along `axis` (-1:
  /// they have no such axis).
  Result<Made> in_static(const Node& node, int num_outputs, ValueId like, int axis,
                         const char* fill);

  // Rules (onnx/dynamic_nodes.cc): operators that work row by row, and reductions.
  Result<Made> row_by_row(const Node& node, int num_outputs);
  bool keeps_axis(const Node& node, int axis, int rank);
  Result<Made> keep_static(const Node& node, int num_outputs);
  Result<Made> reduce(const Node& node, int num_outputs);
  Result<Made> mean(const Node& node, int num_outputs);
  // Rules (onnx/dynamic_shapes.cc): operators whose results have shapes of their own.
  Result<Made> shape_of(const Node& node, int num_outputs);
  Result<Made> flatten(const Node& node, int num_outputs);
  Result<Made> reshape(const Node& node, int num_outputs);
  Result<Asked> asked_shape(const Node& node, const BoundedInts& numbers) const;
  Status fill_open(const Node& node, Asked& asked);
  Result<Made> expand(const Node& node, int num_outputs);
  Result<Made> constant_of_shape(const Node& node, int num_outputs);
  Result<Made> range(const Node& node, int num_outputs);
  Result<Made> slice(const Node& node, int num_outputs);
  Result<BoundedInt> sliced_axis(const Node& node, const BoundedInt& whole, const BoundedInt& start,
                                 const BoundedInt& end, int64_t step);
  Result<Made> gather(const Node& node, int num_outputs);
  Result<Made> gather_nd(const Node& node, int num_outputs);
  Result<Made> concat(const Node& node, int num_outputs);
  Result<Made> top_k(const Node& node, int num_outputs);

  NodeSink& sink_;
  int next_extent_ = 0;
  std::map<ValueId, Extent> extents_;  ///< of values that have one known only at run time
  std::map<std::string, int> named_extents_;
  std::map<int, Scaled> scaled_;            ///< of extents that are multiples of others
  std::map<ValueId, BoundedInts> numbers_;  ///< of integers that the run decides
  std::map<int, ValueId> counts_;           ///< i64[1] that holds the extent, by id
  std::map<ValueId, ValueId> static_of_;    ///< the same rows, and others behind them
  std::map<ValueId, ValueId> non_zeros_;    ///< NonZero of a value finds the same each time
};

}  // namespace tilewright::graph
