// Weights in the order of PM: a 3x3 convolution of 64 to 64 channels is 144 words of 16 outputs by
// 16 inputs, [output group][ky][kx][input group].
//
// A grouped convolution has several blocks: output groups with the input groups that meet them.
// With 32 groups of 8 channels each block is one group of 16 to one of 16, and half of its weights
// are 0.
#include <algorithm>

#include "tilewright/codegen/dpu/plan.h"

namespace tilewright::dpu {
namespace {

/// Input groups that the channels of output group `og` need.
Range meets(const ConvLayer& layer, const std::vector<int>& lanes, int64_t out_channels,
            int64_t og) {
  const int64_t in = static_cast<int64_t>(lanes.size()) / layer.groups;
  const int64_t out = out_channels / layer.groups;
  const int64_t first = og * kLanes, last = std::min(out_channels, first + kLanes) - 1;
  const int begin = lanes[static_cast<size_t>(first / out * in)];
  const int end = lanes[static_cast<size_t>((last / out + 1) * in - 1)];
  return {begin / kLanes, end / kLanes + 1};
}

void fill(const ConvLayer& layer, const std::vector<int>& lanes, int64_t out_channels,
          Block& block) {
  const int64_t taps = int64_t{layer.window.kernel_h} * layer.window.kernel_w;
  const int64_t in = static_cast<int64_t>(lanes.size()) / layer.groups;
  const int64_t out = out_channels / layer.groups;
  block.words_per_group = taps * block.in.size();
  block.words.assign(static_cast<size_t>(block.out.size() * block.words_per_group * kPmWordBytes),
                     '\0');
  const int64_t most = std::min(out_channels, block.out.end * kLanes);
  for (int64_t oc = block.out.begin * kLanes; oc < most; ++oc) {
    const int64_t og = oc / kLanes - block.out.begin;
    for (int64_t i = 0; i < in; ++i) {
      const int64_t lane = lanes[static_cast<size_t>(oc / out * in + i)];
      const int64_t ig = lane / kLanes - block.in.begin;
      const int8_t* from = &layer.weights[static_cast<size_t>((oc * in + i) * taps)];
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t word = (og * taps + tap) * block.in.size() + ig;
        block.words[static_cast<size_t>(word * kPmWordBytes + oc % kLanes * kLanes +
                                        lane % kLanes)] = static_cast<char>(from[tap]);
      }
    }
  }
}

}  // namespace

void pack_weights(const ConvLayer& layer, const std::vector<int>& lanes, int64_t in_groups,
                  int64_t out_channels, Node& node) {
  for (int64_t og = 0; og < groups(out_channels); ++og) {
    const Range in =
        layer.groups == 1 ? Range{0, in_groups} : meets(layer, lanes, out_channels, og);
    if (!node.blocks.empty() && node.blocks.back().in.begin == in.begin &&
        node.blocks.back().in.end == in.end) {
      node.blocks.back().out.end = og + 1;
    } else {
      node.blocks.push_back({{og, og + 1}, in, 0, {}});
    }
  }
  for (Block& block : node.blocks) fill(layer, lanes, out_channels, block);
  node.bias = layer.bias;
  node.bias.resize(static_cast<size_t>(groups(out_channels) * kLanes));
}

}  // namespace tilewright::dpu
