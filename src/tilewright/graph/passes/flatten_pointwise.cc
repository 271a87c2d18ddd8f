// 1x1 convolutions between plain values as matrix products: pixels lie side by side already, so
// neither what they read nor what they make changes its layout.
//
//   Conv x [1, 64, 14, 14], w [32, 64, 1, 1]  =>  y = w [32, 64] times x as [64, 196],
//                                                 y as [1, 32, 14, 14] where the graph ends
//
// Only where all there is around them are inputs and outputs of the graph, elementwise operators
// with single numbers, and other such convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/elementwise.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

class Flattening : private Editor {
 public:
  Flattening(const Graph& graph, PassContext& context)
      : Editor(graph),
        lanes_(std::max(4, context.vector_bytes / 4)),
        consumer_(consumers(graph)),
        output_(is_output(graph)) {}

  Result<Graph> run(PassContext& context) {
    find();
    if (flat_.empty()) return std::move(graph());
    const std::vector<Node> nodes = take_nodes();
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
      const Node& node = nodes[static_cast<size_t>(n)];
      if (flat_.contains(n)) {
        TW_TRY_STATUS(flatten(node));
      } else if (follows(node)) {
        TW_TRY_STATUS(follow(node));
      } else {
        put(node);
      }
    }
    context.notes.push_back(fmt::format("{} 1x1 convolutions as products", flat_.size()));
    return std::move(graph());
  }

 private:
  const std::vector<int>& readers(ValueId id) const { return consumer_[static_cast<size_t>(id)]; }

  /// A convolution of single pixels whose planes fill vectors about evenly.
  bool is_candidate(const Node& node) const {
    if (!node.domain.empty() || node.op != "Conv") return false;
    const bool bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
    if (!value(node.inputs[1]).constant || (bias && !value(node.inputs[2]).constant)) return false;
    const tensor::TensorType& x = value(node.inputs[0]).type;
    const Shape& w = shape(node.inputs[1]);
    const int64_t pixels = pixels_of(node.inputs[0]);
    constexpr int64_t kPart = 8;  // of the pixels, at most, may be added to fill the last vector
    const bool even = (ceil_div(pixels, lanes_) * lanes_ - pixels) * kPart <= pixels;
    return x.dtype == DType::F32 && x.dynamic_axis < 0 && even && w[1] > 1 &&
           product({w.begin() + 2, w.end()}) == 1 && all_are(node.attrs.get_ints("strides"), 1) &&
           all_are(node.attrs.get_ints("pads"), 0) &&
           node.attrs.get_string("auto_pad", "NOTSET") != "SAME_UPPER" &&
           node.attrs.get_string("auto_pad", "NOTSET") != "SAME_LOWER";
  }

  int64_t pixels_of(ValueId id) const { return product({shape(id).begin() + 2, shape(id).end()}); }

  /// An elementwise operator on one value and single numbers.
  bool is_unary(const Node& node) const {
    if (!is_elementwise(node) || node.outputs.size() != 1 || node.inputs[0] < 0) return false;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id >= 0 &&
          (!value(id).constant || array_of(value(id)).size() != 1 || shape(id).size() > 1))
        return false;
    }
    const tensor::TensorType &from = value(node.inputs[0]).type, &to = value(node.outputs[0]).type;
    return from.dtype == to.dtype && from.shape == to.shape;
  }

  /// What the convolution and the elementwise operators behind it hand on.
  ValueId end_of(const Node& conv) const {
    ValueId id = conv.outputs[0];
    while (!output_[static_cast<size_t>(id)] && readers(id).size() == 1) {
      const Node& next = graph().nodes[static_cast<size_t>(readers(id)[0])];
      if (!is_unary(next)) break;
      id = next.outputs[0];
    }
    return id;
  }

  /// The convolutions all of whose neighbours are the graph's inputs and outputs or such
  /// convolutions.
  void find() {
    for (size_t n = 0; n < graph().nodes.size(); ++n)
      if (is_candidate(graph().nodes[n])) flat_.insert(static_cast<int>(n));
    const std::set<ValueId> inputs(graph().inputs.begin(), graph().inputs.end());
    for (bool changed = true; changed;) {
      std::set<ValueId> flat_values = inputs;
      for (const int n : flat_) flat_values.insert(end_of(graph().nodes[static_cast<size_t>(n)]));
      changed = std::erase_if(flat_, [&](int n) {
                  const Node& conv = graph().nodes[static_cast<size_t>(n)];
                  const ValueId end = end_of(conv);
                  const auto& users = readers(end);
                  const bool ends = std::all_of(users.begin(), users.end(),
                                                [&](int u) { return flat_.contains(u); });
                  return !flat_values.contains(conv.inputs[0]) || !ends;
                }) > 0;
    }
  }

  /// Whether `node` is one of the elementwise operators behind a flat convolution.
  bool follows(const Node& node) const {
    return !node.inputs.empty() && flat_forms_.contains(node.inputs[0]) && is_unary(node) &&
           readers(node.inputs[0]).size() == 1;
  }

  /// `id` as stacks of matrices [channels of a group, pixels].
  Result<ValueId> matrices(const Node& node, ValueId id, int64_t groups) {
    const Shape& x = shape(id);
    Shape flat = {x[1] / groups, pixels_of(id)};
    if (groups > 1) flat.insert(flat.begin(), groups);
    if (x[0] > 1) flat.insert(flat.begin(), x[0]);
    const auto found = flat_forms_.find(id);
    const ValueId from = found == flat_forms_.end() ? id : found->second;
    return shape(from) == flat ? Result<ValueId>(from)
                               : append(node.name + "/pixels", "Reshape",
                                        {from, ints(node.name + "/pixels.shape", flat)});
  }

  Status flatten(const Node& node) {
    const int64_t groups = node.attrs.get_int("group", 1);
    const Array w = array_of(value(node.inputs[1]));
    const int64_t filters = w.shape()[0] / groups, channels = w.shape()[1];
    release(node);
    const ValueId x = TW_TRY(matrices(node, node.inputs[0], groups));
    Shape rows = {filters, channels}, column = {filters, 1};
    if (groups > 1) rows.insert(rows.begin(), groups), column.insert(column.begin(), groups);
    const ValueId matrix = constant(node.name + ".matrix", w.reshaped(rows));
    ValueId y = TW_TRY(append(node.name, "MatMul", {matrix, x}));
    if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
      const ValueId bias =
          constant(node.name + ".bias", array_of(value(node.inputs[2])).reshaped(column));
      y = TW_TRY(append(node.name + "/bias", "Add", {y, bias}));
    }
    return define(node, y);
  }

  Status follow(const Node& node) {
    Node mine = node;
    release(node);
    mine.inputs[0] = flat_forms_.at(node.inputs[0]);
    mine.outputs.clear();
    return define(node, TW_TRY(append_like(std::move(mine))));
  }

  /// `made` is the output of `node` in its flat form.
  Status define(const Node& node, ValueId made) {
    const ValueId id = node.outputs[0];
    flat_forms_[id] = made;
    if (!output_[static_cast<size_t>(id)]) return {};
    put({node_name(node.name + "/Reshape"),
         "",
         "Reshape",
         {},
         {made, ints(node.name + ".shape", shape(id))},
         {id}});
    return {};
  }

  const int64_t lanes_;
  const std::vector<std::vector<int>> consumer_;
  const std::vector<bool> output_;
  std::set<int> flat_;                     ///< convolutions
  std::map<ValueId, ValueId> flat_forms_;  ///< flat forms
};

}  // namespace

Result<Graph> flatten_pointwise(const Graph& graph, PassContext& context) {
  return Flattening(graph, context).run(context);
}

}  // namespace tilewright::graph
