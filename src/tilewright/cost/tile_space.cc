// The time of a contraction by its register tile and the order of the loops around it.
//
//   256x256x256 product, tile of 6 rows x 4 vectors: per step of the reduction 24 multiply-adds and
//   4 + 6 loads; the loops around it decide what each cache must fetch again
//
// Times of arithmetic (at the measured share of the peak of this tile), L1, L2, L3 and memory
// overlap: the longest counts, with a fifth of the others. Starting threads, and waiting for the
// one with most work, come on top. register_tiles lists the tiles that fit the registers,
// loop_orders the orders; rank_points predicts all combinations.
#include "tilewright/cost/tile_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tilewright/base/integers.h"

namespace tilewright::cost {
namespace {

/// Accumulators at most: beyond it LLVM spills.
constexpr int64_t kMaxAccumulators = 28;
/// Vector operations on an accumulator around the sum: set to zero, finish, store.
constexpr double kFinishOps = 3;
/// Vector operations lost where one tile ends and the next begins.
constexpr double kTileStart = 12;
/// The part of a bandwidth that is reached without prefetches: what the processor fetches by
/// itself ends at each page.
constexpr double kUnasked = 0.6;
/// Multiply-adds of vectors from asking memory for a line to its arrival, and bytes that may have
/// been asked for at a time.
constexpr int64_t kLatency = 896, kAskedBytes = 16 << 10;
/// Register tiles that are combined with all orders.
constexpr size_t kKeptTiles = 16;
/// Sizes of blocks that are compared.
constexpr size_t kKeptBlocks = 4;
/// Steps of windows that are written out, rows of one tile times taps; with more registers, rows of
/// larger windows also hide each other's latency: only a row of taps is written out of those that
/// are larger still. source: 7x7 to 9x9 windows on a Sapphire Rapids (bench/results/cpu.md).
constexpr int64_t kWrittenSteps = 128, kWrittenMany = 256;
constexpr int64_t kWindowRows = 8, kWindowRowsMany = 14;
/// Registers from which there are many; taps of a window that is written out as a whole, and of one
/// that its loads bind, however many rows share them.
constexpr int kManyRegisters = 32;
constexpr int64_t kWholeWindow = 25, kSmallWindow = 9;
/// Taps of a row that are written out; longer sums are no windows, and stay loops.
constexpr int64_t kLongestRow = 16;
/// Part of the time to read weights again from L3 that arithmetic does not hide.
constexpr double kExposed = 0.5;
/// Part of the time of what runs beside the longest that shows all the same. source: 0 to 0.28 of
/// the time to read from L2, measured beside register tiles on two cores of a Sapphire Rapids.
constexpr double kUnhidden = 0.2;

int64_t extent(const Contraction& c, int axis) {
  return axis < 0 ? 1 : c.axes[static_cast<size_t>(axis)].extent;
}

/// Vectors beside each other, over both axes that hold them.
int64_t all_columns(const Contraction& c) {
  return ceil_div(extent(c, c.lanes), c.lane_count) * extent(c, c.columns);
}

/// Axes of the result that form no row of the tile, the second row axis included.
std::vector<int> batch_axes_of(const Contraction& c) {
  std::vector<int> axes;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (!c.axes[i].reduces && axis != c.lanes && axis != c.columns && axis != c.rows)
      axes.push_back(axis);
  }
  return axes;
}

/// Whether `rows` lines that far apart push each other out of L1 before their next use.
bool rows_collide(int64_t rows, int64_t stride) {
  // One way of an L1 cache is a page; one of eight is left to the other operand.
  constexpr int64_t kWayBytes = 4096, kFreeWays = 7;
  if (stride < static_cast<int64_t>(kLineBytes)) return false;
  return ceil_div(rows, kWayBytes / std::gcd(stride, kWayBytes)) > kFreeWays;
}

/// Rows of a tile at most.
int64_t most_rows(const Contraction& c, const hw::CpuTarget& target) {
  if (c.reuse) return std::min(extent(c, c.rows), kMaxAccumulators);
  int64_t taps = 1, row = 1;  // of the window; of its last axis
  for (const ContractionAxis& axis : c.axes)
    if (axis.reduces) taps *= axis.extent, row = axis.extent;
  taps = std::max<int64_t>(taps, 1);
  int64_t most = std::clamp<int64_t>(kWrittenSteps / taps, 4, kWindowRows);
  if (target.vector_registers >= kManyRegisters && taps > kSmallWindow && row <= kLongestRow) {
    const int64_t written = taps <= kWholeWindow ? taps : row;
    most = std::clamp<int64_t>(kWrittenMany / written, most, kWindowRowsMany);
  }
  return std::min<int64_t>(extent(c, c.rows), most);
}

/// Part of the terms that tiles of `rows` take: not those that fill up blocks, nor those whose tap
/// no row of the tile has in the padding.
double counted(const Contraction& c, int64_t rows) {
  double share = c.counted;
  for (const Inside& inside : c.insides) {
    const int64_t size = extent(c, inside.axis), taps = extent(c, inside.tap);
    const int64_t tile = inside.axis == c.rows ? rows : 1, tiles = ceil_div(size, tile);
    int64_t taken = 0;
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t shift = inside.dilation * tap - inside.begin;
        const int64_t last = std::min((t + 1) * tile, size) - 1;
        taken +=
            inside.stride * last + shift >= 0 && inside.stride * t * tile + shift < inside.extent;
      }
    share *= static_cast<double>(taken) / static_cast<double>(tiles * taps);
  }
  return share;
}

