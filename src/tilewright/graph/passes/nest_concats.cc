// A concatenation that begins with all parts of an earlier one takes that one whole.
//
//   y = Concat(a, b), z = Concat(a, b, c)  =>  y = Concat(a, b), z = Concat(y, c)
//
// A value can lie inside one other only (partition/subranges.h): a and b in y, y in z, and nothing
// is copied.
#include <fmt/format.h>

#include <map>

#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {

Result<Graph> nest_concats(const Graph& graph, PassContext& context) {
  Graph out = graph;
  // Concatenations so far, by axis and parts.
  std::map<std::pair<int64_t, std::vector<ValueId>>, size_t> made;
  for (size_t n = 0; n < out.nodes.size(); ++n) {
    Node& node = out.nodes[n];
    if (!node.domain.empty() || node.op != "Concat" || node.inputs.size() < 2) continue;
    int64_t axis = node.attrs.get_int("axis", 0);
    const auto& type = out.values[static_cast<size_t>(node.outputs[0])].type;
    if (axis < 0) axis += static_cast<int64_t>(type.shape.size());
    // Parts that do not lie one after the other are copied anyway, best by whoever reads them.
    if (element_count(Shape(type.shape.begin(), type.shape.begin() + axis)) != 1) continue;
    const std::vector<ValueId> parts = node.inputs;
    for (size_t length = parts.size() - 1; length >= 2; --length) {
      const std::vector<ValueId> front(parts.begin(),
                                       parts.begin() + static_cast<std::ptrdiff_t>(length));
      const auto found = made.find({axis, front});
      if (found == made.end()) continue;
      const Node& whole = out.nodes[found->second];
      node.inputs.assign({whole.outputs[0]});
      node.inputs.insert(node.inputs.end(), parts.begin() + static_cast<std::ptrdiff_t>(length),
                         parts.end());
      context.notes.push_back(fmt::format("'{}' begins with '{}'", node.name, whole.name));
      break;
    }
    made.emplace(std::pair(axis, parts), n);
  }
  return out;
}

}  // namespace tilewright::graph
