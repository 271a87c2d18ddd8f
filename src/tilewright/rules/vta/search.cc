// The best mapping of a layer: every choice of tiles, order, places and pieces, in the order of a
// lower bound, until no bound is below the best prediction.
//
// Tile sizes are sorted by a bound that adds up busy cycles (tally.cc). For each, orders of loops
// and places of copies are tried, again with a bound first, and only what might still win goes
// through the pipeline (predict.cc). As bounds are never too high, leaving the others out changes
// nothing in the result; only the budget can.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "tilewright/base/check.h"
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {

using vta::Mem;

namespace {

constexpr size_t kMostPieces = 8;
/// Steps of the model that take as long as the rest of a prediction, and as the sums of an order.
constexpr int64_t kPredictWork = 20, kOrderWork = 10;
/// Steps of a GEMM from one to the next on the same accumulator. source: docs/vta.md, "Programs".
constexpr int64_t kStepDistance = 3;

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
    collect_tiles({whole_window()});
    try_tiles();
    if (!best_ && layer_.conv) {
      collect_tiles(parts_of_window());
      try_tiles();
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

  void try_tiles() {
    // The tiles that promise most go first: their mappings prune the others.
    std::sort(tiles_.begin(), tiles_.end());
    for (const auto& [bound, tile] : tiles_) {
      if (options_.prune && best_ && bound > std::get<0>(rank_)) break;
      if (best_ && work_ > options_.budget) break;
      try_tile(tile);
    }
  }

  /// Rows and columns of taps.
  using Taps = std::pair<int64_t, int64_t>;
  Taps whole_window() const { return {layer_.extent[TileAxis::R], layer_.extent[TileAxis::S]}; }
  /// Fewer rows, or a part of one row: weights of such a group lie together.
  std::vector<Taps> parts_of_window() const {
    const auto [rows, columns] = whole_window();
    std::vector<Taps> parts;
    for (int64_t r = rows - 1; r >= 1; --r)
      if (rows % r == 0) parts.emplace_back(r, columns);
    for (int64_t s = columns - 1; s >= 1; --s)
      if (columns % s == 0) parts.emplace_back(1, s);
    return parts;
  }

  void collect_tiles(const std::vector<Taps>& taps) {
    const auto& e = layer_.extent;
    tiles_.clear();
    PerAxis<int64_t> t;
    for (t[0] = 1; t[0] <= e[0]; ++t[0])
      for (t[1] = 1; t[1] <= e[1]; ++t[1])
        for (t[2] = 1; t[2] <= e[2]; ++t[2])
          for (t[3] = 1; t[3] <= e[3]; ++t[3]) {
            if (t[0] * t[1] * t[2] * t[3] > config_.depth(Mem::Acc)) break;
            for (t[4] = 1; t[4] <= e[4]; ++t[4])
              for (const auto& [rows, columns] : taps) {
                t[TileAxis::R] = rows, t[TileAxis::S] = columns;
                if (tile_fits(t)) tiles_.emplace_back(tile_bound(t), t);
              }
          }
  }

  bool tile_fits(const PerAxis<int64_t>& t) const {
    if (layer_.conv &&
        t[TileAxis::O] * t[TileAxis::C] * t[TileAxis::R] * t[TileAxis::S] > config_.depth(Mem::Wgt))
      return false;
    if (t[TileAxis::N] * t[TileAxis::O] * t[TileAxis::H] * t[TileAxis::W] < least_results())
      return false;
    if (t[TileAxis::N] * hull_rows(layer_, t[TileAxis::H], t[TileAxis::R]) *
            hull_columns(layer_, t[TileAxis::W], t[TileAxis::S]) *
            input_blocks(layer_, t[TileAxis::O], t[TileAxis::C]) >
        config_.depth(Mem::Inp))
      return false;
    return !layer_.conv ||
           std::min(kernel_uops(t, false), kernel_uops(t, true)) <= config_.most_uops();
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
    const auto first = [&](TileAxis axis, TileAxis taps) {
      return input_spans(layer_, axis, tile[axis], tile[taps])[0];
    };
    const InputSpan rows = first(TileAxis::H, TileAxis::R);
    const InputSpan columns = first(TileAxis::W, TileAxis::S);
    const VtaTransfers input =
        input_transfers(layer_, clock_, tile[TileAxis::N],
                        input_blocks(layer_, tile[TileAxis::O], tile[TileAxis::C]), rows, columns);
    if (!layer_.conv) return input.count * input.cycles;
    const VtaTransfers weights = weight_transfers(
        layer_, clock_, tile[TileAxis::O], tile[TileAxis::C], tile[TileAxis::R], tile[TileAxis::S]);
    return input.count * input.cycles + weights.count * weights.cycles;
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
      if (!taps_together(m.order)) continue;
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
      weight_depths = depths(m.order, [](TileAxis a) { return a == TileAxis::O || reduces(a); });
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

  /// Results of a tile at least: steps on one accumulator keep a distance.
  int64_t least_results() const {
    const auto& e = layer_.extent;
    return std::min(kStepDistance,
                    e[TileAxis::N] * e[TileAxis::O] * e[TileAxis::H] * e[TileAxis::W]);
  }

  /// Everything loaded for one tile, and once.
  VtaMapping smallest(const PerAxis<int64_t>& tile) const {
    VtaMapping m;
    m.tile = tile;
    if (!layer_.conv) std::tie(m.tile[TileAxis::R], m.tile[TileAxis::S]) = whole_window();
    for (size_t i = 0; i < kTileAxes; ++i)
      if (layer_.extent[i] > m.tile[i]) m.order.push_back(static_cast<TileAxis>(i));
    m.copies = m.result_copies = 1;
    m.input_depth = m.weight_depth = static_cast<int>(m.order.size());
    return m;
  }

  /// Of the smallest tiles the one that comes nearest to fitting.
  VtaNeed least_need() const {
    const auto share = [&](const VtaNeed& n) {
      const auto of = [](int64_t elements, int64_t there) {
        return static_cast<double>(elements) / static_cast<double>(there);
      };
      return std::max({of(n.inp, config_.depth(Mem::Inp)), of(n.wgt, config_.depth(Mem::Wgt)),
                       of(n.acc, config_.depth(Mem::Acc)), of(n.uop, config_.most_uops())});
    };
    const auto most = [&](size_t axis) { return std::min(kStepDistance, layer_.extent[axis]); };
    std::optional<VtaNeed> least;
    PerAxis<int64_t> t{{1, 1, 1, 1, 1, 1, 1}};
    for (t[0] = 1; t[0] <= most(0); ++t[0])
      for (t[1] = 1; t[1] <= most(1); ++t[1])
        for (t[2] = 1; t[2] <= most(2); ++t[2])
          for (t[3] = 1; t[3] <= most(3); ++t[3]) {
            if (t[0] * t[1] * t[2] * t[3] < least_results()) continue;
            const VtaNeed n = need(layer_, smallest(t), config_);
            if (!least || share(n) < share(*least)) least = n;
          }
    return *least;
  }

  Result<VtaMapping> nothing_fits() const {
    const VtaNeed least = least_need();
    return fail(
        ErrorKind::Capacity, fmt::format("no tile of `{}` fits on chip", layer_.name),
        fmt::format("tiles of {} results need INP {}, WGT {}, ACC {} elements and {} micro-ops "
                    "an instruction; there are {}, {}, {} and {}",
                    least_results(), least.inp, least.wgt, least.acc, least.uop,
                    config_.depth(Mem::Inp), config_.depth(Mem::Wgt), config_.depth(Mem::Acc),
                    config_.most_uops()),
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

}  // namespace tilewright::rules
