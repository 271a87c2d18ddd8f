// Small helpers passes share: who produces, who consumes, replace, drop what is unused.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// Node index producing each value; -1 for inputs and constants.
std::vector<int> producers(const Graph& graph);
/// Node indices reading each value, one entry per use, ascending.
std::vector<std::vector<int>> consumers(const Graph& graph);
/// Whether each value is an output of the graph.
std::vector<bool> is_output(const Graph& graph);

/// Every use of `from` by a node or as a graph output becomes `to`.
void replace_uses(Graph& graph, ValueId from, ValueId to);

/// Every use of `from` reads `to` instead; an output of the graph keeps its name. False, and
/// nothing changed, where that is impossible: `from` is an output and `to` is an input, constant or
/// output.
bool forward(Graph& graph, ValueId from, ValueId to);

/// Drops nodes whose outputs nobody needs (or are known constants), then values nobody mentions.
/// Inputs of the graph stay. Nodes are put in topological order, earliest position first.
Graph compact(const Graph& graph);

/// Hands out names that no value or node of a graph has.
class FreshNames {
 public:
  FreshNames() = default;
  explicit FreshNames(const Graph& graph);
  /// `base`, or `base_2`, `base_3`, ... if taken. Value and node names are separate sets.
  std::string value(const std::string& base) { return fresh(values_, base); }
  std::string node(const std::string& base) { return fresh(nodes_, base); }
  /// Gives a node's name back, for the node that replaces it.
  void release_node(const std::string& name) { nodes_.names.erase(name); }

 private:
  struct Taken {
    std::set<std::string> names;
    std::map<std::string, int> next;
  };
  static std::string fresh(Taken& taken, const std::string& base);
  Taken values_, nodes_;
};

/// The elements of a known integer input, if it is present and known.
std::optional<std::vector<int64_t>> known_ints(const Graph& graph, const Node& node, size_t input);

/// Adds a known value under a new name like `base`.
ValueId add_constant(Graph& graph, FreshNames& names, const std::string& base, Array array);

/// Appends a node with inferred outputs named after it. errors: what `infer` says, at the node.
Result<std::vector<ValueId>> append_node(Graph& graph, FreshNames& names, Node node,
                                         int num_outputs);
/// The only output of the appended node.
Result<ValueId> append_node(Graph& graph, FreshNames& names, Node node);

}  // namespace tilewright::graph
