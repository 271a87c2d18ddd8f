#include "tilewright/compile/spatial/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tilewright/compile/fixed_layers.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/tensor/window.h"

namespace tilewright::compile {
namespace {

using graph::Node;
using graph::ValueId;

tl::unexpected<Error> no_layer(const std::string& what, const std::string& why = {}) {
  return fail(ErrorKind::Unsupported, what, why);
}

class SpatialNetworkBuilder {
 public:
  SpatialNetworkBuilder(const graph::Graph& graph, const std::vector<int>& nodes)
      : graph_(graph), nodes_(nodes), users_(consumers(graph)), mine_(nodes.begin(), nodes.end()) {}

  Result<SpatialNetwork> run() {
    for (const int n : nodes_) {
      if (is_sum(node(n))) continue;
      Status done = layer(n);
      if (!done) errors_.push_back(std::move(done.error()).at("node '" + node(n).name + "'"));
    }
    if (!errors_.empty()) {
      Error first = errors_.front();
      first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                          std::make_move_iterator(errors_.end()));
      return tl::unexpected<Error>(std::move(first));
    }
    for (const int n : nodes_)
      for (const ValueId id : node(n).outputs)
        if (result_.ids.contains(id) && leaves(id))
          result_.network.outputs.push_back(result_.ids.at(id));
    return std::move(result_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const graph::Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }

  bool leaves(ValueId id) const {
    const auto& users = users_[static_cast<size_t>(id)];
    const auto& outputs = graph_.outputs;
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end() ||
           std::any_of(users.begin(), users.end(), [&](int n) { return !mine_.contains(n); });
  }

  /// Images of one row are those of a convolution along one axis.
  Result<int> add(ValueId id) {
    const Shape& s = shape(id);
    if (s.size() < 3 || s.size() > 4 || value(id).type.dtype != DType::I8)
      return no_layer(fmt::format("'{}' is {}", value(id).name, graph::to_string(value(id).type)),
                      "layers read and make 8-bit images of one or two axes");
    auto& values = result_.network.values;
    values.push_back({value(id).name, s[0], s[1], s.size() == 4 ? s[2] : 1, s.back()});
    return result_.ids[id] = static_cast<int>(values.size()) - 1;
  }

  /// What a layer reads: made before, or an input of the network.
  Result<int> read(ValueId id) {
    if (const auto found = result_.ids.find(id); found != result_.ids.end()) return found->second;
    if (value(id).constant)
      return no_layer(fmt::format("it reads '{}', which is known", value(id).name));
    const int made = TW_TRY(add(id));
    result_.network.inputs.push_back(made);
    return made;
  }

  Status layer(int n) {
    const Node& v = node(n);
    if (v.op != "RequantizeFixed") return no_layer(fmt::format("no unit computes {}", v.op));
    FixedConv conv = TW_TRY(fixed_conv(graph_, n, mine_));
    const Node& sum = node(conv.sum);
    if (sum.op != "ConvInteger") return no_layer("no unit computes transposed convolutions");
    if (v.attrs.get_int("leaky", 0) != 0) return no_layer("STORE clips, it has no LeakyRelu");
    if (conv.shift < 0)
      return no_layer(fmt::format("its sums are shifted left by {}", -conv.shift),
                      "STORE shifts right");
    const tensor::Window w = TW_TRY(
        tensor::conv_window(op_call(graph_, sum), shape(sum.inputs[0]), shape(sum.inputs[1])));
    if (w.rank() > 2)
      return no_layer("convolutions over three axes need more loops than a COMPUTE has");
    spatial::ConvLayer layer;
    layer.name = v.name;
    layer.groups = conv.groups;
    for (size_t axis = 0; axis < w.rank(); ++axis) {
      const size_t at = axis + 2 - w.rank();
      layer.kernel[at] = w.kernel[axis];
      layer.stride[at] = w.strides[axis];
      layer.dilation[at] = w.dilations[axis];
      layer.pad[at] = w.begin[axis];
    }
    layer.weights = std::move(conv.weights);
    layer.bias = std::move(conv.bias);
    layer.shift = conv.shift;
    layer.low = static_cast<int>(v.attrs.get_int("lo", -128));
    layer.high = static_cast<int>(v.attrs.get_int("hi", 127));
    layer.input = TW_TRY(read(sum.inputs[0]));
    layer.output = TW_TRY(add(v.outputs[0]));
    result_.network.layers.push_back(std::move(layer));
    return {};
  }

  const graph::Graph& graph_;
  const std::vector<int>& nodes_;
  const std::vector<std::vector<int>> users_;
  const std::set<int> mine_;
  SpatialNetwork result_;
  std::vector<Error> errors_;
};

}  // namespace

graph::IntegerAbilities spatial_abilities() {
  graph::IntegerAbilities can;
  can.fixed_point = can.first_convolutions = can.transposed_convolutions = true;
  can.averages = graph::Averages::Pool;
  return can;
}

Result<SpatialNetwork> spatial_network(const graph::Graph& graph, const std::vector<int>& nodes) {
  return SpatialNetworkBuilder(graph, nodes).run();
}

}  // namespace tilewright::compile
