#include "tilewright/tensor/channel_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/tensor/shape_util.h"

namespace tilewright::tensor {

ChannelSum channel_sum(const OpCall& call) {
  const Shape& w = call.inputs[1].shape;
  const int64_t blocks = w[1], block = w[w.size() - 2];
  const int64_t channels = call.attrs.get_int("channels", blocks * block);
  if (blocks == 1) return {1, channels, {}};
  if (channels == blocks * block) return {blocks, block, {}};
  return {blocks, block, [=](const Indices& over) {
            return affine(over.front(), block) + over.back() < channels;
          }};
}

Status check_channels(const OpCall& call) {
  const Shape& w = call.inputs[1].shape;
  const int64_t block = w[w.size() - 2];
  const int64_t channels = call.attrs.get_int("channels", w[1] * block);
  if (channels > 0 && ceil_div(channels, block) == w[1]) return {};
  return invalid(call, fmt::format("{} channels do not fill the blocks of the packed weight {}",
                                   channels, to_string(w)));
}

}  // namespace tilewright::tensor