class Model {
 public:
  Model(const Contraction& c, const hw::CpuTarget& target, int threads)
      : c_(c),
        target_(target),
        rates_(target.rates_or_assumed()),
        threads_(std::max(threads, 1)),
        batch_axes_(batch_axes_of(c)),
        multiply_add_(2.0 * c.lane_count / std::max(rates_.peak(c.dtype), 1e-9)) {
    const int products = bit_width(accumulator(c.dtype)) / bit_width(c.dtype);  // of a lane
    if (rates_.peak(c.dtype) > rates_.f32) multiply_add_ *= products;
    load_ = rates_.l1.one > 0 ? target.vector_bytes / rates_.l1.one : multiply_add_;
    for (const ContractionAxis& axis : c.axes)
      if (axis.reduces) steps_ *= static_cast<double>(axis.extent);
  }

  /// Time of the tiles alone on one core, in ns.
  double tiles_time(const TilePoint& p) const {
    double time = 0;
    const int64_t columns = all_columns(c_);
    for (const auto& [plane, planes] : parts(extent(c_, c_.plane), p.plane))
      for (const auto& [rows, row_tiles] : parts(extent(c_, c_.rows), p.rows))
        for (const auto& [width, column_tiles] : parts(columns, p.columns))
          time += static_cast<double>(planes * row_tiles * column_tiles) *
                  tile_time(rows * plane, width);
    for (size_t i = 0; i < c_.axes.size(); ++i)
      if (is_batch(static_cast<int>(i))) time *= static_cast<double>(c_.axes[i].extent);
    return time * counted(c_, p.rows);
  }

