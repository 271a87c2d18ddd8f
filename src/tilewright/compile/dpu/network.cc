// Operators of the integer graph become layers one by one:
//
//   ConvInteger -> RequantizeFixed   =>  ConvLayer with weights, biases, shift and activation
//   ConvTransposeInteger -> the same =>  DeconvLayer
//   EltwiseFixed, AveragePoolFixed   =>  EltwiseLayer, PoolLayer
//   MaxPool, Concat, Resize, Slice   =>  PoolLayer, ConcatLayer, UpsampleLayer, SliceLayer
//   ToTiles, FromTiles               =>  nothing: outputs and inputs lie in DDR like that
#include "tilewright/compile/dpu/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "tilewright/compile/fixed_layers.h"
#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/quantize/scale.h"
#include "tilewright/tensor/fixed_point.h"
#include "tilewright/tensor/window.h"

namespace tilewright::compile {
namespace {

using graph::Node;
using graph::ValueId;

class NetworkBuilder {
 public:
  NetworkBuilder(const graph::Graph& graph, const std::vector<int>& nodes,
                 const FixPoints& fix_points)
      : graph_(graph),
        nodes_(nodes),
        fix_points_(fix_points),
        producer_(producers(graph)),
        users_(consumers(graph)),
        mine_(nodes.begin(), nodes.end()) {}

