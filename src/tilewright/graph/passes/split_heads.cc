// Products whose columns are split into parts (heads) and put in another order: the product makes
// the parts itself, so that the copy behind it can be done while results are in registers.
//
//   Transpose(Reshape(x w + b, [128, 12, 64]))  =>  Transpose(x w + b), whose product has 12 parts
//                                                   and the shape [128, 12, 64]
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/graph/ir/elementwise.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

class HeadSplitting : private Editor {
 public:
  explicit HeadSplitting(const Graph& graph)
      : Editor(graph),
        producer_(producers(graph)),
        consumer_(consumers(graph)),
        output_(is_output(graph)) {}

  Result<Graph> run(PassContext& context) {
    int split = 0;
    for (size_t n = 0, count = graph().nodes.size(); n < count; ++n) {
      const Node transpose = graph().nodes[n];
      if (!transpose.domain.empty() || transpose.op != "Transpose") continue;
      split += TW_TRY(split_before(transpose));
    }
    if (split > 0)
      context.notes.push_back(fmt::format("{} products make parts of their columns", split));
    return compact(graph());
  }

 private:
  /// The node that makes `id` for one reader; null if there is none.
  const Node* only_producer(ValueId id) const {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i >= producer_.size() || producer_[i] < 0) return nullptr;
    if (output_[i] || consumer_[i].size() != 1 || value(id).type.dynamic_axis >= 0) return nullptr;
    return &graph().nodes[static_cast<size_t>(producer_[i])];
  }

  /// [.., n] => [.., parts, n / parts]; 0 parts: something else.
  int64_t parts_of(const Node& reshape) const {
    if (!reshape.domain.empty() || reshape.op != "Reshape") return 0;
    const Shape &from = shape(reshape.inputs[0]), &to = shape(reshape.outputs[0]);
    if (from.empty() || to.size() != from.size() + 1) return 0;
    return std::equal(from.begin(), from.end() - 1, to.begin()) ? to[to.size() - 2] : 0;
  }

  /// A known operand of an element-wise operator in parts: one number, or one per column.
  bool can_split(ValueId id, int64_t columns) const {
    if (id < 0 || !value(id).constant) return false;
    const int64_t count = array_of(value(id)).size();
    return count == 1 || (count == columns && shape(id).back() == columns);
  }

  ValueId in_parts(ValueId id, int64_t parts) {
    const Array array = array_of(value(id));
    if (array.size() == 1) return id;
    return constant(value(id).name + ".parts", array.reshaped({parts, array.size() / parts}));
  }

  /// The product and the element-wise operators behind it, up to what `id` names; empty where one
  /// of them is in the way.
  std::vector<Node> chain_to(ValueId id, int64_t parts) const {
    std::vector<Node> chain;
    const int64_t columns = shape(id).back();
    for (;;) {
      const Node* node = only_producer(id);
      if (node == nullptr) return {};
      chain.insert(chain.begin(), *node);
      if (node->domain == "tilewright" && node->op == "GemmPacked") {
        const int64_t block = shape(node->inputs[1]).back();
        const bool whole = columns % (parts * block) == 0 && !node->attrs.has("parts");
        return whole ? chain : std::vector<Node>();
      }
      if (!is_elementwise(*node) || node->outputs.size() != 1) return {};
      ValueId next = -1;
      for (const ValueId input : node->inputs) {
        if (can_split(input, columns)) continue;
        if (next >= 0 || input < 0 || shape(input) != shape(id)) return {};
        next = input;
      }
      id = next;
    }
  }

  Result<bool> split_before(const Node& transpose) {
    const Node* reshape = only_producer(transpose.inputs[0]);
    const int64_t parts = reshape == nullptr ? 0 : parts_of(*reshape);
    if (parts < 2) return false;
    const ValueId whole = reshape->outputs[0];
    const std::vector<Node> chain = chain_to(reshape->inputs[0], parts);
    ValueId made = -1;
    for (const Node& old : chain) {
      Node node = old;
      release(node);
      node.outputs.clear();
      if (made < 0) node.attrs.values["parts"] = parts;
      for (ValueId& input : node.inputs)
        if (made >= 0) input = value(input).constant ? in_parts(input, parts) : made;
      made = TW_TRY(append_like(std::move(node)));
    }
    return made >= 0 && forward(graph(), whole, made);
  }

  const std::vector<int> producer_;
  const std::vector<std::vector<int>> consumer_;
  const std::vector<bool> output_;
};

}  // namespace

Result<Graph> split_heads(const Graph& graph, PassContext& context) {
  return HeadSplitting(graph).run(context);
}

}  // namespace tilewright::graph