  Prediction predict(const TilePoint& p) const {
    Prediction time;
    const int64_t pieces = pieces_of(p);
    const double busy = static_cast<double>(std::min<int64_t>(threads_, pieces));
    const int workers = static_cast<int>(busy);
    time.compute = tiles_time(p) / busy;
    const double part = counted(c_, p.rows);
    const double all_steps = part * tile_count(p) * steps_;
    const int64_t loads = p.columns * (p.ahead > 0 ? 2 : 1) + p.rows * p.plane;
    time.l1 = all_steps * load_ * static_cast<double>(loads) / busy;
    const std::vector<NestLoop> nest = nest_of(p);
    const Sizes tile = tile_of(p);
    auto bytes = [&](double capacity) {
      const std::vector<double> fetched = traffic(c_, nest, tile, kFill * capacity);
      return std::accumulate(fetched.begin(), fetched.end(), 0.0);
    };
    double from_l2 = bytes(static_cast<double>(target_.l1_bytes));
    const int64_t stride = stride_bytes(c_.operands[static_cast<size_t>(c_.row_operand)], c_.rows);
    if (c_.reuse && c_.rows >= 0 && rows_collide(p.rows, stride))
      from_l2 += tile_count(p) * steps_ * static_cast<double>(p.rows) * 64;
    time.l2 = part * from_l2 / rates_.l2.of(workers);
    const double flow = p.ahead > 0 || !c_.reuse ? 1 : kUnasked;
    time.l3 = part * flow_from_l3(nest, tile, flow) / rates_.l3.of(workers);
    time.dram = dram_bytes(nest, tile) / (flow * rates_.dram.of(workers));
    const auto overlapping = {time.compute, time.l1, time.l2, time.l3, time.dram};
    time.pack = kUnhidden * (std::accumulate(overlapping.begin(), overlapping.end(), 0.0) -
                             std::max(overlapping));
    if (threads_ > 1) {
      // Each worker gets whole pieces: some wait for the one that got most.
      const double most = static_cast<double>(ceil_div(pieces, workers));
      const double wait = most * busy / static_cast<double>(pieces) - 1 + kUneven / most;
      time.join = rates_.fork_join_ns + wait * time.total() + shared(nest, tile, workers) +
                  (workers > 1 ? met(nest, tile) : 0);
    }
    return time;
  }

 private:
  bool is_batch(int axis) const {
    return !c_.axes[static_cast<size_t>(axis)].reduces && axis != c_.lanes && axis != c_.columns &&
           axis != c_.rows && axis != c_.plane;
  }

  /// An extent as whole tiles and a rest: (size, how many).
  static std::vector<std::pair<int64_t, int64_t>> parts(int64_t size, int64_t tile) {
    std::vector<std::pair<int64_t, int64_t>> out;
    if (size >= tile) out.emplace_back(tile, size / tile);
    if (size % tile != 0) out.emplace_back(size % tile, 1);
    return out;
  }

  double tile_time(int64_t rows, int64_t columns) const {
    const auto r = static_cast<double>(rows), k = static_cast<double>(columns);
    const double share = std::clamp(rates_.tile_share(c_.dtype, rows, columns), 0.1, 1.0);
    const double issue = c_.fused ? r * k : 2 * r * k;
    const double widen = c_.narrow ? 0.5 * r : 0;
    // A measured share already holds the latency of few accumulators.
    const double fma =
        rates_.tiles.empty() ? std::max<double>(issue + widen, kChains) : (issue + widen) / share;
    const double loads = (k + (c_.reuse ? r : r * k)) * load_ / multiply_add_;
    const double step = std::max(fma, loads);
    const double around = kTileStart + kFinishOps * r * k;
    return (steps_ * step + around) * multiply_add_;
  }

  double tile_count(const TilePoint& p) const {
    double count = static_cast<double>(ceil_div(extent(c_, c_.rows), p.rows) *
                                       ceil_div(extent(c_, c_.plane), p.plane) *
                                       ceil_div(all_columns(c_), p.columns));
    for (size_t i = 0; i < c_.axes.size(); ++i)
      if (is_batch(static_cast<int>(i))) count *= static_cast<double>(c_.axes[i].extent);
    return count;
  }

  /// Iterations of each axis inside a register tile.
  Sizes tile_of(const TilePoint& p) const {
    Sizes tile(c_.axes.size(), 1);
    auto set = [&](int axis, int64_t size) {
      if (axis >= 0) tile[static_cast<size_t>(axis)] = std::min(size, extent(c_, axis));
    };
    set(c_.rows, p.rows);
    set(c_.plane, p.plane);
    set(c_.columns, p.columns);
    set(c_.lanes, c_.columns >= 0 ? extent(c_, c_.lanes) : p.columns * c_.lane_count);
    return tile;
  }

