// Strided convolutions without bank conflicts.
//
// With a row stride of 2 the eight rows of a tile lie in four banks: CONV reads twice as long. Row
// pairs side by side as channel groups make stride 1 of it: a 3x3 kernel becomes 2x3 over twice the
// channels, 4/3 of the time instead of 2. Of 1x1 kernels only every other row and column is needed:
// MISC copies them.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Rows of eight that meet in a bank.
int conflict(int stride) {
  int most = 1;
  for (int bank = 0; bank < kBanks; ++bank) {
    int rows = 0;
    for (int i = 0; i < kBanks; ++i) rows += i * stride % kBanks == bank;
    most = std::max(most, rows);
  }
  return most;
}

struct Folding {
  int before = 0;  ///< zero rows in front of the kernel, so that it begins at a folded row
  int kernel = 0, pad = 0;
};
Folding folding(const Window& w) {
  const int s = w.stride_h;
  Folding f;
  f.before = (s - w.pad_top % s) % s;
  f.kernel = (w.kernel_h - 1 + f.before) / s + 1;
  f.pad = (w.pad_top + f.before) / s;
  return f;
}

bool worth_folding(const ConvLayer& layer, const Value& in) {
  const Window& w = layer.window;
  if (layer.groups != 1 || conflict(w.stride_h) == 1 || in.height <= w.stride_h) return false;
  if (w.kernel_h == 1 && w.kernel_w == 1) return w.pad_top == 0 && w.pad_left == 0;
  return w.kernel_h > 1 && folding(w).kernel * w.stride_h < conflict(w.stride_h) * w.kernel_h;
}

}  // namespace

std::set<size_t> worth_reordering(const Network& network) {
  std::set<size_t> layers;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const auto* conv = std::get_if<ConvLayer>(&layer.op);
    if (conv != nullptr &&
        worth_folding(*conv, network.values[static_cast<size_t>(layer.inputs[0])]))
      layers.insert(i);
  }
  return layers;
}

ConvLayer fold_rows(const ConvLayer& layer, int64_t in_groups, std::vector<int>& lanes) {
  const Window& w = layer.window;
  const Folding f = folding(w);
  const size_t s = static_cast<size_t>(w.stride_h), channels = lanes.size();
  ConvLayer out = layer;
  out.window.kernel_h = f.kernel;
  out.window.stride_h = 1;
  out.window.pad_top = f.pad;
  const size_t kh = static_cast<size_t>(w.kernel_h), kw = static_cast<size_t>(w.kernel_w);
  const size_t folded = static_cast<size_t>(f.kernel);
  out.weights.assign(layer.bias.size() * s * channels * folded * kw, 0);
  for (size_t oc = 0; oc < layer.bias.size(); ++oc)
    for (size_t c = 0; c < channels; ++c)
      for (size_t ky = 0; ky < kh; ++ky)
        for (size_t kx = 0; kx < kw; ++kx) {
          const size_t row = ky + static_cast<size_t>(f.before);
          const size_t channel = row % s * channels + c;
          out.weights[((oc * s * channels + channel) * folded + row / s) * kw + kx] =
              layer.weights[((oc * channels + c) * kh + ky) * kw + kx];
        }
  std::vector<int> wide;
  for (size_t q = 0; q < s; ++q)
    for (const int lane : lanes)
      wide.push_back(lane + static_cast<int>(static_cast<int64_t>(q) * in_groups) * kLanes);
  lanes = std::move(wide);
  return out;
}

}  // namespace tilewright::dpu
