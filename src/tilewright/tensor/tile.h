// Tiled layouts: activations [N/B, C/b, H, W, B, b] or [N/B, H, W, C/b, B, b], weights
// [O/BO, I/BI, KH, KW, BO, BI].
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

/// The attribute `order` of ToTiles and FromTiles: what the axes before [B, b] are.
inline constexpr const char* kBlocksFirst = "NCHW";  ///< [N/B, C/b, H, W, B, b], if absent
inline constexpr const char* kPixelsFirst = "NHWC";  ///< [N/B, H, W, C/b, B, b]

/// How the channels of a convolution fall into blocks.
struct TileBlocks {
  int64_t in = 0, out = 0;  ///< blocks of the input and of the output
  int64_t groups = 1;       ///< each of out / groups output blocks reads in / groups input blocks
};

/// Blocks of a convolution with weight [o, i, ...] and `groups` groups (input channels i * groups).
/// Neighbouring groups share blocks until their channels end at a block's end; if the last blocks
/// do not fit that pattern, every output block reads every input block (groups 1).
/// requires: positive sizes, o divisible by groups.
TileBlocks tile_blocks(int64_t o, int64_t i, int64_t groups, int64_t block_in, int64_t block_out);

}  // namespace tilewright::tensor
