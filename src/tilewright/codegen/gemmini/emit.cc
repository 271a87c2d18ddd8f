// The commands of a layer, with every address worked out.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "tilewright/codegen/gemmini/layer.h"

namespace tilewright::gemmini {
namespace {

/// Part [begin, begin + count) of an extent.
struct Part {
  int64_t begin = 0, count = 0;
};
std::vector<Part> parts_of(int64_t extent, int64_t tile) {
  std::vector<Part> parts;
  for (int64_t begin = 0; begin < extent; begin += tile)
    parts.push_back({begin, std::min(tile, extent - begin)});
  return parts;
}

/// Results of one image that are computed together.
struct PixelTile {
  int64_t image = 0;
  Part rows, cols;
};

/// Which of two buffers holds a tile; the one that was not used last is given out.
class Buffers {
 public:
  /// The buffer, and whether the tile (a, b) has to be loaded into it.
  std::pair<int64_t, bool> find(int64_t a, int64_t b) {
    const std::array<int64_t, 2> wanted = {a, b};
    for (size_t i = 0; i < 2; ++i)
      if (held_[i] == wanted) {
        last_ = i;
        return {static_cast<int64_t>(i), false};
      }
    last_ = 1 - last_;
    held_[last_] = wanted;
    return {static_cast<int64_t>(last_), true};
  }

 private:
  std::array<std::array<int64_t, 2>, 2> held_ = {{{-1, -1}, {-1, -1}}};
  size_t last_ = 1;
};

uint16_t u16(int64_t value) { return static_cast<uint16_t>(value); }
uint64_t u64(int64_t value) { return static_cast<uint64_t>(value); }

class LayerEmitter {
 public:
  LayerEmitter(const Config& config, const Layer& layer, const LayerPlaces& places,
               const LayerTile& tile, std::vector<Insn>& into)
      : dim_(config.dim),
        config_(config),
        layer_(layer),
        places_(places),
        tile_(tile),
        into_(into),
        x_rows_(tile.k_blocks * layer.h.needed(tile.rows) * layer.w.needed(tile.cols)),
        weight_rows_(layer.taps() * tile.k_blocks * tile.n_blocks * dim_),
        sum_rows_(tile.rows * tile.cols * tile.n_blocks) {}

  void run() {
    configure();
    std::vector<PixelTile> pixels;
    for (int64_t image = 0; image < layer_.images; ++image)
      for (const Part& rows : parts_of(layer_.h.out, tile_.rows))
        for (const Part& cols : parts_of(layer_.w.out, tile_.cols))
          pixels.push_back({image, rows, cols});
    const std::vector<Part> ns = parts_of(layer_.n, tile_.n_blocks * dim_);
    const size_t outer = tile_.pixels_outer ? pixels.size() : ns.size();
    const size_t inner = tile_.pixels_outer ? ns.size() : pixels.size();
    for (size_t o = 0; o < outer; ++o)
      for (size_t i = 0; i < inner; ++i) {
        const size_t p = tile_.pixels_outer ? o : i, n = tile_.pixels_outer ? i : o;
        results(static_cast<int64_t>(p), pixels[p], static_cast<int64_t>(n), ns[n]);
        turn_ = 1 - turn_;
      }
  }

 private:
  void add(const Insn& insn) { into_.push_back(insn); }

  void configure() {
    ConfigEx ex;
    ex.weights_stay = tile_.dataflow == Dataflow::WeightsStay;
    ex.a_stride = u16(layer_.w.step());
    add({ex});
    ConfigMvin weights;
    weights.which = 1;
    weights.block_stride = u16(dim_);
    weights.stride = u64(layer_.n);
    add({weights});
    ConfigMvout out;
    out.stride = static_cast<uint32_t>(places_.y_pitch);
    if (!layer_.wide) {
      const bool clip = clips(layer_);
      out.activation = layer_.relu && !clip ? Activation::Relu : Activation::None;
      out.scale = std::ldexp(clip ? -1.0f : 1.0f, -layer_.shift);
    }
    add({out});
  }

  /// One tile of results from its first sum to its bytes in DRAM.
  void results(int64_t p, const PixelTile& pixels, int64_t n, const Part& ns) {
    begin_sums(pixels, ns);
    const std::vector<Part> ks = parts_of(layer_.k, tile_.k_blocks * dim_);
    for (size_t k = 0; k < ks.size(); ++k) {
      const auto [x_buffer, x_new] = x_held_.find(p, static_cast<int64_t>(k));
      const auto [w_buffer, w_new] = w_held_.find(n, static_cast<int64_t>(k));
      plane_cols_ = layer_.w.needed(pixels.cols.count);
      plane_ = layer_.h.needed(pixels.rows.count) * plane_cols_;
      x_at_ = x_buffer * x_rows_;
      w_at_ = 2 * x_rows_ + w_buffer * weight_rows_;
      if (x_new) load_x(pixels, ks[k]);
      if (w_new) load_weights(ns, ks[k]);
      const bool first = k == 0 && !layer_.bias && !layer_.residual;
      if (tile_.dataflow == Dataflow::WeightsStay)
        multiply_ws(pixels, ns, ks[k], first);
      else
        multiply_os(pixels, ns, ks[k], first);
    }
    store(pixels, ns);
  }