  /// The loops around the tile, in the order that the rule for tiles makes them.
  std::vector<NestLoop> nest_of(const TilePoint& p) const {
    std::vector<NestLoop> nest;
    const Sizes tile = tile_of(p);
    const int blocked = p.block > 0 ? blocked_axis(c_, p) : -1;
    auto trips = [&](int axis) {
      return ceil_div(extent(c_, axis), tile[static_cast<size_t>(axis)]);
    };
    auto add = [&](int axis, int64_t count) {
      if (axis >= 0 && count > 1) nest.push_back({axis, count});
    };
    auto around = [&](size_t first, size_t last) {
      for (size_t i = first; i < std::min(last, batch_axes_.size()); ++i)
        add(batch_axes_[i], trips(batch_axes_[i]));
    };
    auto columns = [&] {
      for (const int axis : {c_.columns, c_.lanes})
        if (axis >= 0) add(axis, trips(axis));
    };
    const size_t leading = blocked >= 0 && blocked != c_.rows ? batch_axes_.size() - 1 : 1;
    around(0, leading);
    if (blocked >= 0) {
      const int64_t block = blocked == c_.rows ? ceil_div(p.block, p.rows) * p.rows : p.block;
      add(blocked, ceil_div(extent(c_, blocked), block));
      if (!p.rows_outside) columns();
      if (blocked != c_.rows) add(blocked, p.block);
      if (blocked != c_.rows && c_.rows >= 0) add(c_.rows, trips(c_.rows));
      if (blocked == c_.rows) around(leading, batch_axes_.size());
      if (blocked == c_.rows) add(c_.rows, ceil_div(p.block, p.rows));
    } else {
      if (!p.rows_outside) columns();
      around(leading, batch_axes_.size());
      if (c_.rows >= 0) add(c_.rows, trips(c_.rows));
    }
    if (p.rows_outside) columns();
    for (size_t i = 0; i < c_.axes.size(); ++i)
      if (c_.axes[i].reduces) add(static_cast<int>(i), trips(static_cast<int>(i)));
    return nest;
  }

  /// Time that workers lose who divide the columns, so that all of them read the whole input, and
  /// the next kernel's, who divide rows, each other's results; or, where they divide rows, who read
  /// weights again for each of them. units: ns of one worker.
  double shared(const std::vector<NestLoop>& nest, const Sizes& tile, int workers) const {
    if (!c_.reuse || nest.empty()) return 0;
    Sizes all;
    for (const ContractionAxis& axis : c_.axes) all.push_back(axis.extent);
    if (!c_.moves(c_.row_operand, nest.front().axis)) {
      const double input = footprint(c_.operands[static_cast<size_t>(c_.row_operand)], all);
      const double result = c_.left ? 0 : footprint(c_.operands.back(), all) * (1 - 1.0 / workers);
      return (input + result) / kLineBytes * kSharedLineNs / workers;
    }
    const auto weights = static_cast<size_t>(c_.lane_operand);
    const double again =
        traffic(c_, nest, tile, kFill * static_cast<double>(target_.l2_bytes))[weights] -
        footprint(c_.operands[weights], all);
    return kExposed * std::max(again, 0.0) / rates_.l3.one / workers;
  }

  /// Time that workers lose in cache lines that two of them write: each takes a part of every row
  /// of the result, and rows or their parts end within lines. units: ns.
  double met(const std::vector<NestLoop>& nest, const Sizes& tile) const {
    if (nest.empty()) return 0;
    const Operand& result = c_.left ? *c_.left : c_.operands.back();
    const int axis = nest.front().axis;
    int64_t rows = 1, bytes = result.element_bytes;
    bool within = false;
    for (const Index& index : result.indices) {
      for (const IndexTerm& term : index.terms) within |= term.axis == axis;
      (within ? bytes : rows) *= index.extent;
    }
    const int64_t part = stride_bytes(result, axis) * tile[static_cast<size_t>(axis)];
    const auto line = static_cast<int64_t>(kLineBytes);
    if (!within || rows == 1 || (bytes % line == 0 && part % line == 0)) return 0;
    return static_cast<double>(rows) * kMetLineNs;
  }

  /// Bytes from L3, each counted for as long as it takes: vectors flow as they are asked for, rows
  /// of channel blocks as the processor fetches by itself.
  double flow_from_l3(const std::vector<NestLoop>& nest, const Sizes& tile, double flow) const {
    const std::vector<double> fetched =
        traffic(c_, nest, tile, kFill * static_cast<double>(target_.l2_bytes));
    double sum = 0;
    for (size_t i = 0; i < fetched.size(); ++i)
      sum += fetched[i] / (c_.reuse && static_cast<int>(i) == c_.row_operand ? kUnasked : flow);
    return sum;
  }

