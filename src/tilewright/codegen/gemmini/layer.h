// One layer of a network as commands of Gemmini: a convolution, of which a matrix product is the
// case of one row of pixels and a kernel of one.
//
//   y[p, n] = clip(round((sum over taps and k of x[p * stride + tap, k] * w[tap, k, n]
//                         + bias[n] + residual[p, n] * 2^residual_shift) / 2^shift))
//
// Pixels are rows of matrices, channels their columns. The layer is cut into tiles of pixels,
// channels n and channels k. A tile's inputs come into the scratchpad once, with the pixels around
// them that its taps need, and each tap is a product of rows that lie elsewhere in it:
//
//   for each tile of pixels and n:                    (either may be the outer one)
//     bias and residual -> accumulator
//     for each tile of k:
//       x, w -> scratchpad, unless they are there     (zeros beyond the image: address 0)
//       for each tap and block of DIM k: accumulator += rows of x * block of w
//     accumulator -> y
//
// Every buffer is there twice, so that the next tile comes while this one is computed.
//
// Gemmini clips at 0, -128 and 127 only. A lower bound above (relu6) takes a second run over the
// result: with o = 128 - high, the first one stores t = max(-128, -y - o), the second one -t - o.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/accel/gemmini/isa.h"
#include "tilewright/base/result.h"

namespace tilewright::gemmini {

/// Along one axis of the image.
struct LayerAxis {
  int64_t in = 1, out = 1;  ///< pixels
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0;  ///< zeros before the first pixel; those behind follow from `out`
  /// Pixels that so many results need.
  int64_t needed(int64_t results) const {
    return (results - 1) * step() + (kernel - 1) * dilation + 1;
  }
  /// Pixels in the scratchpad from one result to the next: others are not loaded for a kernel of 1.
  int64_t step() const { return kernel == 1 ? 1 : stride; }
  /// Pixels of DRAM from one in the scratchpad to the next.
  int64_t dram_step() const { return kernel == 1 ? stride : 1; }
};

/// What is computed.
struct Layer {
  std::string name;
  int64_t images = 1;
  LayerAxis h, w;
  int64_t k = 1, n = 1;  ///< channels in and out
  bool bias = true, residual = false;
  int shift = 0, residual_shift = 0;  ///< 0 to 31, and 23
  bool relu = false;
  int high = 127;     ///< results are no more; not with `wide`
  bool wide = false;  ///< sums as they are, int32
  int64_t taps() const { return h.kernel * w.kernel; }
};
/// A[m, k] * B[k, n].
Layer matrix_product(int64_t m, int64_t n, int64_t k);

/// Where its operands are in DRAM; pixels lie `pitch` bytes apart, rows and images densely.
struct LayerPlaces {
  uint64_t x = 0, weights = 0, bias = 0, residual = 0, y = 0;
  uint64_t x_pitch = 0, residual_pitch = 0, y_pitch = 0;
  uint64_t unclipped = 0;  ///< with `high`: as large as y
  uint64_t offsets = 0;    ///< with `high`: clip_offsets
};

/// Whether it takes a second run.
inline bool clips(const Layer& layer) { return layer.high != 127; }
/// Whether `high` can be had: ties go to even with and without o, and f32 holds all sums.
/// errors: Unsupported.
Status check_clip(const Layer& layer);
/// The bias as it is loaded. requires: check_clip accepts the layer.
std::vector<int32_t> loaded_bias(const Layer& layer, std::span<const int32_t> bias);
/// A row of what the second run adds.
std::string clip_offsets(const Config& config, const Layer& layer);

enum class Dataflow { WeightsStay, SumsStay };

/// What lies on chip at once.
struct LayerTile {
  Dataflow dataflow = Dataflow::WeightsStay;
  int64_t rows = 1, cols = 1;          ///< of results
  int64_t n_blocks = 1, k_blocks = 1;  ///< of DIM channels
  bool pixels_outer = true;
  friend bool operator==(const LayerTile&, const LayerTile&) = default;
};
std::string to_string(const LayerTile& tile);

/// Bytes that a layer moves.
struct LayerTraffic {
  uint64_t x = 0, weights = 0, bias = 0, residual = 0, y = 0;
  uint64_t clip = 0;  ///< loaded by the second run; y is then stored twice
  uint64_t loads() const { return x + weights + bias + residual + clip; }
};
LayerTraffic traffic(const Config& config, const Layer& layer, const LayerTile& tile);
/// Whether all its buffers fit twice.
bool fits(const Config& config, const Layer& layer, const LayerTile& tile);

/// The tile with the fewest bytes of DRAM, and among these the one with the fewest tiles: all sizes
/// that are powers of two, or whole, are tried. errors: Capacity, with numbers.
Result<LayerTile> choose_tile(const Config& config, const Layer& layer,
                              Dataflow dataflow = Dataflow::WeightsStay);

/// Weights [n, k, kernel_h, kernel_w] in the order in which they are loaded, [tap, k, n].
std::string pack_weights(const Layer& layer, std::span<const int8_t> weights);

/// Appends the layer's commands, for a run. requires: the tile fits; extents and places are right.
void emit(const Config& config, const Layer& layer, const LayerPlaces& places,
          const LayerTile& tile, std::vector<Insn>& into);
/// The commands of the second run. requires: `clips`.
void emit_clip(const Config& config, const Layer& layer, const LayerPlaces& places,
               std::vector<Insn>& into);

}  // namespace tilewright::gemmini
