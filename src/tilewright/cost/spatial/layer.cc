#include "tilewright/cost/spatial/layer.h"

#include <algorithm>

namespace tilewright::cost {

int SpatialLayer::find(const std::string& loop) const {
  for (size_t i = 0; i < loops.size(); ++i)
    if (loops[i].name == loop) return static_cast<int>(i);
  return -1;
}

bool SpatialLayer::moves(int tensor, int loop) const {
  for (const SpatialDim& dim : tensors[tensor].dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == loop) return true;
  return false;
}

int SpatialLayer::packed_tensor() const {
  for (int tensor : {0, 1})
    if (tensors[tensor].packed) return tensor;
  return -1;
}

int SpatialLayer::bias_loop() const {
  const int tensor = packed_tensor();
  for (int loop = 0; tensor >= 0 && loop < static_cast<int>(loops.size()); ++loop)
    if (moves(tensor, loop) && moves(kSpatialResult, loop)) return loop;
  return -1;
}

int64_t SpatialLayer::macs() const {
  int64_t product = 1;
  for (const SpatialLoop& loop : loops) product *= loop.extent;
  return product;
}

namespace {

/// Outermost first; channels go last if the layout says so.
std::vector<SpatialDim> image(ImageLayout layout, SpatialDim channel, SpatialDim y, SpatialDim x) {
  if (layout == ImageLayout::ChannelsFirst) return {channel, y, x};
  return {y, x, channel};
}

}  // namespace

SpatialLayer conv2d(const SpatialConv& conv) {
  const int64_t taps_y = conv.kernel, taps_x = conv.kernel_width ? conv.kernel_width : conv.kernel;
  auto size = [&](int64_t in, int64_t taps) {
    return (in + 2 * conv.pad - (taps - 1) * conv.dilation - 1) / conv.stride + 1;
  };
  const int64_t height = size(conv.height, taps_y), width = size(conv.width, taps_x);
  SpatialLayer layer;
  layer.name = "conv2d";
  const bool batched = conv.batch > 1;
  if (batched) layer.loops.push_back({"n", conv.batch, false});
  const int k = batched, y = k + 1, x = k + 2, c = k + 3, r = k + 4, s = k + 5;
  layer.loops.insert(layer.loops.end(), {{"k", conv.outputs, false},
                                         {"y", height, false},
                                         {"x", width, false},
                                         {"c", conv.inputs, true},
                                         {"r", taps_y, true},
                                         {"s", taps_x, true}});
  auto& [in, weights, out] = layer.tensors;
  in = {"input", image(conv.input, {{{c, 1}}, conv.inputs},
                       {{{y, conv.stride}, {r, conv.dilation}}, conv.height, conv.pad},
                       {{{x, conv.stride}, {s, conv.dilation}}, conv.width, conv.pad})};
  weights = {
      "weights",
      {{{{k, 1}}, conv.outputs}, {{{c, 1}}, conv.inputs}, {{{r, 1}}, taps_y}, {{{s, 1}}, taps_x}},
      1,
      true};
  out = {"result",
         image(conv.output, {{{k, 1}}, conv.outputs}, {{{y, 1}}, height}, {{{x, 1}}, width})};
  if (batched)
    for (SpatialTensor* tensor : {&in, &out})
      tensor->dims.insert(tensor->dims.begin(), SpatialDim{{{0, 1}}, conv.batch});
  return layer;
}

SpatialLayer matmul(int64_t rows, int64_t columns, int64_t depth, bool constant) {
  SpatialLayer layer;
  layer.name = "matmul";
  layer.loops = {{"i", rows, false}, {"j", columns, false}, {"k", depth, true}};
  layer.tensors = {SpatialTensor{"a", {{{{0, 1}}, rows}, {{{2, 1}}, depth}}},
                   SpatialTensor{"b", {{{{2, 1}}, depth}, {{{1, 1}}, columns}}, 1, constant},
                   SpatialTensor{"result", {{{{0, 1}}, rows}, {{{1, 1}}, columns}}}};
  return layer;
}

}  // namespace tilewright::cost
