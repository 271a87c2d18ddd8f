// Convolutions that stand for something else: an image from the format unit, copies, averages.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {

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

}  // namespace tilewright::dpu
