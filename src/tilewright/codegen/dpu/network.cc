// Shapes of networks: a 3x3 convolution of stride 2 and pads of 1 makes 112 rows of 224.
#include "tilewright/codegen/dpu/network.h"

#include <fmt/format.h>

#include <set>

#include "tilewright/accel/common/image.h"

namespace tilewright::dpu {
namespace {

int64_t extent(int64_t size, int before, int after, int kernel, int dilation, int stride) {
  const int64_t room = size + before + after - (int64_t{kernel} - 1) * dilation - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// What one layer does to shapes, and whether its parameters are as many as they should be.
class LayerCheck {
 public:
  LayerCheck(const Network& network, const Layer& layer, accel::Problems& problems)
      : network_(network), layer_(layer), problems_(problems), out_(value(layer.output)) {}

  void operator()(const ConvLayer& op) {
    if (!inputs(1, 1) || !window(op.window)) return;
    const Value& x = value(layer_.inputs[0]);
    if (!divides(op.groups, x.channels, out_.channels)) return;
    shape(out_.channels, rows(x, op.window), columns(x, op.window));
    const int64_t taps = int64_t{op.window.kernel_h} * op.window.kernel_w;
    parameters(op.weights.size(), out_.channels * (x.channels / op.groups) * taps, op.bias.size());
  }
  void operator()(const DeconvLayer& op) {
    if (!inputs(1, 1) || !window(op.window)) return;
    const Value& x = value(layer_.inputs[0]);
    const Window& w = op.window;
    if (!divides(op.groups, x.channels, out_.channels)) return;
    // Output rows that ONNX adds behind the last one are pads that are smaller, or negative.
    const int64_t height = (x.height - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1 -
                           w.pad_top - w.pad_bottom;
    const int64_t width =
        (x.width - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1 - w.pad_left - w.pad_right;
    shape(out_.channels, height, width);
    const int64_t taps = int64_t{w.kernel_h} * w.kernel_w;
    parameters(op.weights.size(), x.channels * (out_.channels / op.groups) * taps, op.bias.size());
  }
  void operator()(const PoolLayer& op) {
    if (!inputs(1, 1) || !window(op.window)) return;
    const Value& x = value(layer_.inputs[0]);
    shape(x.channels, rows(x, op.window), columns(x, op.window));
    const auto taps =
        static_cast<size_t>(op.window.kernel_h) * static_cast<size_t>(op.window.kernel_w);
    if (!op.means.empty() && op.means.size() != taps)
      problem(fmt::format("has means for {} taps, not {}", op.means.size(), taps));
  }
  void operator()(const EltwiseLayer&) {
    if (!inputs(1, 2)) return;
    for (const ValueId id : layer_.inputs)
      shape(value(id).channels, value(id).height, value(id).width);
  }
  void operator()(const UpsampleLayer& op) {
    if (!inputs(1, 1)) return;
    const Value& x = value(layer_.inputs[0]);
    shape(x.channels, x.height * op.factor_h, x.width * op.factor_w);
  }
  void operator()(const ConcatLayer&) {
    if (!inputs(1, static_cast<size_t>(-1))) return;
    int64_t channels = 0;
    for (const ValueId id : layer_.inputs) {
      channels += value(id).channels;
      same_point(id, "joins");
    }
    shape(channels, value(layer_.inputs[0]).height, value(layer_.inputs[0]).width);
    for (const ValueId id : layer_.inputs) shape(channels, value(id).height, value(id).width);
  }
  void operator()(const SliceLayer& op) {
    if (!inputs(1, 1)) return;
    const Value& x = value(layer_.inputs[0]);
    same_point(layer_.inputs[0], "cuts");
    inside("channels", op.channel, out_.channels, x.channels);
    inside("rows", op.row, out_.height, x.height);
    inside("columns", op.column, out_.width, x.width);
  }

 private:
  const Value& value(ValueId id) const { return network_.values[static_cast<size_t>(id)]; }
  void same_point(ValueId id, const char* does) {
    if (value(id).fix_point == out_.fix_point) return;
    problem(fmt::format("{} {} with fix_point {} to {}", does, value(id).name, value(id).fix_point,
                        out_.fix_point));
  }
  void inside(const char* what, int64_t begin, int64_t count, int64_t size) {
    if (begin < 0 || begin + count > size)
      problem(fmt::format("takes {} {} to {} of {}", what, begin, begin + count, size));
  }
  void problem(const std::string& text) {
    problems_.add(fmt::format("layer {}: {}", layer_.name, text));
  }
  bool inputs(size_t least, size_t most) {
    const size_t count = layer_.inputs.size();
    if (count >= least && count <= most) return true;
    problem(fmt::format("has {} inputs", count));
    return false;
  }
  bool window(const Window& w) {
    const bool ok = w.kernel_h > 0 && w.kernel_w > 0 && w.stride_h > 0 && w.stride_w > 0 &&
                    w.dilation_h > 0 && w.dilation_w > 0;
    if (!ok) problem("a kernel, stride or dilation is not positive");
    return ok;
  }
  bool divides(int groups, int64_t in, int64_t out) {
    const bool ok = groups > 0 && in % groups == 0 && out % groups == 0;
    if (!ok) problem(fmt::format("{} groups of {} and {} channels", groups, in, out));
    return ok;
  }
  static int64_t rows(const Value& x, const Window& w) {
    return extent(x.height, w.pad_top, w.pad_bottom, w.kernel_h, w.dilation_h, w.stride_h);
  }
  static int64_t columns(const Value& x, const Window& w) {
    return extent(x.width, w.pad_left, w.pad_right, w.kernel_w, w.dilation_w, w.stride_w);
  }
  void shape(int64_t channels, int64_t height, int64_t width) {
    if (channels == out_.channels && height == out_.height && width == out_.width) return;
    problem(fmt::format("makes {}x{}x{}, but {} is {}x{}x{}", channels, height, width, out_.name,
                        out_.channels, out_.height, out_.width));
  }
  void parameters(size_t weights, int64_t expected, size_t bias) {
    if (weights != static_cast<size_t>(expected))
      problem(fmt::format("has {} weights, not {}", weights, expected));
    if (bias != static_cast<size_t>(out_.channels))
      problem(fmt::format("has {} biases, not {}", bias, out_.channels));
  }

  const Network& network_;
  const Layer& layer_;
  accel::Problems& problems_;
  const Value& out_;
};

}  // namespace

Status check(const Network& network) {
  accel::Problems problems;
  const auto known = [&](ValueId id) {
    return id >= 0 && static_cast<size_t>(id) < network.values.size();
  };
  for (const Value& value : network.values)
    if (value.channels < 1 || value.height < 1 || value.width < 1)
      problems.add(fmt::format("value {}: {}x{}x{} is empty", value.name, value.channels,
                               value.height, value.width));
  std::set<ValueId> made;
  for (const ValueId id : network.inputs)
    if (!known(id) || !made.insert(id).second)
      problems.add(fmt::format("input {} is no value, or is one twice", id));
  for (const Layer& layer : network.layers) {
    bool ok = known(layer.output);
    for (const ValueId id : layer.inputs) {
      if (made.count(id) != 0) continue;
      problems.add(
          fmt::format("layer {}: reads value {}, which nothing before it makes", layer.name, id));
      ok = false;
    }
    if (!ok || !made.insert(layer.output).second)
      problems.add(
          fmt::format("layer {}: value {} is made twice, or is none", layer.name, layer.output));
    else
      std::visit(LayerCheck(network, layer, problems), layer.op);
  }
  if (network.outputs.empty()) problems.add("the network has no output");
  for (const ValueId id : network.outputs)
    if (made.count(id) == 0) problems.add(fmt::format("output {} is made by nothing", id));
  return std::move(problems).status();
}

}  // namespace tilewright::dpu
