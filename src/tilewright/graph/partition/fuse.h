// Operator fusion: which nodes become one kernel. source: TVM paper, section 3 (operator fusion);
// values with several readers fuse where one node post-dominates them.
#pragma once

#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::graph {

enum class GroupKind {
  Kernel,  ///< one Func
  Host,    ///< one operator that the runtime executes (OpDef::host)
  Alias,   ///< a reshape: its output is its input under another shape, nothing runs
  Launch,  ///< several groups that another device runs as one (launches.h)
};

/// Nodes that run as one step. Every node of a graph is in exactly one group.
struct Group {
  GroupKind kind = GroupKind::Kernel;
  std::vector<int> nodes;        ///< ascending; topological
  int anchor = -1;               ///< the node that decides the loops; one of `nodes`
  std::vector<ValueId> inputs;   ///< read from outside, weights included, each once
  std::vector<ValueId> outputs;  ///< needed outside
  tensor::Fusion fusion = tensor::Fusion::Injective;  ///< of the anchor
  std::string device;                                 ///< as FuseOptions::device says of the anchor
  std::vector<Group> parts;                           ///< of a launch, in the order to run
};

/// Which device runs a node, by its index; empty text is the CPU. `NAME/2`: in launch 2 of the
/// device, whose nodes are never in one launch with others of it.
using DeviceOf = std::function<std::string(int node)>;

/// `NAME` of `NAME/2`.
inline std::string device_name(const std::string& place) {
  return place.substr(0, place.find('/'));
}

struct FuseOptions {
  bool enable = true;  ///< false: one group per node
  int max_nodes = 32;  ///< of one group
  bool copies = true;  ///< `join` is asked about copies around products too
  DeviceOf device;     ///< nodes of different devices stay apart; empty: all run on the CPU
  /// Whether convolutions in a row (expand - depthwise - project) are faster as this one kernel
  /// than as one each; empty: they stay apart.
  std::function<bool(const Group&)> join;
};

/// Groups in an order that can be executed.
std::vector<Group> fuse(const Graph& graph, const FuseOptions& options = {});

/// `conv_add_relu`.
std::string group_name(const Graph& graph, const Group& group);

struct GroupFunc {
  Func func;
  /// Value of each parameter, in order: inputs, then outputs. Parameters beyond are constant tables
  /// of the operators (mode Const with values).
  std::vector<ValueId> args;
};

/// The group as one Func. Parameters are the inputs it reads (x0, x1, ...; constants are w0, w1,
/// ... of mode Const), then the outputs (y0, ...). Single known elements are written into the code,
/// so equal groups of different layers give equal Funcs. errors: Unsupported for a group without
/// loops.
Result<GroupFunc> group_func(const Graph& graph, const Group& group,
                             MathMode math = MathMode::Fast);

/// One node per group (op `conv_add_relu` of domain `tilewright`), for people to look at.
Graph summarise(const Graph& graph, const std::vector<Group>& groups);

/// `12 groups from 30 nodes`, then the groups of more than one node.
std::vector<std::string> explain(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tilewright::graph
