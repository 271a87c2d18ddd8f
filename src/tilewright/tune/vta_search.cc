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

constexpr size_t kMostPieces = 8;
/// Steps of the model that take as long as the rest of a prediction, and as the sums of an order.
constexpr int64_t kPredictWork = 20, kOrderWork = 10;

/// What is compared: cycles, then traffic, then instructions, then the mapping itself, so that the
/// answer does not depend on the order in which mappings are tried.
using Rank = std::tuple<int64_t, int64_t, int64_t>;

auto identity(const VtaMapping& m) {
  return std::tuple(static_cast<const std::array<int64_t, kTileAxes>&>(m.tile), m.order,
                    m.input_depth, m.weight_depth, m.tail, m.copies, m.result_copies);
}

class Search {
 public:
  Search(const VtaLayer& layer, const vta::Config& config, const MappingOptions& options)
      : layer_(layer), config_(config), options_(options), clock_(config) {
    // What every mapping does, however it is tiled.
    VtaSums sums(layer, clock_, layer.extent);
    sums.set_order({});
    least_ = sums.results({}, false);
    least_ += sums.vectors(true);
    least_.first_reset = std::min(least_.first_reset, reset_limit());
  }

  Result<VtaMapping> run() {
    collect_tiles();
    // The tiles that promise most go first: their mappings prune the others.
    std::sort(tiles_.begin(), tiles_.end());
    for (const auto& [bound, tile] : tiles_) {
      if (options_.prune && best_ && bound > std::get<0>(rank_)) break;
      if (best_ && work_ > options_.budget) break;
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
    VtaSums sums(layer_, clock_, tile);
    const VtaTally products = sums.products();
    // The first reset is no larger than the accumulators.
    return products.compute + least_.compute +
           std::max(least_.first_vectors, first_load(tile) - least_.first_reset);
  }

  /// At least what the first GEMM of tiles `tile` reads.
  int64_t first_load(const PerAxis<int64_t>& tile) const {
    const InputSpan rows = input_spans(layer_, TileAxis::H, tile[TileAxis::H])[0];
    const InputSpan columns = input_spans(layer_, TileAxis::W, tile[TileAxis::W])[0];
    const VtaTransfers input =
        input_transfers(layer_, clock_, tile[TileAxis::N],
                        input_blocks(layer_, tile[TileAxis::O], tile[TileAxis::C]), rows, columns);
    int64_t cycles = input.count * input.cycles;
    if (layer_.conv)
      cycles += weight_transfers(layer_, clock_, tile[TileAxis::O], tile[TileAxis::C]).cycles;
    return cycles;
  }

  void try_tile(const std::array<int64_t, kTileAxes>& sizes) {
    VtaMapping m;
    m.tile = as_tile(sizes);
    for (size_t i = 0; i < kTileAxes; ++i)
      if (m.tile[i] < layer_.extent[i]) m.order.push_back(static_cast<TileAxis>(i));
    VtaSums sums(layer_, clock_, m.tile);
    const VtaTally products = sums.products();
    const int64_t load = first_load(m.tile);
    shapes_.emplace(layer_, m.tile);
    do {
      sums.set_order(m.order);
      try_order(m, sums, products, load);
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

  bool hopeless(const VtaTally& sums) const {
    return options_.prune && best_ && Rank(sums.bound(clock_), sums.read_beats, sums.insns) > rank_;
  }

  /// How the result can be cut: the last piece small, those before it as much larger as the ALU is
  /// slower than the store, so that stores keep up.
  std::vector<std::vector<int64_t>> tails(int64_t extent) const {
    const int64_t alu = layer_.imm_ops + 2 * layer_.reg_ops + layer_.residual_steps;
    const double growth =
        std::max(1.0, static_cast<double>(alu) / static_cast<double>(clock_.store_element()));
    std::vector<std::vector<int64_t>> all = {{}};
    for (int64_t last = 1; last < extent; last += std::max<int64_t>(1, last / 2)) {
      std::vector<int64_t> tail;
      double size = static_cast<double>(last);
      for (int64_t left = extent; left > static_cast<int64_t>(size) && tail.size() < kMostPieces;
           size *= growth) {
        tail.insert(tail.begin(), static_cast<int64_t>(size));
        left -= tail.front();
        all.push_back(tail);
      }
    }
    return all;
  }

  void try_order(VtaMapping& m, const VtaSums& sums, const VtaTally& products, int64_t load) {
    work_ += kOrderWork;
    if (best_ && work_ > options_.budget) return;
    const int depth = result_depth(layer_, m);
    const VtaRegions regions{layer_, m, config_};
    const int64_t result = regions.result_elements();
    if (result > config_.depth(Mem::Acc)) return;
    VtaTally least = products;
    least += sums.results({}, false);
    least.first_load = load;
    least.last_store = sums.results({1}, false).last_store;
    if (hopeless(least)) return;
    const int64_t along = regions.extent_at(regions.piece_axis(), depth);
    const bool grouped = layer_.out_per_group > 0;
    std::vector<int> input_depths = {depth}, weight_depths = {0};
    if (layer_.conv) {
      input_depths = depths(m.order, [&](TileAxis a) { return a != TileAxis::O || grouped; });
      weight_depths =
          depths(m.order, [](TileAxis a) { return a == TileAxis::O || a == TileAxis::C; });
    }
    for (const int in : input_depths) {
      m.input_depth = in;
      if (regions.input_elements() > config_.depth(Mem::Inp)) continue;
      const VtaTally input = sums.input(in);
      for (const int w : weight_depths) {
        m.weight_depth = w;
        if (layer_.conv && regions.weight_elements() > config_.depth(Mem::Wgt)) continue;
        VtaTally part = sums.weights(w);
        part += input;
        if (w < in) part.first_load -= sums.first_input_rest(in);
        VtaTally most = part;
        most += least;
        most.first_load = part.first_load;
        most.one_copy = options_.max_copies == 1;
        if (hopeless(most)) continue;
        part += products;
        try_copies(m, sums, part, along);
      }
    }
  }

  void try_copies(VtaMapping& m, const VtaSums& sums, const VtaTally& part, int64_t along) {
    const int depth = result_depth(layer_, m);
    const VtaRegions regions{layer_, m, config_};
    // As many copies as fit: fewer never wait less.
    bool fits = false;
    for (m.copies = options_.max_copies; m.copies >= 1 && !fits; --m.copies) {
      if (m.copies > 1 && m.order.empty()) continue;
      for (m.result_copies = depth > 0 ? 1 : m.copies; m.result_copies <= m.copies;
           ++m.result_copies) {
        m.tail.clear();
        if (!need(layer_, m, config_).fits(config_)) continue;
        fits = true;
        const VtaTally vectors = sums.vectors(regions.vectors_stay());
        for (std::vector<int64_t>& tail : tails(along)) {
          VtaTally all = part;
          all += sums.results(tail, m.result_copies == 1 && depth > 0);
          all += vectors;
          all.one_copy = m.copies == 1;
          m.tail = std::move(tail);
          if (!hopeless(all)) try_mapping(m, all);
        }
      }
    }
  }

  void try_mapping(const VtaMapping& m, const VtaTally& sums) {
    const int64_t limit = options_.prune && best_ ? std::get<0>(rank_) : INT64_MAX;
    const VtaCost cost = predict(layer_, m, clock_, sums, *shapes_, limit);
    work_ += cost.steps + kPredictWork;
    if (cost.cycles > limit) return;
    TW_CHECK(cost.cycles >= sums.bound(clock_), "{}: {} cycles, bound {}", to_string(m),
             cost.cycles, sums.bound(clock_));
    const Rank rank(cost.cycles, sums.read_beats, sums.insns);
    if (best_ && (rank > rank_ || (rank == rank_ && identity(m) > identity(*best_)))) return;
    best_ = m;
    rank_ = rank;
  }

  int64_t reset_limit() const {
    const auto& t = config_.timing;
    return config_.depth(Mem::Acc) * t.gemm_ii + 16 * t.gemm_overhead;
  }

  Result<VtaMapping> nothing_fits() const {
    VtaMapping m;
    for (size_t i = 0; i < kTileAxes; ++i)
      if (layer_.extent[i] > 1) m.order.push_back(static_cast<TileAxis>(i));
    m.copies = m.result_copies = 1;
    m.input_depth = m.weight_depth = static_cast<int>(m.order.size());
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
  VtaTally least_;
  std::optional<VtaTiles> shapes_;  ///< of the tiles that are being tried
  std::optional<VtaMapping> best_;
  Rank rank_;
  int64_t work_ = 0;
};

}  // namespace

Result<VtaMapping> best_mapping(const VtaLayer& layer, const vta::Config& config,
                                const MappingOptions& options) {
  return Search(layer, config, options).run();
}

}  // namespace tilewright::tune
