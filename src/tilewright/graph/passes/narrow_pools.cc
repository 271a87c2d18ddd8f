// An average pool goes behind the 1x1 convolution that reads it, which leaves it fewer channels.
//
//   AveragePool of 384 channels, Conv 1x1 to 64, bias  =>  Conv 1x1 to 64, AveragePool of 64, bias
//
// Both are linear, so their order is free. The bias stays last: zeros that the pool counts as
// padding never had one.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/graph/ir/known.h"
#include "tilewright/graph/ir/rewriter.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/tensor/window.h"

namespace tilewright::graph {
namespace {

class Narrowing : private Editor {
 public:
  explicit Narrowing(const Graph& graph)
      : Editor(graph), producer_(producers(graph)), consumer_(consumers(graph)) {}

  Result<Graph> run(PassContext& context) {
    const std::vector<bool> output = is_output(graph());
    for (size_t n = 0, count = graph().nodes.size(); n < count; ++n) {
      const Node conv = graph().nodes[n];
      if (!conv.domain.empty() || conv.op != "Conv" || !mixes_channels(conv)) continue;
      const auto between = static_cast<size_t>(conv.inputs[0]);
      if (between >= producer_.size()) continue;  // made here
      const int p = producer_[between];
      if (p < 0 || output[between] || consumer_[between].size() != 1) continue;
      const Node pool = graph().nodes[static_cast<size_t>(p)];
      if (!is_plain_average(pool)) continue;
      TW_TRY_STATUS(exchange(pool, conv));
      context.notes.push_back(fmt::format("'{}' behind '{}'", pool.name, conv.name));
    }
    return compact(graph());
  }

 private:
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
    release(conv);
    release(pool);
    Node mix = conv;
    mix.inputs = {pool.inputs[0], conv.inputs[1]};
    mix.outputs.clear();
    Node average = pool;
    average.inputs = {TW_TRY(append_like(std::move(mix)))};
    average.outputs.clear();
    ValueId made = TW_TRY(append_like(std::move(average)));
    if (conv.inputs.size() > 2 && conv.inputs[2] >= 0) {
      const Array& bias = array_of(value(conv.inputs[2]));
      Shape along(shape(made).size() - 1, 1);
      along[0] = bias.size();
      const ValueId addend = constant(conv.name + ".bias", bias.reshaped(along));
      made = TW_TRY(append(conv.name + "/bias", "Add", {made, addend}));
    }
    forward(graph(), conv.outputs[0], made);
    return {};
  }

  const std::vector<int> producer_;
  const std::vector<std::vector<int>> consumer_;
};

}  // namespace

Result<Graph> narrow_pools(const Graph& graph, PassContext& context) {
  return context.regroup ? Narrowing(graph).run(context) : graph;
}

}  // namespace tilewright::graph
