#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {
namespace {

using Ints = std::vector<int64_t>;

class Narrowing {
 public:
  explicit Narrowing(const Graph& graph)
      : graph_(graph), names_(graph), producer_(producers(graph)), consumer_(consumers(graph)) {}

  Result<Graph> run(PassContext& context) {
    const std::vector<bool> output = is_output(graph_);
    for (size_t n = 0, count = graph_.nodes.size(); n < count; ++n) {
      const Node conv = graph_.nodes[n];
      if (!conv.domain.empty() || conv.op != "Conv" || !mixes_channels(conv)) continue;
      const auto between = static_cast<size_t>(conv.inputs[0]);
      if (between >= producer_.size()) continue;  // made here
      const int p = producer_[between];
      if (p < 0 || output[between] || consumer_[between].size() != 1) continue;
      const Node pool = graph_.nodes[static_cast<size_t>(p)];
      if (!is_plain_average(pool)) continue;
      TW_TRY_STATUS(exchange(pool, conv));
      context.notes.push_back(fmt::format("'{}' behind '{}'", pool.name, conv.name));
    }
    return compact(graph_);
  }

 private:
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  /// A 1x1 convolution that makes fewer channels than it reads.
  bool mixes_channels(const Node& conv) const {
    const Shape &x = value(conv.inputs[0]).type.shape, &w = value(conv.inputs[1]).type.shape;
    const bool bias = conv.inputs.size() > 2 && conv.inputs[2] >= 0;
    return w.size() == x.size() && product({w.begin() + 2, w.end()}) == 1 && w[1] == x[1] &&
           w[0] < w[1] && all_are(conv.attrs.get_ints("strides"), 1) &&
           all_are(conv.attrs.get_ints("pads"), 0) &&
           conv.attrs.get_string("auto_pad", "NOTSET") == "NOTSET" &&
           (!bias || value(conv.inputs[2]).constant) && is_float(value(conv.inputs[0]).type.dtype);
  }

  /// An average pool that gives no fewer elements than it reads: the convolution grows no larger.
  bool is_plain_average(const Node& pool) const {
    if (!pool.domain.empty() || pool.op != "AveragePool" || pool.outputs.size() != 1) return false;
    return element_count(value(pool.inputs[0]).type.shape) <=
           element_count(value(pool.outputs[0]).type.shape);
  }

  /// pool, conv => conv without bias, pool, bias: zeros that the pool counts get no bias.
  Status exchange(const Node& pool, const Node& conv) {
    names_.release_node(conv.name);
    names_.release_node(pool.name);
    Node mix = conv;
    mix.inputs = {pool.inputs[0], conv.inputs[1]};
    mix.outputs.clear();
    Node average = pool;
    average.inputs = {TW_TRY(append_node(graph_, names_, std::move(mix)))};
    average.outputs.clear();
    ValueId made = TW_TRY(append_node(graph_, names_, std::move(average)));
    if (conv.inputs.size() > 2 && conv.inputs[2] >= 0) {
      const Array& bias = array_of(value(conv.inputs[2]));
      Shape shape(value(made).type.shape.size() - 1, 1);
      shape[0] = bias.size();
      Node add;
      add.name = conv.name + "/bias";
      add.op = "Add";
      add.inputs = {made, add_constant(graph_, names_, conv.name + ".bias", bias.reshaped(shape))};
      made = TW_TRY(append_node(graph_, names_, std::move(add)));
    }
    forward(graph_, conv.outputs[0], made);
    return {};
  }

  Graph graph_;
  Names names_;
  const std::vector<int> producer_;
  const std::vector<std::vector<int>> consumer_;
};

}  // namespace

Result<Graph> narrow_pools(const Graph& graph, PassContext& context) {
  return context.regroup ? Narrowing(graph).run(context) : graph;
}

}  // namespace tilewright::graph