  /// Weights come from behind the caches the first time; all else only if it does not fit.
  double dram_bytes(const std::vector<NestLoop>& nest, const Sizes& tile) const {
    const std::vector<double> fetched =
        traffic(c_, nest, tile, kFill * static_cast<double>(target_.l3_bytes));
    const double sum = std::accumulate(fetched.begin(), fetched.end(), 0.0);
    if (sum > static_cast<double>(target_.l3_bytes)) return sum;
    double constant = 0;
    for (size_t i = 0; i < c_.operands.size(); ++i)
      if (c_.operands[i].constant) constant += fetched[i];
    return constant;
  }

  /// Iterations of the loops that are joined until there are enough for the threads.
  int64_t pieces_of(const TilePoint& p) const {
    int64_t pieces = 1;
    for (const NestLoop& loop : nest_of(p)) {
      if (c_.axes[static_cast<size_t>(loop.axis)].reduces) break;
      pieces *= loop.trips;
      if (pieces >= (p.pieces > 0 ? p.pieces : kPiecesPerThread) * threads_) break;
    }
    return pieces;
  }

  const Contraction& c_;
  const hw::CpuTarget& target_;
  hw::CpuRates rates_;
  int threads_;
  const std::vector<int> batch_axes_;
  double multiply_add_;  ///< units: ns
  double load_ = 0;      ///< of one vector from L1; units: ns
  double steps_ = 1;     ///< of the reduction
};