  Result<DpuNetwork> run() {
    for (const int n : nodes_) {
      const Node& v = node(n);
      if (is_sum(v)) continue;
      Status done = layer(v, n);
      if (!done) errors_.push_back(std::move(done.error()).at("node '" + v.name + "'"));
    }
    if (!errors_.empty()) {
      Error first = errors_.front();
      first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                          std::make_move_iterator(errors_.end()));
      return tl::unexpected<Error>(std::move(first));
    }
    for (const int n : nodes_)
      for (const ValueId id : node(n).outputs)
        if (id >= 0 && ids_.contains(id) && leaves(id)) add_output(id);
    result_.ids = std::move(ids_);
    return std::move(result_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  const graph::Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  bool known(ValueId id) const { return id >= 0 && value(id).constant.has_value(); }

  static tl::unexpected<Error> unsupported(const std::string& what, const std::string& why = {}) {
    return fail(ErrorKind::Unsupported, what, why);
  }

  // --- Values.

  bool leaves(ValueId id) const {
    const auto& users = users_[static_cast<size_t>(id)];
    const auto& outputs = graph_.outputs;
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end() ||
           std::any_of(users.begin(), users.end(), [&](int n) { return !mine_.contains(n); });
  }
  void add_output(ValueId id) {
    const dpu::ValueId made = ids_.at(id);
    auto& outputs = result_.network.outputs;
    if (std::find(outputs.begin(), outputs.end(), made) != outputs.end()) return;
    outputs.push_back(made);
    result_.origin[static_cast<size_t>(made)] = id;
  }

  Result<dpu::ValueId> add(ValueId id, const Shape& s) {
    if (s.size() != 4 || value(id).type.dtype != DType::I8)
      return unsupported(
          fmt::format("'{}' is {}", value(id).name, graph::to_string(value(id).type)),
          "layers read and make images of 8-bit integers");
    dpu::Value v;
    v.name = value(id).name;
    v.channels = s[1], v.height = s[2], v.width = s[3];
    const auto& point = fix_points_[static_cast<size_t>(id)];
    v.fix_point = point.value_or(0);
    result_.network.values.push_back(std::move(v));
    result_.origin.push_back(id);
    return ids_[id] = static_cast<dpu::ValueId>(result_.network.values.size()) - 1;
  }
  /// What a layer reads: made before, or an input of the network.
  Result<dpu::ValueId> read(ValueId id) {
    if (const auto found = ids_.find(id); found != ids_.end()) return found->second;
    if (known(id)) return unsupported(fmt::format("it reads the constant '{}'", value(id).name));
    const int p = producer_[static_cast<size_t>(id)];
    if (p >= 0 && mine_.contains(p))
      return unsupported(fmt::format("it reads '{}' of a node that is no layer", value(id).name));
    const dpu::ValueId made = TW_TRY(add(id, shape(id)));
    result_.network.inputs.push_back(made);
    return made;
  }
  Status add_layer(const Node& v, std::vector<ValueId> inputs, decltype(dpu::Layer::op) op) {
    dpu::Layer layer;
    layer.name = v.name;
    for (const ValueId id : inputs) layer.inputs.push_back(TW_TRY(read(id)));
    layer.output = TW_TRY(add(v.outputs[0], shape(v.outputs[0])));
    layer.op = std::move(op);
    result_.network.layers.push_back(std::move(layer));
    return {};
  }

  // --- Nodes.

  Status layer(const Node& v, int n) {
    if (v.op == "RequantizeFixed") return convolution(v, n);
    if (v.op == "EltwiseFixed") return eltwise(v);
    if (v.op == "AveragePoolFixed") return average_pool(v);
    if (v.op == "MaxPool") return max_pool(v);
    if (v.op == "Concat") return concat(v);
    if (v.op == "Resize") return upsample(v);
    if (v.op == "Slice") return slice(v);
    if (v.op == "FromTiles") return from_tiles(v);
    if (v.op == "ToTiles") return to_tiles(v);
    return unsupported(fmt::format("there is no layer for {}", v.op));
  }

  /// The input is the value in tiles, under the shape of the image.
  Status from_tiles(const Node& v) {
    const dpu::ValueId made = TW_TRY(add(v.outputs[0], shape(v.outputs[0])));
    result_.network.inputs.push_back(made);
    result_.origin[static_cast<size_t>(made)] = v.inputs[0];
    ids_[v.inputs[0]] = made;
    return {};
  }
  Status to_tiles(const Node& v) {
    ids_[v.outputs[0]] = TW_TRY(read(v.inputs[0]));
    return {};
  }

  /// The activation that an attribute and two bounds are.
  Result<dpu::Activation> activation(const Node& v) const {
    const int64_t lo = v.attrs.get_int("lo", -128), hi = v.attrs.get_int("hi", 127);
    const bool leaky = v.attrs.get_int("leaky", 0) != 0;
    if (lo == -128 && hi == 127) return leaky ? dpu::kLeaky : dpu::kNone;
    if (lo == 0 && !leaky) {
      if (hi == 127) return dpu::kRelu;
      const auto& point = fix_points_[static_cast<size_t>(v.outputs[0])];
      if (point && static_cast<double>(hi) == std::floor(std::ldexp(6.0, *point) + 0.5))
        return dpu::kRelu6;
    }
    return unsupported(fmt::format("it clips to {} ... {}{}", lo, hi, leaky ? ", leaky" : ""),
                       "there are ReLU, ReLU6 and LeakyReLU");
  }

  static dpu::Window window_of(const tensor::Window& w) {
    dpu::Window out;
    out.kernel_h = static_cast<int>(w.kernel[0]), out.kernel_w = static_cast<int>(w.kernel[1]);
    out.stride_h = static_cast<int>(w.strides[0]), out.stride_w = static_cast<int>(w.strides[1]);
    out.dilation_h = static_cast<int>(w.dilations[0]);
    out.dilation_w = static_cast<int>(w.dilations[1]);
    out.pad_top = static_cast<int>(w.begin[0]), out.pad_left = static_cast<int>(w.begin[1]);
    out.pad_bottom = static_cast<int>(w.reached_end(0));
    out.pad_right = static_cast<int>(w.reached_end(1));
    return out;
  }
  /// Pads behind the image are what the output's extent leaves; negative, if ONNX adds rows.
  static dpu::Window window_of(const tensor::TransposedWindow& w, const Shape& x) {
    dpu::Window out;
    out.kernel_h = static_cast<int>(w.kernel[0]), out.kernel_w = static_cast<int>(w.kernel[1]);
    out.stride_h = static_cast<int>(w.strides[0]), out.stride_w = static_cast<int>(w.strides[1]);
    out.dilation_h = static_cast<int>(w.dilations[0]);
    out.dilation_w = static_cast<int>(w.dilations[1]);
    out.pad_top = static_cast<int>(w.begin[0]), out.pad_left = static_cast<int>(w.begin[1]);
    const auto behind = [&](size_t i) {
      const int64_t full = (x[2 + i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
      return static_cast<int>(full - w.output[i] - w.begin[i]);
    };
    out.pad_bottom = behind(0), out.pad_right = behind(1);
    return out;
  }

  Status convolution(const Node& v, int n) {
    const FixedConv conv = TW_TRY(fixed_conv(graph_, n, mine_));
    const Node& sum = node(conv.sum);
    const auto fill = [&](auto op) -> Status {
      op.groups = static_cast<int>(conv.groups);
      op.weights = conv.weights;
      op.bias = conv.bias;
      op.shift = conv.shift;
      op.act = TW_TRY(activation(v));
      return add_layer(v, {sum.inputs[0]}, std::move(op));
    };
    const tensor::OpCall call = op_call(graph_, sum);
    if (sum.op == "ConvTransposeInteger") {
      dpu::DeconvLayer op;
      op.window = window_of(TW_TRY(tensor::transposed_window(call)), shape(sum.inputs[0]));
      return fill(std::move(op));
    }
    dpu::ConvLayer op;
    op.window =
        window_of(TW_TRY(tensor::conv_window(call, shape(sum.inputs[0]), shape(sum.inputs[1]))));
    return fill(std::move(op));
  }

  Status eltwise(const Node& v) {
    std::vector<ValueId> inputs;
    for (const ValueId id : v.inputs)
      if (id >= 0) inputs.push_back(id);
    dpu::EltwiseLayer op;
    const auto shifts = v.attrs.get_ints("shift_read", {0, 0});
    for (size_t i = 0; i < inputs.size(); ++i) op.shift_read[i] = static_cast<int>(shifts[i]);
    op.shift_write = static_cast<int>(v.attrs.get_int("shift_write", 0));
    op.act = TW_TRY(activation(v));
    return add_layer(v, std::move(inputs), op);
  }

  Result<tensor::Window> pool_window(const Node& v) const {
    const Shape& x = shape(v.inputs[0]);
    if (x.size() != 4) return unsupported(fmt::format("its input is {}", to_string(x)));
    return tensor::window_of(op_call(graph_, v), {x[2], x[3]}, v.attrs.get_ints("kernel_shape"),
                             v.attrs.get_int("ceil_mode", 0) != 0);
  }
  Status max_pool(const Node& v) {
    if (v.outputs.size() != 1) return unsupported("positions of maxima are asked for");
    dpu::PoolLayer op;
    op.window = window_of(TW_TRY(pool_window(v)));
    return add_layer(v, {v.inputs[0]}, op);
  }
  Status average_pool(const Node& v) {
    const tensor::Window window = TW_TRY(pool_window(v));
    dpu::PoolLayer op;
    op.window = window_of(window);
    op.average = true;
    op.factor = static_cast<int>(v.attrs.get_int("factor", 0));
    op.shift = static_cast<int>(v.attrs.get_int("shift", 0));
    if (v.attrs.get_int("count_include_pad", 1) == 0 && window.needs_padding()) {
      const int64_t taps = window.kernel[0] * window.kernel[1];
      for (int64_t inside = 1; inside <= taps; ++inside) {
        const tensor::MeanFactor mean = tensor::mean_factor(inside);
        const int64_t shift = mean.shift + op.shift - tensor::mean_factor(taps).shift;
        op.means.push_back({static_cast<int>(mean.factor), static_cast<int>(shift)});
      }
    }
    return add_layer(v, {v.inputs[0]}, std::move(op));
  }

  Status concat(const Node& v) {
    const int64_t axis = v.attrs.get_int("axis", 0);
    if (axis != 1 && axis != -3) return unsupported(fmt::format("it joins along axis {}", axis));
    return add_layer(v, v.inputs, dpu::ConcatLayer{});
  }

  /// Whether each pixel becomes a block of equal ones.
  static bool repeats(const Node& v) {
    const std::string where = v.attrs.get_string("coordinate_transformation_mode", "half_pixel");
    const std::string nearest = v.attrs.get_string("nearest_mode", "round_prefer_floor");
    if (v.attrs.get_string("mode", "nearest") != "nearest") return false;
    if (where == "asymmetric") return nearest == "floor";
    return (where == "half_pixel" || where == "pytorch_half_pixel") &&
           nearest.starts_with("round_prefer");
  }
  Status upsample(const Node& v) {
    const Shape &x = shape(v.inputs[0]), &y = shape(v.outputs[0]);
    const bool whole =
        x.size() == 4 && y[0] == x[0] && y[1] == x[1] && y[2] % x[2] == 0 && y[3] % x[3] == 0;
    if (!whole || !repeats(v))
      return unsupported("it is no repetition of pixels",
                         fmt::format("{} becomes {}, mode {}", to_string(x), to_string(y),
                                     v.attrs.get_string("mode", "nearest")));
    dpu::UpsampleLayer op;
    op.factor_h = static_cast<int>(y[2] / x[2]), op.factor_w = static_cast<int>(y[3] / x[3]);
    return add_layer(v, {v.inputs[0]}, op);
  }

  /// Channels, rows and columns behind one another.
  Status slice(const Node& v) {
    const Shape &x = shape(v.inputs[0]), &y = shape(v.outputs[0]);
    const auto starts = graph::known_ints(graph_, v, 1);
    const auto axes = graph::known_ints(graph_, v, 3), steps = graph::known_ints(graph_, v, 4);
    const auto given = [&](size_t input) {
      return v.inputs.size() > input && v.inputs[input] >= 0;
    };
    if (x.size() != 4 || !starts || (given(3) && !axes) || (given(4) && !steps) || y[0] != x[0])
      return unsupported("it cuts other than channels, rows and columns at known places",
                         fmt::format("{} becomes {}", to_string(x), to_string(y)));
    int64_t begin[4] = {};
    for (size_t i = 0; i < starts->size(); ++i) {
      const int64_t axis = ((axes ? (*axes)[i] : static_cast<int64_t>(i)) + 4) % 4;
      const int64_t size = x[static_cast<size_t>(axis)], start = (*starts)[i];
      const int64_t step = steps ? (*steps)[i] : 1;
      if (step != 1)
        return unsupported(fmt::format("it takes one of {} elements along axis {}", step, axis));
      begin[axis] = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
    }
    return add_layer(v, {v.inputs[0]}, dpu::SliceLayer{begin[1], begin[2], begin[3]});
  }

  const graph::Graph& graph_;
  const std::vector<int>& nodes_;
  const FixPoints& fix_points_;
  const std::vector<int> producer_;
  const std::vector<std::vector<int>> users_;
  const std::set<int> mine_;
  std::map<ValueId, dpu::ValueId> ids_;
  DpuNetwork result_;
  std::vector<Error> errors_;
};

}  // namespace

FixPoints fix_points(const graph::QuantizedGraph& quantized) {
  FixPoints points(quantized.graph.values.size());
  for (size_t v = 0; v < points.size(); ++v) {
    const auto& scales = quantized.scales[v];
    if (scales.size() != 1) continue;
    if (const auto exponent = graph::exact_log2(scales[0])) points[v] = -*exponent;
  }
  return points;
}

graph::IntegerAbilities dpu_abilities(const dpu::Config& config) {
  graph::IntegerAbilities can;
  can.fixed_point = can.leaky_relu = can.first_convolutions = can.transposed_convolutions = true;
  can.averages = config.compiler.dense_average ? graph::Averages::Dense : graph::Averages::Pool;
  return can;
}

Result<DpuNetwork> dpu_network(const graph::Graph& graph, const std::vector<int>& nodes,
                               const FixPoints& fix_points) {
  DpuNetwork made = TW_TRY(NetworkBuilder(graph, nodes, fix_points).run());
  TW_TRY_STATUS(dpu::check(made.network));
  return made;
}

Status supports_layer(const dpu::Config& config, const graph::Graph& graph, int node,
                      const FixPoints& fix_points) {
  const DpuNetwork made = TW_TRY(dpu_network(graph, layer_nodes(graph, node), fix_points));
  for (const dpu::Layer& layer : made.network.layers)
    TW_TRY_STATUS(dpu::supports(config, made.network, layer));
  return {};
}

}  // namespace tilewright::compile
