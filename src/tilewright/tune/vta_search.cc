// The best mapping of a layer: every choice of tiles, order, places and pieces, in the order of a
// lower bound, until no bound is below the best prediction.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "tilewright/base/check.h"
#include "tilewright/tune/vta_model.h"

namespace tilewright::tune {

using vta::Mem;

namespace {

/// What is compared: cycles, then traffic, then instructions, then the mapping itself, so that the
/// answer does not depend on the order in which mappings are tried.
using Rank = std::tuple<int64_t, int64_t, int64_t>;

auto identity(const VtaMapping& m) {
  return std::tuple(static_cast<const std::array<int64_t, kTileAxes>&>(m.tile), m.order,
                    m.input_depth, m.weight_depth, m.piece, m.copies);
}

class Search {
 public:
  Search(const VtaLayer& layer, const vta::Config& config, const MappingOptions& options)
      : layer_(layer), config_(config), options_(options), clock_(config) {}

  Result<VtaMapping> run() {
    collect_tiles();
    // The tiles that promise most go first: their mappings prune the others.
    std::sort(tiles_.begin(), tiles_.end());
    for (const auto& [bound, tile] : tiles_) {
      if (options_.prune && best_ && bound > std::get<0>(rank_)) break;
      try_tile(tile);
    }
    if (best_) return *best_;
    return nothing_fits();
  }

 private:
  /// One candidate set of tile sizes; `bound` is below every mapping with them.
  using Tiles = std::pair<int64_t, std::array<int64_t, kTileAxes>>;

  PerAxis<int64_t> as_tile(const std::array<int64_t, kTileAxes>& sizes) const {
    PerAxis<int64_t> tile;
    std::copy(sizes.begin(), sizes.end(), tile.begin());
    return tile;
  }

  void collect_tiles() {
    const auto& e = layer_.extent;
    VtaMapping m;
    for (m.tile[0] = 1; m.tile[0] <= e[0]; ++m.tile[0])
      for (m.tile[1] = 1; m.tile[1] <= e[1]; ++m.tile[1])
        for (m.tile[2] = 1; m.tile[2] <= e[2]; ++m.tile[2])
          for (m.tile[3] = 1; m.tile[3] <= e[3]; ++m.tile[3]) {
            if (m.tile[0] * m.tile[1] * m.tile[2] * m.tile[3] > config_.depth(Mem::Acc)) break;
            for (m.tile[4] = 1; m.tile[4] <= e[4]; ++m.tile[4])
              if (tile_fits(m.tile)) tiles_.emplace_back(tile_bound(m.tile), m.tile);
          }
  }

  bool tile_fits(const PerAxis<int64_t>& t) const {
    if (layer_.conv && t[TileAxis::O] * t[TileAxis::C] * layer_.kernel_h * layer_.kernel_w >
                           config_.depth(Mem::Wgt))
      return false;
    // The distance between steps on one accumulator.
    const auto& e = layer_.extent;
    const int64_t results = t[TileAxis::N] * t[TileAxis::O] * t[TileAxis::H] * t[TileAxis::W];
    const int64_t all = e[TileAxis::N] * e[TileAxis::O] * e[TileAxis::H] * e[TileAxis::W];
    if (results < std::min<int64_t>(3, all)) return false;
    return t[TileAxis::N] * hull_rows(layer_, t[TileAxis::H]) *
               hull_columns(layer_, t[TileAxis::W]) *
               input_blocks(layer_, t[TileAxis::O], t[TileAxis::C]) <=
           config_.depth(Mem::Inp);
  }

  int64_t tile_bound(const PerAxis<int64_t>& tile) const {
    if (!options_.prune) return 0;
    const auto& e = layer_.extent;
    const auto& t = clock_.config().timing;
    int64_t results = 1, count = 1;
    for (size_t i = 0; i < kTileAxes; ++i) {
      if (i != static_cast<size_t>(TileAxis::C)) results *= e[i];
      count *= ceil_div(e[i], tile[i]);
    }
    const int64_t steps =
        layer_.conv ? results * e[TileAxis::C] * layer_.kernel_h * layer_.kernel_w : results;
    int64_t cycles = steps * t.gemm_ii + count * t.gemm_overhead;
    if (!config_.extensions.pipeline4)
      cycles += results * (layer_.imm_ops * t.alu_imm_ii + layer_.reg_ops * clock_.reg_ii());
    // One tile may be all of the result: its reset hides.
    const int64_t loads =
        clock_.beats(
            Mem::Inp, 1,
            tile[TileAxis::N] * input_blocks(layer_, tile[TileAxis::O], tile[TileAxis::C]) *
                std::max<int64_t>(1, hull_rows(layer_, tile[TileAxis::H]) - layer_.pad_top) * 1) +
        (layer_.conv
             ? clock_.load(
                   Mem::Wgt, 1,
                   tile[TileAxis::O] * tile[TileAxis::C] * layer_.kernel_h * layer_.kernel_w, 0)
             : 0);
    return cycles + loads;
  }

  void try_tile(const std::array<int64_t, kTileAxes>& sizes) {
    VtaMapping m;
    m.tile = as_tile(sizes);
    for (size_t i = 0; i < kTileAxes; ++i)
      if (m.tile[i] < layer_.extent[i]) m.order.push_back(static_cast<TileAxis>(i));
    VtaSums sums(layer_, clock_, m.tile);
    const VtaTally products = sums.products();
    do {
      sums.set_order(m.order);
      try_order(m, sums, products);
    } while (std::next_permutation(m.order.begin(), m.order.end()));
  }