/// Sizes of blocks of rows that stay in L2 while all columns pass, larger ones first. Those of a
/// tile's own rows need not divide them.
std::vector<int64_t> blocks_of(const Contraction& c, const hw::CpuTarget& target) {
  const int axis = blocked_axis(c, {});
  if (axis < 0) return {};
  const bool of_rows = axis == c.rows;
  const int64_t size = extent(c, axis), least = of_rows ? kMaxAccumulators : 2;
  Sizes sizes;
  for (const ContractionAxis& a : c.axes) sizes.push_back(a.reduces ? a.extent : 1);
  sizes[static_cast<size_t>(c.rows)] = extent(c, c.rows);
  std::vector<int64_t> blocks;
  for (int64_t parts = 2; size / parts >= least && blocks.size() < kKeptBlocks; ++parts) {
    const int64_t block = ceil_div(size, parts);
    if (!of_rows && size % parts != 0) continue;
    if (!blocks.empty() && 3 * block > 2 * blocks.back()) continue;
    sizes[static_cast<size_t>(axis)] = block;
    if (footprint(c.operands[static_cast<size_t>(c.row_operand)], sizes) <
        static_cast<double>(target.l2_bytes))
      blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

std::string reject(const Contraction& c, const TilePoint& p, const hw::CpuTarget& target) {
  const int64_t rows = p.rows * p.plane, sums = rows * p.columns;
  if (p.rows < 1 || p.columns < 1 || p.plane < 1) return "a tile is empty";
  if (p.rows > most_rows(c, target) || p.plane > extent(c, c.plane))
    return "more rows than there are or make sense";
  if (p.columns > all_columns(c)) return "more columns than there are";
  if (c.columns < 0 && p.columns > 1 && p.columns * c.lane_count > extent(c, c.lanes))
    return "a part of a vector is a tile of its own";
  if (c.columns >= 0 && extent(c, c.columns) % p.columns != 0)
    return fmt::format("{} columns do not divide {}", p.columns, extent(c, c.columns));
  if (p.columns > 4 && rows > 1) return "long rows of vectors are for single rows";
  const int blocked = blocked_axis(c, p);
  if (p.block > 0 && (blocked < 0 || (blocked != c.rows && extent(c, blocked) % p.block != 0)))
    return fmt::format("blocks of {} cut no axis evenly", p.block);
  if (p.plane > 1 && p.rows != extent(c, c.rows)) return "only whole rows are joined";
  if (p.plane > 1 && !c.insides.empty()) return "rows of a plane have other taps in the padding";
  // One register holds the broadcast element; without fused instructions, two more the products of
  // which one is being added. Arm takes no operand from memory: there the next elements wait in
  // registers too.
  const int64_t waiting = target.triple.starts_with("aarch64") ? 2 : 0;
  const int64_t registers = sums + p.columns + (c.fused ? 1 : 3) + waiting;
  if (sums > kMaxAccumulators || registers > target.vector_registers)
    return fmt::format("{} registers are needed, there are {}", registers, target.vector_registers);
  return {};
}

Prediction predict(const Contraction& contraction, const TilePoint& point,
                   const hw::CpuTarget& target, int threads) {
  return Model(contraction, target, threads).predict(point);
}

std::vector<TilePoint> register_tiles(const Contraction& c, const hw::CpuTarget& target,
                                      int threads) {
  const Model model(c, target, threads);
  std::vector<std::pair<double, TilePoint>> tiles;
  const int64_t rows = extent(c, c.rows), most = most_rows(c, target);
  for (const int64_t columns : std::array<int64_t, 6>{1, 2, 3, 4, 6, 8}) {
    for (int64_t r = 1; r <= most; ++r) {
      TilePoint point{r, columns, 1, false, 0};
      if (r == rows && c.plane >= 0)
        point.plane = std::clamp<int64_t>(kMaxAccumulators / (r * columns), 1, extent(c, c.plane));
      while (point.plane > 1 && !reject(c, point, target).empty()) --point.plane;
      if (!reject(c, point, target).empty()) continue;
      tiles.emplace_back(model.tiles_time(point), point);
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TilePoint> points;
  for (const auto& [time, point] : tiles)
    if (points.size() < kKeptTiles) points.push_back(point);
  if (points.empty()) points.emplace_back();
  return points;
}

int64_t usual_ahead(const TilePoint& p) {
  const int64_t sums = std::max(p.rows * p.plane * p.columns, kChains);
  const int64_t step_bytes = p.columns * static_cast<int64_t>(kLineBytes);
  int64_t steps = 32;  // the nearest power of two
  while (3 * steps * sums <= 2 * kLatency && 2 * steps * step_bytes <= kAskedBytes) steps *= 2;
  return steps;
}

int blocked_axis(const Contraction& c, const TilePoint& p) {
  if (!c.reuse || c.rows < 0 || p.plane > 1) return -1;
  const std::vector<int> batch = batch_axes_of(c);
  if (batch.size() >= 2) return batch.back();
  return c.rows;
}

std::vector<LoopOrder> loop_orders(const Contraction& c, const hw::CpuTarget& target) {
  if (!c.reuse) return {{}};
  std::vector<LoopOrder> orders = {{false, 0}, {true, 0}};
  for (const int64_t block : blocks_of(c, target)) orders.push_back({false, block});
  return orders;
}

std::vector<RankedPoint> rank_points(const Contraction& c, const hw::CpuTarget& target,
                                     int threads) {
  const Model model(c, target, threads);
  std::vector<RankedPoint> points;
  for (TilePoint point : register_tiles(c, target, threads)) {
    for (const LoopOrder& order : loop_orders(c, target))
      for (const int64_t ahead : {int64_t{0}, usual_ahead(point)}) {
        point.rows_outside = order.rows_outside;
        point.block = order.block;
        point.ahead = ahead;
        if ((!c.reuse && ahead > 0) || !reject(c, point, target).empty()) continue;
        points.push_back({point, model.predict(point)});
      }
  }
  std::stable_sort(points.begin(), points.end(), [](const RankedPoint& a, const RankedPoint& b) {
    return a.time.total() < b.time.total();
  });
  return points;
}

std::string describe(const TilePoint& p) {
  std::string text = fmt::format("{}x{} vectors", p.rows * p.plane, p.columns);
  if (p.rows_outside) text += ", rows outside";
  if (p.ahead > 0) text += fmt::format(", fetched {} steps ahead", p.ahead);
  if (p.block > 0) text += fmt::format(", blocks of {}", p.block);
  if (p.unroll > 0) text += fmt::format(", {} steps written out", p.unroll);
  if (p.pieces > 0) text += fmt::format(", {} pieces per thread", p.pieces);
  return text;
}

}  // namespace tilewright::cost
