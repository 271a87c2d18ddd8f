// Convolutions in groups of few channels as convolutions in fewer groups, which fill channel
// blocks.
//
//   w [32, 4, 3, 3] in 8 groups, blocks of 8  =>  w [32, 8, 3, 3] in 4 groups: a filter has zeros
//                                                 at the channels of the group joined with its own
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/dot_form.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

/// Groups of numbers that are joined at most: with two, half of the products are with zeros, which
/// full vectors and reading each input element once for a whole vector of filters more than make
/// up for.
constexpr int64_t kMostJoined = 2;

/// Into how many groups `conv` is joined; absent where it stays as it is.
std::optional<int64_t> joined(const Graph& graph, const Node& conv, int64_t block) {
  if (!conv.domain.empty() || conv.op != "Conv" || conv.inputs[1] < 0) return {};
  const Value& weight = graph.values[static_cast<size_t>(conv.inputs[1])];
  const int64_t groups = conv.attrs.get_int("group", 1);
  if (groups == 1 || !weight.constant || weight.type.dtype != DType::F32) return {};
  const int64_t merged = merged_groups(weight.type.shape, groups, block);
  if (merged == 0 || merged == groups || groups > kMostJoined * merged) return {};
  return merged;
}

}  // namespace

Result<Graph> join_groups(const Graph& graph, PassContext& context) {
  Editor out(graph);
  const int64_t block = std::max(4, context.vector_bytes / 4);
  int count = 0;
  for (Node& node : out.graph().nodes) {
    const std::optional<int64_t> groups = joined(out.graph(), node, block);
    if (!groups) continue;
    const Array weight = *out.known(node.inputs[1]);
    node.inputs[1] = out.constant(node.name + ".joined",
                                  merge_groups(weight, node.attrs.get_int("group", 1), *groups));
    node.attrs.values["group"] = *groups;
    ++count;
  }
  if (count > 0) context.notes.push_back(fmt::format("{} convolutions with joined groups", count));
  return compact(out.graph());
}

}  // namespace tilewright::graph
