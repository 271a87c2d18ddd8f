// Sums over channels in blocks, of which the last may be filled up.
//
//   24 channels in blocks of 16: 2 x 16 iterations, of which those with 16 * co + ci < 24 count
//
// What fills a block up counts in no sum, so its values do not matter, finite or not.
#pragma once

#include <cstdint>
#include <functional>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// How a convolution [.., ko, co, taps, ci, ki] sums over its input's channels.
struct ChannelSum {
  int64_t blocks = 1, per_block = 1;  ///< extents of the loops co and ci
  /// Which iterations {co, .., ci} count; empty: all do.
  std::function<Expr(const Indices&)> counts;
};

/// The sum over the attribute `channels` (of a group; default: no block is filled up) of an
/// operator with packed weights as its second input.
ChannelSum channel_sum(const OpCall& call);

/// errors: Invalid if `channels` does not fill the blocks of the packed weights.
Status check_channels(const OpCall& call);

}  // namespace tilewright::tensor
