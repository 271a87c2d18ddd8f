// The importer's working state: scopes of names, the graph so far, the problems found.
#pragma once

#include <tilewright_onnx.pb.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/onnx/dynamic_nodes.h"
#include "tilewright/graph/onnx/import.h"
#include "tilewright/graph/onnx/import_tensor.h"
#include "tilewright/graph/onnx/opset.h"

namespace tilewright::graph {

/// ONNX names visible at one place; the graph of an If, Loop or Scan sees its surroundings.
struct Scope {
  std::map<std::string, ValueId> values;
  const Scope* parent = nullptr;
  const ValueId* find(const std::string& name) const;
};

/// A list of nodes to import and what their names mean.
struct Body {
  Scope scope;
  std::map<std::string, int64_t> opsets;  ///< by domain
  std::set<std::string> read;             ///< names that a node reads or that are outputs
  /// Arguments of the function being inlined, for attributes that refer to them.
  std::map<std::string, const tilewright_onnx::AttributeProto*> arguments;
  std::string prefix;              ///< of node and value names
  std::string path;                ///< `function 'f' of node 'n'`, for messages; empty at the top
  std::vector<std::string> calls;  ///< functions being inlined, the outermost first
  int depth = 0;
};

/// Names that nodes read, those inside their branches included.
std::set<std::string> names_read(
    const google::protobuf::RepeatedPtrField<tilewright_onnx::NodeProto>& nodes);
/// The same of a graph with its outputs.
std::set<std::string> names_read(const tilewright_onnx::GraphProto& graph);

/// A graph within a node, with its weights read.
struct Subgraph {
  tilewright_onnx::GraphProto graph;
  std::string name;  ///< `body`, `then_branch`, ...
  std::map<std::string, ValueId> weights;
  std::set<std::string> read;
};

class Importer : private NodeSink {
 public:
  Importer(tilewright_onnx::ModelProto& model, std::string folder, const ImportOptions& options);
  Result<Graph> run();

 private:
  using GraphProto = tilewright_onnx::GraphProto;
  using NodeProto = tilewright_onnx::NodeProto;
  using NodeList = google::protobuf::RepeatedPtrField<NodeProto>;

  using Values = std::vector<ValueId>;
  using AttrMap = std::map<std::string, tensor::AttrValue>;

  static constexpr ValueId kUnknown = -2;          ///< outputs of nodes that failed
  static constexpr ValueId kSequence = -3;         ///< this and lower ones are sequences
  static constexpr int kMaxDepth = 32;             ///< functions and graphs within each other
  static constexpr int64_t kMaxNodes = 1'000'000;  ///< after inlining
  static constexpr int64_t kMaxUnrolled = 20'000;  ///< the same of a model with loops

  /// A node whose meaning is settled here: the graph holds what it comes to, not the node.
  struct Call {
    const NodeProto& proto;
    const Node& node;
    Body& body;
    std::string where;
  };
  using Structural = Result<Values> (Importer::*)(const Call&);

  // Model level (onnx/import.cc).
  void read_opsets(Body& body);
  void check_opset(const std::string& domain, int64_t version);
  void read_inputs(const GraphProto& graph, Body& body);
  void read_input(const tilewright_onnx::ValueInfoProto& info, Body& body);
  std::optional<Shape> input_shape(const tilewright_onnx::ValueInfoProto& info,
                                   const std::string& name);
  bool check_binding(const std::string& name, const Array& array,
                     const tilewright_onnx::ValueInfoProto& info);
  void read_initializers(GraphProto& graph, Body& body);
  /// One of them, called `id` in the file; `what`: for messages.
  void read_initializer(const std::string& id, const char* what, Body& body,
                        const std::function<Result<Array>()>& take);
  /// Says once how the dimensions that nobody gave an extent can be given one; `unbound` has their
  /// names by axis (empty for none), `likely` a shape to suggest.
  void report_unbound(const std::string& name, const Shape& likely,
                      const std::map<int, std::string>& unbound);
  void read_outputs(const GraphProto& graph, const Body& body);
  /// What the output `name` of the graph is: `id` under that name, whatever a function or a branch
  /// of an If called it, or a copy where `id` must keep its own. errors: Invalid (name taken).
  Result<ValueId> output_value(ValueId id, const std::string& name);
  void check_options(const GraphProto& graph);
  Result<Graph> finish();

  // Nodes (onnx/importer.cc).
  void import_nodes(const NodeList& nodes, Body& body);
  std::vector<int> order_nodes(const NodeList& nodes, const Body& body);
  void report_cycle(const NodeList& nodes, const Body& body,
                    const std::vector<std::vector<int>>& before, const std::vector<int>& waiting);
  void import_node(const NodeProto& proto, const std::string& name, Body& body);
  void import_operator(const NodeProto& proto, Node node, int64_t version, Body& body);
  bool import_constant(const NodeProto& proto, const Node& node, Body& body);
  void import_function(const NodeProto& proto, const tilewright_onnx::FunctionProto& function,
                       const Node& node, Body& body);
  std::optional<tensor::Attrs> read_attributes(const NodeProto& proto, const Body& body,
                                               const std::string& name);
  bool read_node_inputs(const NodeProto& proto, const Body& body, Node& node);
  const tilewright_onnx::FunctionProto* find_function(const NodeProto& proto) const;
  void define_outputs(const NodeProto& proto, Body& body, const std::vector<ValueId>& ids);
  void poison_outputs(const NodeProto& proto, Body& body);
  /// Reports an operator that there is none for: why and what to do at its first node only.
  void report_unsupported(const Node& node, const std::string& where);

