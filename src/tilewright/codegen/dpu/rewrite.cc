// Convolutions that stand for something else: an image from the format unit, copies, averages; and
// inputs that are loaded once.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

std::optional<Window> common_window(const Network& network, ValueId id) {
  std::optional<Window> found;
  const auto& outputs = network.outputs;
  if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return {};
  for (const Layer& layer : network.layers) {
    if (std::find(layer.inputs.begin(), layer.inputs.end(), id) == layer.inputs.end()) continue;
    const auto* conv = std::get_if<ConvLayer>(&layer.op);
    if (conv == nullptr || conv->groups != 1 || conv->window.dilation_w != 1) return {};
    const Window& w = conv->window;
    if (found && (found->kernel_w != w.kernel_w || found->stride_w != w.stride_w ||
                  found->pad_left != w.pad_left || found->pad_right != w.pad_right))
      return {};
    found = w;
  }
  return found;
}

ConvLayer with_formatted_input(const ConvLayer& layer, int64_t in_channels) {
  ConvLayer conv = layer;
  conv.window.kernel_w = conv.window.stride_w = 1;
  conv.window.pad_left = conv.window.pad_right = 0;
  const size_t channels = static_cast<size_t>(in_channels);
  const size_t kh = static_cast<size_t>(layer.window.kernel_h);
  const size_t kw = static_cast<size_t>(layer.window.kernel_w);
  for (size_t oc = 0; oc < layer.bias.size(); ++oc)
    for (size_t c = 0; c < channels; ++c)
      for (size_t ky = 0; ky < kh; ++ky)
        for (size_t kx = 0; kx < kw; ++kx)
          conv.weights[(oc * kw * channels + kx * channels + c) * kh + ky] =
              layer.weights[((oc * channels + c) * kh + ky) * kw + kx];
  return conv;
}

ConvLayer copying_conv(int64_t channels) {
  ConvLayer conv;
  conv.bias.resize(static_cast<size_t>(channels));
  conv.weights.resize(static_cast<size_t>(channels * channels));
  for (int64_t c = 0; c < channels; ++c) conv.weights[static_cast<size_t>(c * channels + c)] = 1;
  return conv;
}

ConvLayer averaging_conv(const PoolLayer& layer, int64_t channels, int factor, int shift) {
  const int64_t taps = int64_t{layer.window.kernel_h} * layer.window.kernel_w;
  ConvLayer conv;
  conv.window = layer.window;
  conv.shift = shift;
  conv.bias.resize(static_cast<size_t>(channels));
  conv.weights.resize(static_cast<size_t>(channels * channels * taps));
  for (int64_t c = 0; c < channels; ++c)
    std::fill_n(conv.weights.begin() + (c * channels + c) * taps, taps,
                static_cast<int8_t>(factor));
  return conv;
}

void fetch_inputs(Lowered& lowered) {
  std::vector<Node> fetches;
  const size_t roots = lowered.roots.size();
  for (size_t r = 0; r < roots; ++r) {
    Root root = lowered.roots[r];
    const int from = static_cast<int>(r), here = static_cast<int>(lowered.roots.size());
    int readers = 0;
    for (const Node& node : lowered.nodes)
      for (const View& view : node.in) readers += view.root == from;
    if (!root.input || readers < 2) continue;
    Node fetch;
    fetch.kind = NodeKind::Fetch;
    fetch.layer = root.name;
    fetch.out = {here, root.height, root.width, root.groups};
    fetch.in = {fetch.out};
    fetch.in[0].root = from;
    root.name += ".here";
    root.input = false;
    lowered.roots.push_back(root);
    for (Node& node : lowered.nodes)
      for (View& view : node.in)
        if (view.root == from) view.root = here;
    fetches.push_back(std::move(fetch));
  }
  lowered.nodes.insert(lowered.nodes.begin(), fetches.begin(), fetches.end());
}

}  // namespace tilewright::dpu
