// Which part of a layer is on chip at once: capacity, bytes of DRAM, and the search for the best.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tilewright/codegen/gemmini/layer.h"

namespace tilewright::gemmini {
namespace {

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/// 1, 2, 4, ... and all of it.
std::vector<int64_t> tile_sizes(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < extent; size *= 2) sizes.push_back(size);
  sizes.push_back(extent);
  return sizes;
}

/// Pixels inside of the image that all tiles of `tile` results load along an axis.
int64_t loaded(const LayerAxis& axis, int64_t tile) {
  int64_t sum = 0;
  for (int64_t first = 0; first < axis.out; first += tile) {
    const int64_t begin = first * axis.stride - axis.before;
    const int64_t count = axis.needed(std::min(tile, axis.out - first));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = begin + i * axis.dram_step();
      sum += at >= 0 && at < axis.in ? 1 : 0;
    }
  }
  return sum;
}

/// How often tiles are loaded that depend on `own` and k, not on `other`: two of them stay.
int64_t loads_of(int64_t own, int64_t other, int64_t k, bool own_outer) {
  const bool stays = own_outer ? k <= 2 : own * k <= 2;
  return stays ? own * k : own * k * other;
}

struct TileCounts {
  int64_t pixels, n, k;
};
TileCounts tile_counts(const Config& config, const Layer& layer, const LayerTile& tile) {
  return {layer.images * tiles_of(layer.h.out, tile.rows) * tiles_of(layer.w.out, tile.cols),
          tiles_of(layer.n, tile.n_blocks * config.dim),
          tiles_of(layer.k, tile.k_blocks * config.dim)};
}

/// Repetitions of x and of the weights.
std::pair<int64_t, int64_t> repeats(const Config& config, const Layer& layer,
                                    const LayerTile& tile) {
  const TileCounts count = tile_counts(config, layer, tile);
  return {loads_of(count.pixels, count.n, count.k, tile.pixels_outer) / (count.pixels * count.k),
          loads_of(count.n, count.pixels, count.k, !tile.pixels_outer) / (count.n * count.k)};
}

uint64_t unsigned_of(int64_t value) { return static_cast<uint64_t>(value); }

}  // namespace

Layer matrix_product(int64_t m, int64_t n, int64_t k) {
  Layer layer;
  layer.w.in = layer.w.out = m;
  layer.n = n, layer.k = k;
  return layer;
}

std::string to_string(const LayerTile& tile) {
  return fmt::format("{}x{} pixels, {} blocks of n, {} of k, {} outer, {} stay", tile.rows,
                     tile.cols, tile.n_blocks, tile.k_blocks, tile.pixels_outer ? "pixels" : "n",
                     tile.dataflow == Dataflow::WeightsStay ? "weights" : "sums");
}

LayerTraffic traffic(const Config& config, const Layer& layer, const LayerTile& tile) {
  const auto [x_repeats, w_repeats] = repeats(config, layer, tile);
  const int64_t results = layer.images * layer.h.out * layer.w.out * layer.n;
  LayerTraffic bytes;
  bytes.x = unsigned_of(layer.images * loaded(layer.h, tile.rows) * loaded(layer.w, tile.cols) *
                        layer.k * x_repeats);
  bytes.weights = unsigned_of(layer.taps() * layer.k * layer.n * w_repeats);
  bytes.bias = layer.bias ? unsigned_of(4 * results) : 0;
  bytes.residual = layer.residual ? unsigned_of(results) : 0;
  bytes.clip = clips(layer) ? unsigned_of(2 * results) : 0;
  bytes.y = unsigned_of(results * (layer.wide ? 4 : clips(layer) ? 2 : 1));
  return bytes;
}

bool fits(const Config& config, const Layer& layer, const LayerTile& tile) {
  const int64_t plane = layer.h.needed(tile.rows) * layer.w.needed(tile.cols);
  const int64_t x = tile.k_blocks * plane;
  const int64_t weights = layer.taps() * tile.k_blocks * tile.n_blocks * config.dim;
  const int64_t sums = tile.rows * tile.cols * tile.n_blocks;
  // Planes are the distance of blocks, which has 16 bits.
  return plane <= 65535 && 2 * (x + weights) <= config.spad_rows() && 2 * sums <= config.acc_rows();
}

Result<LayerTile> choose_tile(const Config& config, const Layer& layer, Dataflow dataflow) {
  LayerTile best;
  best.dataflow = dataflow;
  if (!fits(config, layer, best))
    return fail(
        ErrorKind::Capacity, "it does not fit",
        fmt::format("one pixel needs {} rows for {}x{} taps, twice, of {} in the scratchpad",
                    layer.h.needed(1) * layer.w.needed(1) + layer.taps() * config.dim,
                    layer.h.kernel, layer.w.kernel, config.spad_rows()));
  const auto cost = [&](const LayerTile& tile) {
    const LayerTraffic bytes = traffic(config, layer, tile);
    const TileCounts count = tile_counts(config, layer, tile);
    // Sums of a row of pixels fill the array best in whole blocks.
    const int64_t blocks = tiles_of(layer.w.out, tile.cols) * tiles_of(tile.cols, config.dim);
    return std::tuple(bytes.x + bytes.weights, blocks, count.pixels * count.n * count.k);
  };
  auto best_cost = cost(best);
  for (const int64_t rows : tile_sizes(layer.h.out))
    for (const int64_t cols : tile_sizes(layer.w.out))
      for (const int64_t n_blocks : tile_sizes(tiles_of(layer.n, config.dim)))
        for (const int64_t k_blocks : tile_sizes(tiles_of(layer.k, config.dim))) {
          LayerTile tile = {dataflow, rows, cols, n_blocks, k_blocks, true};
          if (!fits(config, layer, tile)) break;  // larger ones do not either
          for (const bool pixels_outer : {true, false}) {
            tile.pixels_outer = pixels_outer;
            if (const auto its = cost(tile); its < best_cost) best = tile, best_cost = its;
          }
        }
  return best;
}

std::string pack_weights(const Layer& layer, std::span<const int8_t> weights) {
  std::string packed(weights.size(), '\0');
  const auto taps = unsigned_of(layer.taps()), k = unsigned_of(layer.k), n = unsigned_of(layer.n);
  for (size_t o = 0; o < n; ++o)
    for (size_t c = 0; c < k; ++c)
      for (size_t t = 0; t < taps; ++t)
        packed[(t * k + c) * n + o] = static_cast<char>(weights[(o * k + c) * taps + t]);
  return packed;
}

}  // namespace tilewright::gemmini