  // Nodes with graphs of their own (onnx/importer_control.cc).
  Structural structural(const Node& node) const;
  void import_structural(Structural import, const Call& call);
  Result<Subgraph> open_subgraph(const Call& call, const std::string& attribute);
  /// Imports it once; what its outputs are, kUnknown where it has errors. `label` tells this time
  /// from others, `given` is what its inputs are.
  Values run_subgraph(const Subgraph& subgraph, const Call& call, const std::string& label,
                      const Values& given);
  /// Whether one more iteration fits. errors: Unsupported.
  Status count_iteration(const Call& call, int64_t done, const std::string& of);
  /// onnx/importer_branches.cc, with the next.
  Result<Values> import_if(const Call& call);
  /// The outputs of a branch that is taken where `taken` holds.
  Result<Values> run_branch(const Call& call, const char* name, ValueId taken);
  Result<Values> import_loop(const Call& call);
  Result<Values> import_scan(const Call& call);
  struct ScanAxes;
  Result<Values> scan(const Call& call, const Subgraph& body, const std::string& label,
                      const Values& inputs, const ScanAxes& axes);
  /// The only element of `id`. errors: Unsupported ("`what` is known only at run time"), Invalid.
  Result<int64_t> known_scalar(ValueId id, const std::string& what);
  Result<Array> known_value(ValueId id, const std::string& what);
  /// A node on behalf of another; its only output.
  Result<ValueId> add_part(const Call& call, const char* op, Values inputs, AttrMap attrs = {});
  ValueId add_ints(const Call& call, const std::vector<int64_t>& values);
  ValueId add_scalar(const Call& call, DType dtype, int64_t value);
  /// Element `index` along `axis`, without that axis.
  Result<ValueId> slice_of(const Call& call, ValueId id, int64_t axis, int64_t index);
  /// `parts` side by side along a new axis. requires: there is one.
  Result<ValueId> stacked(const Call& call, const Values& parts, int64_t axis);

  // Sequences and optional values (onnx/importer_sequences.cc).
  ValueId add_sequence(Values elements);
  /// The elements of input `i`. errors: Invalid.
  Result<Values> sequence_input(const Call& call, size_t i) const;
  /// What input `i` holds, from 0 to `most`. errors: Invalid, Unsupported.
  Result<size_t> sequence_position(const Call& call, size_t i, int64_t most);
  Result<Values> sequence_construct(const Call& call);
  Result<Values> sequence_empty(const Call& call);
  Result<Values> sequence_at(const Call& call);
  Result<Values> sequence_length(const Call& call);
  Result<Values> sequence_insert(const Call& call);
  Result<Values> sequence_erase(const Call& call);
  Result<Values> split_to_sequence(const Call& call);
  Result<Values> concat_from_sequence(const Call& call);
  Result<Values> sequence_map(const Call& call);
  Result<Values> optional_value(const Call& call);
  Result<Values> optional_get_element(const Call& call);
  Result<Values> optional_has_element(const Call& call);

  // The graph so far (onnx/importer_fold.cc).
  /// Infers, checks, folds if cheap, and appends. errors: what does not fit.
  Result<std::vector<ValueId>> add(Node node, int num_outputs) override;
  /// The same with results of known types and extents.
  Result<std::vector<ValueId>> append(Node node, const tensor::OpCall& call,
                                      const std::vector<tensor::TensorType>& types,
                                      const std::vector<Extent>& extents) override;
  const Graph& graph() const override { return graph_; }
  bool decided_by_run(ValueId id) const override { return runtime_[static_cast<size_t>(id)]; }
  void compute(ValueId id) override { (void)force(id); }
  Status need_constants(const Node& node);
  /// Puts a CheckRange before every operand that decides at run time where `node` reads or writes.
  Status check_operands(Node& node, const tensor::OpCall& call);
  Status add_bytes(const tensor::TensorType& type);
  /// Computes the constant `id` depends on nothing but constants for.
  Status force(ValueId id);
  Status evaluate_node(size_t index);
  /// Inputs of the graph that `id` is computed from, and their names for a message.
  std::set<ValueId> roots_of(ValueId id) const;
  std::string inputs_behind(ValueId id) const;
  /// Makes those inputs constants if `constants_if_needed` has them all.
  bool bind_if_offered(ValueId id);
  ValueId add_constant(const std::string& name, Array array) override;

  void report(Error error, const std::string& where = {});
  void report(ErrorKind kind, std::string what, const std::string& where, std::string why = {},
              std::string fix = {});
  /// `node 'conv_3' (Conv)`, with where it is if that is no node of the graph itself.
  std::string node_place(const std::string& name, const std::string& op, const Body& body) const;

  tilewright_onnx::ModelProto& model_;
  const ImportOptions& options_;
  ExternalData external_;
  Graph graph_;
  FreshNames names_;
  std::vector<int> producer_;  ///< node index of each value, -1 if none
  DynamicNodes dynamic_{*this};
  std::vector<Values> sequences_;  ///< the value kSequence - i is the i-th
  std::vector<bool> runtime_;      ///< whether the value depends on an input of the graph
  std::vector<Error> errors_;
  std::set<std::string> used_dims_;
  std::map<std::string, size_t> unbound_dims_;  ///< the error that names each
  std::set<std::string> explained_;             ///< operators whose error said why
  int64_t total_bytes_ = 0;
  int64_t node_count_ = 0;
};

}  // namespace tilewright::graph
