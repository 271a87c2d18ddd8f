// Integer graphs on the tiles of a matrix accelerator.
#pragma once

#include "tilewright/graph/ir/graph.h"

namespace tilewright::graph {

/// What the axes before the tile are: batch and channel blocks, then the image; or the image with
/// the channel blocks of a pixel side by side.
enum class TileOrder { BlocksFirst, PixelsFirst };

/// The accelerator's tiles: activations hold batch x block_in (read) or batch x block_out (written)
/// elements, weights block_out x block_in.
struct TileShape {
  int64_t batch = 1, block_in = 16, block_out = 16;
  TileOrder order = TileOrder::BlocksFirst;
};

/// Moves ConvInteger + Requantize, MaxPool and what surrounds them to tiled layouts with packed
/// constants (TileConv, Requantize, TileMaxPool); ToTiles and FromTiles stand only where tiled and
/// plain values meet. Computes the same integers.
///   integer: as quantize() or from_qdq() gives it.
///   requires: TileOrder::BlocksFirst.
///   errors: what the operators' shape rules say, with the node.
Result<Graph> tile_layout(const Graph& integer, const TileShape& tile);

}  // namespace tilewright::graph
