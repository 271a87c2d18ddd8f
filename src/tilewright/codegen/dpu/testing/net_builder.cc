#include <algorithm>
#include <utility>

#include "tilewright/codegen/dpu/testing/networks.h"

namespace tilewright::dpu {
namespace {

int64_t windows(int64_t size, int kernel, int stride, int dilation, int before, int after) {
  return (size + before + after - (kernel - 1) * dilation - 1) / stride + 1;
}

Value shaped(int64_t channels, const Value& x, const Window& w) {
  return {"", channels,
          windows(x.height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom),
          windows(x.width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right), 0};
}

PoolLayer::Mean mean_of(int taps) {
  PoolLayer::Mean mean;
  mean.shift = 6;
  while ((2 << mean.shift) <= 127 * taps) ++mean.shift;
  mean.factor = ((2 << mean.shift) / taps + 1) / 2;
  return mean;
}

}  // namespace

Window square(int kernel, int stride, int pad) {
  Window w;
  w.kernel_h = w.kernel_w = kernel;
  w.stride_h = w.stride_w = stride;
  w.pad_top = w.pad_left = w.pad_bottom = w.pad_right = pad;
  return w;
}

Window same_window(int kernel, int stride, int64_t size) {
  Window w = square(kernel, stride);
  const int64_t total =
      std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + kernel - size);
  w.pad_top = w.pad_left = static_cast<int>(total / 2);
  w.pad_bottom = w.pad_right = static_cast<int>(total - total / 2);
  return w;
}

Window ceil_window(int kernel, int stride, int64_t size) {
  Window w = square(kernel, stride);
  const int64_t out = (size - kernel + stride - 1) / stride + 1;
  w.pad_bottom = w.pad_right = static_cast<int>((out - 1) * stride + kernel - size);
  return w;
}

ValueId NetBuilder::push(const char* kind, std::vector<ValueId> inputs, Value value,
                         decltype(Layer::op) op) {
  const ValueId id = static_cast<ValueId>(network_.values.size());
  value.name = kind + std::to_string(id);
  network_.layers.push_back({value.name, std::move(inputs), id, std::move(op)});
  network_.values.push_back(std::move(value));
  return id;
}

ValueId NetBuilder::input(int64_t channels, int64_t height, int64_t width) {
  const ValueId id = static_cast<ValueId>(network_.values.size());
  network_.values.push_back({"data" + std::to_string(id), channels, height, width, 0});
  network_.inputs.push_back(id);
  return id;
}

ValueId NetBuilder::conv(ValueId x, int64_t channels, const Window& window, Activation act,
                         int groups) {
  const Value& in = value(x);
  ConvLayer op;
  op.window = window;
  op.groups = groups;
  op.weights.resize(
      static_cast<size_t>(channels * (in.channels / groups) * window.kernel_h * window.kernel_w));
  op.bias.resize(static_cast<size_t>(channels));
  op.act = act;
  return push("conv", {x}, shaped(channels, in, window), std::move(op));
}

ValueId NetBuilder::deconv(ValueId x, int64_t channels, const Window& window, Activation act) {
  const Value& in = value(x);
  DeconvLayer op;
  op.window = window;
  op.weights.resize(
      static_cast<size_t>(channels * in.channels * window.kernel_h * window.kernel_w));
  op.bias.resize(static_cast<size_t>(channels));
  op.act = act;
  const Value out{
      "", channels,
      (in.height - 1) * window.stride_h + window.kernel_h - window.pad_top - window.pad_bottom,
      (in.width - 1) * window.stride_w + window.kernel_w - window.pad_left - window.pad_right, 0};
  return push("deconv", {x}, out, std::move(op));
}

ValueId NetBuilder::max_pool(ValueId x, const Window& window) {
  PoolLayer op;
  op.window = window;
  return push("pool", {x}, shaped(value(x).channels, value(x), window), op);
}

ValueId NetBuilder::average_pool(ValueId x, const Window& window, bool inside) {
  PoolLayer op;
  op.window = window;
  op.average = true;
  const int taps = window.kernel_h * window.kernel_w;
  const PoolLayer::Mean all = mean_of(taps);
  op.factor = all.factor;
  op.shift = all.shift;
  for (int n = 1; inside && n <= taps; ++n) op.means.push_back(mean_of(n));
  return push("average", {x}, shaped(value(x).channels, value(x), window), op);
}

ValueId NetBuilder::add(ValueId a, ValueId b, Activation act) {
  EltwiseLayer op;
  op.act = act;
  return push("add", {a, b}, value(a), op);
}

ValueId NetBuilder::scale(ValueId a, int shift) {
  EltwiseLayer op;
  op.shift_write = shift;
  return push("scale", {a}, value(a), op);
}

ValueId NetBuilder::upsample(ValueId x, int factor) {
  Value out = value(x);
  out.height *= factor;
  out.width *= factor;
  return push("upsample", {x}, out, UpsampleLayer{factor, factor});
}

ValueId NetBuilder::concat(const std::vector<ValueId>& parts) {
  Value out = value(parts[0]);
  out.channels = 0;
  for (const ValueId part : parts) out.channels += value(part).channels;
  return push("concat", parts, out, ConcatLayer{});
}

ValueId NetBuilder::slice(ValueId x, const SliceLayer& from, const Value& part) {
  Value out = part;
  out.fix_point = value(x).fix_point;
  return push("slice", {x}, out, from);
}

Network NetBuilder::finish(const std::vector<ValueId>& outputs) {
  network_.outputs = outputs;
  return std::move(network_);
}

}  // namespace tilewright::dpu