  /// Depths at which a copy can stand: after each loop that it moves with, or at the top.
  template <class Moves>
  std::vector<int> depths(const std::vector<TileAxis>& order, Moves moves) const {
    std::vector<int> all = {0};
    for (size_t i = 0; i < order.size(); ++i)
      if (moves(order[i])) all.push_back(static_cast<int>(i) + 1);
    return all;
  }

  void try_order(VtaMapping& m, const VtaSums& sums, const VtaTally& products) {
    const int depth = result_depth(layer_, m);
    std::vector<int> input_depths = {depth}, weight_depths = {0};
    if (layer_.conv) {
      const bool grouped = layer_.out_per_group > 0;
      input_depths = depths(m.order, [&](TileAxis a) { return a != TileAxis::O || grouped; });
      weight_depths =
          depths(m.order, [](TileAxis a) { return a == TileAxis::O || a == TileAxis::C; });
    }
    const VtaRegions regions{layer_, m, config_};
    const int64_t result = regions.result_elements();
    const int64_t along = regions.extent_at(regions.piece_axis(), depth);
    std::vector<std::pair<int64_t, VtaTally>> pieces;
    for (int64_t k = 1; k <= along; ++k) {
      const int64_t size = ceil_div(along, k);
      if (pieces.empty() || pieces.back().first != size)
        pieces.emplace_back(size, sums.results(size));
    }
    for (m.input_depth = 0; const int in : input_depths) {
      m.input_depth = in;
      const int64_t inp = regions.input_elements();
      const bool fits = inp <= config_.depth(Mem::Inp);
      const VtaTally input = fits ? sums.input(in) : VtaTally{};
      if (!fits) continue;
      for (const int w : weight_depths) {
        m.weight_depth = w;
        const int64_t wgt = layer_.conv ? regions.weight_elements() : 0;
        if (wgt > config_.depth(Mem::Wgt)) continue;
        VtaTally part = sums.weights(w);
        part += input;
        part += products;
        if (w < in) part.first_load -= sums.first_input_rest(in);
        for (const auto& [piece, tally] : pieces) {
          m.piece = piece;
          VtaTally all = part;
          all += tally;
          for (m.copies = options_.max_copies; m.copies >= 1; --m.copies)
            try_mapping(m, sums, all, regions, {inp, wgt, result, 0});
        }
      }
    }
  }

  void try_mapping(const VtaMapping& m, const VtaSums& sums, VtaTally all,
                   const VtaRegions& regions, VtaNeed one) {
    if (m.order.empty() && m.copies > 1) return;
    const int depth = result_depth(layer_, m);
    if (depth > 0) one.acc *= m.copies;
    if (one.acc > config_.depth(Mem::Acc)) return;
    if (options_.prune && best_ && Rank(all.bound(clock_), all.read_beats, all.insns) > rank_)
      return;
    const VtaNeed whole = need(layer_, m, config_);
    if (!whole.fits(config_)) return;
    all += sums.vectors(regions.vectors_stay());
    const Rank bound(all.bound(clock_), all.read_beats, all.insns);
    if (options_.prune && best_ && bound > rank_) return;
    const VtaCost cost = predict(layer_, m, clock_, all);
    TW_CHECK(cost.cycles >= std::get<0>(bound), "{}: {} cycles, bound {}", to_string(m),
             cost.cycles, std::get<0>(bound));
    const Rank rank(cost.cycles, all.read_beats, all.insns);
    if (best_ && (rank > rank_ || (rank == rank_ && identity(m) > identity(*best_)))) return;
    best_ = m;
    rank_ = rank;
  }

  Result<VtaMapping> nothing_fits() const {
    VtaMapping m;
    for (size_t i = 0; i < kTileAxes; ++i)
      if (layer_.extent[i] > 1) m.order.push_back(static_cast<TileAxis>(i));
    m.copies = 1;
    for (size_t i = m.order.size(); i > 0; --i)
      m.input_depth = m.weight_depth = static_cast<int>(i);
    const VtaNeed least = need(layer_, m, config_);
    return fail(
        ErrorKind::Capacity, fmt::format("no tile of `{}` fits on chip", layer_.name),
        fmt::format("tiles of one element need INP {}, WGT {}, ACC {}, micro-ops {} "
                    "elements; there are {}, {}, {}, {}",
                    least.inp, least.wgt, least.acc, least.uop, config_.depth(Mem::Inp),
                    config_.depth(Mem::Wgt), config_.depth(Mem::Acc), config_.depth(Mem::Uop)),
        "use a configuration with larger buffers");
  }

  const VtaLayer& layer_;
  const vta::Config& config_;
  const MappingOptions& options_;
  VtaClock clock_;
  std::vector<Tiles> tiles_;
  std::optional<VtaMapping> best_;
  Rank rank_;
};

}  // namespace

Result<VtaMapping> best_mapping(const VtaLayer& layer, const vta::Config& config,
                                const MappingOptions& options) {
  return Search(layer, config, options).run();
}

}  // namespace tilewright::tune