  /// Rows of the accumulator from result (row, col) of the tile on, in block j of its channels.
  int64_t sum_at(const PixelTile& pixels, int64_t row, int64_t col, int64_t j) const {
    const int64_t plane = pixels.rows.count * pixels.cols.count;
    return turn_ * sum_rows_ + j * plane + row * pixels.cols.count + col;
  }

  /// Up to DIM results side by side: (row, first column and count).
  void for_each_run(const PixelTile& pixels,
                    const std::function<void(int64_t row, const Part& cols)>& body) const {
    for (int64_t row = 0; row < pixels.rows.count; ++row)
      for (const Part& cols : parts_of(pixels.cols.count, dim_)) body(row, cols);
  }
  /// DRAM's number of a result.
  int64_t pixel(const PixelTile& pixels, int64_t row, int64_t col) const {
    return (pixels.image * layer_.h.out + pixels.rows.begin + row) * layer_.w.out +
           pixels.cols.begin + col;
  }

  /// The third mvin fills the accumulator: the bias into every row, the residual on top.
  void begin_sums(const PixelTile& pixels, const Part& ns) {
    const std::vector<Part> blocks = parts_of(ns.count, dim_);
    const auto to = [&](int64_t row, const Part& cols, size_t j, uint32_t flags) {
      return Block{Local::acc(sum_at(pixels, row, cols.begin, static_cast<int64_t>(j)), flags),
                   u16(blocks[j].count), u16(cols.count)};
    };
    if (layer_.bias) {
      ConfigMvin config;
      config.which = 2;
      add({config});
      for_each_run(pixels, [&](int64_t row, const Part& cols) {
        for (size_t j = 0; j < blocks.size(); ++j)
          add({Mvin{2, places_.bias + 4 * u64(ns.begin + blocks[j].begin), to(row, cols, j, 0)}});
      });
    }
    if (layer_.residual) {
      ConfigMvin config;
      config.which = 2;
      config.narrow = true;
      config.stride = places_.residual_pitch;
      config.scale = std::ldexp(1.0f, layer_.residual_shift);
      add({config});
      for_each_run(pixels, [&](int64_t row, const Part& cols) {
        const uint64_t at = places_.residual +
                            u64(pixel(pixels, row, cols.begin)) * places_.residual_pitch +
                            u64(ns.begin);
        for (size_t j = 0; j < blocks.size(); ++j)
          add({Mvin{2, at + u64(blocks[j].begin),
                    to(row, cols, j, layer_.bias ? Local::kAdds : 0)}});
      });
    }
  }

  /// Rows of a plane of x in the scratchpad, one for each pixel that the tile needs.
  void load_x(const PixelTile& pixels, const Part& ks) {
    const int64_t height = layer_.h.needed(pixels.rows.count);
    ConfigMvin config;
    config.block_stride = u16(plane_);
    config.stride = places_.x_pitch * u64(layer_.w.dram_step());
    add({config});
    for (int64_t row = 0; row < height; ++row) {
      const int64_t y =
          pixels.rows.begin * layer_.h.stride - layer_.h.before + row * layer_.h.dram_step();
      load_row(pixels, ks, row, y);
    }
  }
  /// One row of the image: zeros, pixels that are there, zeros.
  void load_row(const PixelTile& pixels, const Part& ks, int64_t row, int64_t y) {
    const LayerAxis& w = layer_.w;
    const int64_t first = pixels.cols.begin * w.stride - w.before, step = w.dram_step();
    const auto inside = [&](int64_t col) {
      const int64_t x = first + col * step;
      return y >= 0 && y < layer_.h.in && x >= 0 && x < w.in;
    };
    for (int64_t col = 0, end = 0; col < plane_cols_; col = end) {
      const bool there = inside(col);
      for (end = col + 1; end < plane_cols_ && end - col < dim_ && inside(end) == there; ++end) {
      }
      const int64_t at = (pixels.image * layer_.h.in + y) * w.in + first + col * step;
      const uint64_t dram = there ? places_.x + u64(at) * places_.x_pitch + u64(ks.begin) : 0;
      for (const Part& channels : parts_of(ks.count, config_.most_columns(1)))
        add({Mvin{0,
                  there ? dram + u64(channels.begin) : 0,
                  {Local::spad(x_at_ + channels.begin / dim_ * plane_ + row * plane_cols_ + col),
                   u16(channels.count), u16(end - col)}}});
    }
  }

