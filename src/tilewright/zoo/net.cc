#include "tilewright/zoo/net.h"

#include <algorithm>
#include <cmath>

#include "tilewright/base/check.h"

namespace tilewright::zoo {
namespace {

graph::AttrList attributes(const WindowAttrs& w) {
  graph::AttrList attrs = {{"kernel_shape", Ints{w.kernel_h, w.kernel_w}},
                           {"strides", Ints{w.stride, w.stride}}};
  if (w.same_upper) {
    attrs.emplace_back("auto_pad", std::string("SAME_UPPER"));
  } else {
    attrs.emplace_back("pads", w.pads.empty() ? Ints{0, 0, 0, 0} : w.pads);
  }
  return attrs;
}

}  // namespace

WindowAttrs window(int64_t kernel, int64_t stride, int64_t pad) {
  return {kernel, kernel, stride, {pad, pad, pad, pad}};
}

WindowAttrs same(int64_t kernel, int64_t stride) {
  WindowAttrs w{kernel, kernel, stride};
  w.same_upper = true;
  return w;
}

int64_t round_channels(double channels) {
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

Net::Net(std::string name, const Options& options)
    : builder_(std::move(name)), rng_(options.seed) {}

ValueId Net::input(const std::string& name, Shape shape, DType dtype) {
  return builder_.input(name, dtype, std::move(shape));
}

const Shape& Net::shape(ValueId x) const { return builder_.type(x).shape; }

std::vector<ValueId> Net::nodes(const std::string& op, std::vector<ValueId> inputs,
                                graph::AttrList attrs, int outputs) {
  const std::vector<ValueId> ids = builder_.nodes(op, std::move(inputs), std::move(attrs), outputs);
  // The builder's own report of the misfit.
  if (ids[0] < 0) finish({});
  return ids;
}

ValueId Net::node(const std::string& op, std::vector<ValueId> inputs, graph::AttrList attrs) {
  return nodes(op, std::move(inputs), std::move(attrs), 1)[0];
}

ValueId Net::constant(Array values) { return builder_.constant("weight", std::move(values)); }

ValueId Net::ints(const Ints& values) { return builder_.ints(values); }

ValueId Net::scalar(double value) { return constant(Array::scalar(DType::F32, value)); }

ValueId Net::weights(Shape shape, double deviation) {
  Array array(DType::F32, std::move(shape));
  for (float& value : array.as<float>()) value = static_cast<float>(rng_.normal() * deviation);
  return constant(std::move(array));
}

ValueId Net::conv(ValueId x, int64_t out, const WindowAttrs& w, bool bias) {
  const int64_t in = shape(x)[1] / w.groups;
  const double fan_in = static_cast<double>(in * w.kernel_h * w.kernel_w);
  std::vector<ValueId> inputs = {
      x, weights({out, in, w.kernel_h, w.kernel_w}, std::sqrt(2.0 / fan_in))};
  if (bias) inputs.push_back(weights({out}, 0.05));
  graph::AttrList attrs = attributes(w);
  attrs.emplace_back("group", w.groups);
  attrs.emplace_back("dilations", Ints{w.dilation, w.dilation});
  return node("Conv", std::move(inputs), std::move(attrs));
}

ValueId Net::conv_transpose(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                            bool bias) {
  const int64_t in = shape(x)[1];
  // Each output sums kernel/stride taps per axis.
  const double taps =
      static_cast<double>(in * kernel * kernel) / static_cast<double>(stride * stride);
  std::vector<ValueId> inputs = {x, weights({in, out, kernel, kernel}, std::sqrt(2.0 / taps))};
  if (bias) inputs.push_back(weights({out}, 0.05));
  return node("ConvTranspose", std::move(inputs), attributes(window(kernel, stride, pad)));
}

ValueId Net::batch_norm(ValueId x, double gain) {
  const int64_t channels = shape(x)[1];
  Array scale(DType::F32, {channels}), shift(DType::F32, {channels});
  Array mean(DType::F32, {channels}), variance(DType::F32, {channels});
  for (int64_t c = 0; c < channels; ++c) {
    scale.set(c, gain * (0.8 + 0.4 * rng_.uniform()));
    shift.set(c, gain * 0.2 * rng_.normal());
    mean.set(c, 0.1 * rng_.normal());
    variance.set(c, 0.6 + 0.8 * rng_.uniform());
  }
  return node("BatchNormalization",
              {x, constant(std::move(scale)), constant(std::move(shift)), constant(std::move(mean)),
               constant(std::move(variance))},
              {{"epsilon", 1e-5}});
}

ValueId Net::leaky(ValueId x, double slope) { return node("LeakyRelu", {x}, {{"alpha", slope}}); }

ValueId Net::conv_bn_relu(ValueId x, int64_t out, const WindowAttrs& w) {
  return relu(batch_norm(conv(x, out, w, false)));
}

ValueId Net::max_pool(ValueId x, const WindowAttrs& w) {
  graph::AttrList attrs = attributes(w);
  attrs.emplace_back("ceil_mode", int64_t{w.ceil});
  return node("MaxPool", {x}, std::move(attrs));
}

ValueId Net::avg_pool(ValueId x, const WindowAttrs& w, bool count_pad) {
  graph::AttrList attrs = attributes(w);
  attrs.emplace_back("ceil_mode", int64_t{w.ceil});
  attrs.emplace_back("count_include_pad", int64_t{count_pad});
  return node("AveragePool", {x}, std::move(attrs));
}

ValueId Net::concat(std::vector<ValueId> parts, int64_t axis) {
  return node("Concat", std::move(parts), {{"axis", axis}});
}

ValueId Net::dense(ValueId x, int64_t out, double deviation) {
  const int64_t in = shape(x).back();
  if (deviation == 0) deviation = std::sqrt(2.0 / static_cast<double>(in));
  return node("Gemm", {x, weights({out, in}, deviation), weights({out}, 0.05)},
              {{"transB", int64_t{1}}});
}

ValueId Net::softmax(ValueId x) { return node("Softmax", {x}, {{"axis", int64_t{-1}}}); }

graph::Graph Net::finish(const std::vector<ValueId>& outputs) {
  for (ValueId output : outputs) builder_.output(output);
  Result<graph::Graph> graph = builder_.finish();
  TW_CHECK(graph.has_value(), "{}", to_string(graph.error()));
  return *std::move(graph);
}

}  // namespace tilewright::zoo