  int64_t weights_at(const Part& ns, const Part& ks, int64_t tap, int64_t k, int64_t j) const {
    const int64_t k_blocks = (ks.count + dim_ - 1) / dim_, n_blocks = (ns.count + dim_ - 1) / dim_;
    return w_at_ + ((tap * k_blocks + k) * n_blocks + j) * dim_;
  }
  void load_weights(const Part& ns, const Part& ks) {
    for (int64_t tap = 0; tap < layer_.taps(); ++tap)
      for (const Part& k : parts_of(ks.count, dim_))
        for (const Part& n : parts_of(ns.count, config_.most_columns(1)))
          add({Mvin{1,
                    places_.weights +
                        u64((tap * layer_.k + ks.begin + k.begin) * layer_.n + ns.begin + n.begin),
                    {Local::spad(weights_at(ns, ks, tap, k.begin / dim_, n.begin / dim_)),
                     u16(n.count), u16(k.count)}}});
  }

  /// The rows of x that a tap of a run of results reads.
  Block x_block(const Part& k, int64_t tap, int64_t row, const Part& cols) const {
    const int64_t y = row * layer_.h.step() + tap / layer_.w.kernel * layer_.h.dilation;
    const int64_t x = cols.begin * layer_.w.step() + tap % layer_.w.kernel * layer_.w.dilation;
    return {Local::spad(x_at_ + k.begin / dim_ * plane_ + y * plane_cols_ + x), u16(k.count),
            u16(cols.count)};
  }
  Block sum_block(const PixelTile& pixels, int64_t row, const Part& cols, const Part& n,
                  bool adds) const {
    return {Local::acc(sum_at(pixels, row, cols.begin, n.begin / dim_), adds ? Local::kAdds : 0),
            u16(n.count), u16(cols.count)};
  }

  /// A block of weights stays while all results of the tile go past it.
  void multiply_ws(const PixelTile& pixels, const Part& ns, const Part& ks, bool first) {
    for (const Part& n : parts_of(ns.count, dim_))
      for (int64_t tap = 0; tap < layer_.taps(); ++tap)
        for (const Part& k : parts_of(ks.count, dim_)) {
          const Block b = {Local::spad(weights_at(ns, ks, tap, k.begin / dim_, n.begin / dim_)),
                           u16(n.count), u16(k.count)};
          const bool adds = !first || tap > 0 || k.begin > 0;
          bool held = false;
          for_each_run(pixels, [&](int64_t row, const Part& cols) {
            add({Preload{held ? Block{} : b, sum_block(pixels, row, cols, n, adds)}});
            add({Compute{!held, x_block(k, tap, row, cols), Block{}}});
            held = true;
          });
        }
  }

  /// A block of sums stays until all taps and k of the tile are in it.
  void multiply_os(const PixelTile& pixels, const Part& ns, const Part& ks, bool first) {
    const std::vector<Part> k_parts = parts_of(ks.count, dim_);
    const int64_t products = layer_.taps() * static_cast<int64_t>(k_parts.size());
    for (const Part& n : parts_of(ns.count, dim_))
      for_each_run(pixels, [&](int64_t row, const Part& cols) {
        for (int64_t i = 0; i < products; ++i) {
          const int64_t tap = i / static_cast<int64_t>(k_parts.size());
          const Part& k = k_parts[static_cast<size_t>(i) % k_parts.size()];
          const bool last = i == products - 1;
          add({Preload{Block{}, last ? sum_block(pixels, row, cols, n, !first) : Block{}}});
          add({Compute{i == 0,
                       x_block(k, tap, row, cols),
                       {Local::spad(weights_at(ns, ks, tap, k.begin / dim_, n.begin / dim_)),
                        u16(n.count), u16(k.count)}}});
        }
      });
  }

  void store(const PixelTile& pixels, const Part& ns) {
    for_each_run(pixels, [&](int64_t row, const Part& cols) {
      const uint64_t at = (clips(layer_) ? places_.unclipped : places_.y) +
                          u64(pixel(pixels, row, cols.begin)) * places_.y_pitch;
      for (const Part& n : parts_of(ns.count, dim_))
        add({Mvout{at + u64(ns.begin + n.begin) * (layer_.wide ? 4 : 1),
                   {Local::acc(sum_at(pixels, row, cols.begin, n.begin / dim_),
                               layer_.wide ? Local::kWhole : 0),
                    u16(n.count), u16(cols.count)}}});
    });
  }

  int64_t dim_;
  const Config& config_;
  const Layer& layer_;
  const LayerPlaces& places_;
  const LayerTile& tile_;
  std::vector<Insn>& into_;
  int64_t x_rows_, weight_rows_, sum_rows_;  ///< of one buffer
  Buffers x_held_, w_held_;
  int64_t turn_ = 0;                    ///< which buffer of sums
  int64_t x_at_ = 0, w_at_ = 0;         ///< rows of the buffers in use
  int64_t plane_ = 0, plane_cols_ = 0;  ///< of the tile of x in use
};

}  // namespace

void emit(const Config& config, const Layer& layer, const LayerPlaces& places,
          const LayerTile& tile, std::vector<Insn>& into) {
  LayerEmitter(config, layer, places, tile, into).run();
}

}  // namespace tilewright::gemmini
