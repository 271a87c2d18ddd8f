#include "tilewright/cost/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tilewright/base/integers.h"

namespace tilewright::cost {
namespace {

/// Part of a multiply-add that a load beside it costs, and one of weights that L1 does not hold.
constexpr double kLoadPrice = 0.1, kFarPrice = 0.3;
/// Turns at loading, of which there are as many as at multiply-adds, that a vector of weights
/// takes: asked for ahead, put into L1, loaded. A line of the input, put into L1, costs two.
constexpr double kWeightTurns = 3, kInputTurns = 2;
/// Vector operations per point and block of one tile: a one-sided sum for each side, each about
/// half as long as there are points, and at least loads and stores.
constexpr double kLeastTransformOps = 6;
/// Widest register tile, in vectors.
constexpr int64_t kMaxColumns = 4;
/// Parts of the times to read from L3 and from memory that show beside what register tiles wait
/// for. source: layers of ResNet-18 and VGG-16 with F(2x2) and F(4x4), two cores of a Sapphire
/// Rapids.
constexpr double kExposedL3 = 0.2, kExposedMemory = 0.35;

/// Part of the last cache that keeps what is read in turn, and in pieces of a few lines as register
/// tiles read their input: others use it, too, on a shared host those of other machines. ns that
/// such a piece waits for each line from memory, since the processor does not foresee it. source: a
/// Zen 3 with 32 MB, where 11 MB in turn and 6 MB in pieces are read at the speed of L3; 3x3
/// windows on 960 channels in strips of 5 to 20 MB (bench/results/cpu.md).
constexpr double kTurnsInL3 = 1.0 / 3, kPiecesInL3 = 1.0 / 6, kMemoryLineNs = 16;

struct Tile {
  int64_t rows = 1, columns = 1;
  double operations = INFINITY;  ///< vector multiply-adds paid per channel and filter block
  double first = INFINITY;       ///< those of the first pass over the weights
};

class Planner {
 public:
  Planner(const WinogradShape& shape, const hw::CpuTarget& target, int threads)
      : shape_(shape),
        target_(target),
        rates_(target.rates_or_assumed()),
        threads_(std::max(threads, 1)),
        lanes_(target.lanes(32)),
        rows_(ceil_div(shape.height, shape.tile_h())),
        columns_(ceil_div(shape.width, shape.tile_w())),
        blocks_((shape.filters + lanes_ - 1) / lanes_),
        points_(static_cast<double>(shape.points_h() * shape.points_w())) {}

  WinogradPlan run() const {
    WinogradPlan best;
    best.time.compute = INFINITY;
    for (const WinogradStrip& strip : strips()) try_strip(strip, best);
    return best;
  }

  /// Parts of a row, whole rows, or whole images.
  std::vector<WinogradStrip> strips() const {
    std::vector<WinogradStrip> all;
    for (int64_t rows = 1; rows <= rows_; ++rows) {
      if (rows_ % rows != 0) continue;
      for (int64_t parts = 1; parts <= (rows == 1 ? columns_ : 1); ++parts)
        if (columns_ % parts == 0) all.push_back({1, rows, columns_ / parts});
    }
    for (int64_t images = 2; shape_.shared && images <= shape_.batch; ++images)
      if (shape_.batch % images == 0) all.push_back({images, rows_, columns_});
    return all;
  }

  std::vector<int64_t> groups() const {
    std::vector<int64_t> all;
    for (int64_t group = 1; group <= blocks_; ++group)
      if (blocks_ % group == 0) all.push_back(group);
    return all;
  }

  WinogradPlan at(WinogradPlan plan, size_t slower) const {
    std::vector<WinogradPlan> plans;
    for (const Tile& tile : tiles_of(plan.strip, plan.group)) plans.push_back(with(plan, tile));
    std::stable_sort(plans.begin(), plans.end(), [](const WinogradPlan& a, const WinogradPlan& b) {
      return a.time.total() < b.time.total();
    });
    return plans[std::min(slower, plans.size() - 1)];
  }

 private:
  WinogradPlan with(WinogradPlan plan, const Tile& tile) const {
    plan.tile_rows = tile.rows;
    plan.tile_columns = tile.columns;
    plan.time = time_of(plan, tile);
    return plan;
  }

  void try_strip(const WinogradStrip& strip, WinogradPlan& best) const {
    for (const Tile& tile : tiles_of(strip, blocks_)) {
      for (int64_t group = tile.columns; group <= blocks_; group += tile.columns) {
        if (blocks_ % group != 0) continue;
        for (const bool by_filters : {false, true}) {
          if (by_filters && threads_ == 1) continue;
          const WinogradPlan plan = with({strip, group, 1, 1, by_filters, {}}, tile);
          if (plan.time.total() < 0.99 * best.time.total()) best = plan;
        }
      }
    }
  }

  /// Register tiles for a strip whose columns divide `blocks`: accumulators, a row of weights and
  /// one broadcast fit the registers. What is left over of the image is done by a smaller tile; a
  /// strip has no rest, whose sums would reach into the next one.
  std::vector<Tile> tiles_of(const WinogradStrip& strip, int64_t blocks) const {
    const int64_t images = strip.images, tiles = strip.tiles() / images;
    const bool whole_image = tiles == rows_ * columns_;
    std::vector<Tile> all;
    for (int64_t columns = 1; columns <= std::min(kMaxColumns, blocks); ++columns) {
      if (blocks % columns != 0) continue;
      for (int64_t rows = 1; rows <= tiles; ++rows) {
        if ((rows + 1) * columns + 1 > target_.vector_registers) break;
        if (!whole_image && tiles % rows != 0) continue;
        const int64_t times = tiles / rows;
        const double whole = static_cast<double>(times) * price(rows, columns);
        const double rest = tiles % rows == 0 ? 0 : price(tiles % rows, columns);
        all.push_back({rows, columns,
                       static_cast<double>(images) * (whole + rest) / static_cast<double>(columns) +
                           far_passes(strip, rows, columns) * (kFarPrice - kLoadPrice),
                       price(rows, columns) / static_cast<double>(columns)});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Tile& a, const Tile& b) { return a.operations < b.operations; });
    return all;
  }

  /// Multiply-adds that a register tile costs per channel: one for loop control, and loads in the
  /// way of arithmetic, whose operands come from L2 and not, as where tiles are measured, from L1.
  double price(int64_t rows, int64_t columns) const {
    const auto useful = static_cast<double>(std::max(rows * columns, kChains));
    const auto height = static_cast<double>(rows), width = static_cast<double>(columns);
    const double turns = height + kInputTurns * height / lanes_ + kWeightTurns * width;
    const double loads = kLoadPrice * (height + width);
    return 1 + std::max(useful / rates_.tile_share(DType::F32, rows, columns), turns) + loads;
  }

  /// How often the weights of a register tile's filters come from behind L1 for one strip.
  double far_passes(const WinogradStrip& strip, int64_t rows, int64_t columns) const {
    const int64_t panel = columns * shape_.channels * lanes_ * 4;
    if (static_cast<double>(panel) <= kFill * static_cast<double>(target_.l1_bytes)) return 1;
    return static_cast<double>(strip.images * ceil_div(strip.rows * strip.columns, rows));
  }

  /// ns that one worker waits for the weights of its strips: prefetches reach a few lines ahead,
  /// so only the first pass of register tiles over a strip's weights hides their way. From memory
  /// they come once, or for each strip where the last cache does not hold them.
  double waiting(const WinogradPlan& plan, const Tile& tile, double share) const {
    const double vectors = points_ * static_cast<double>(shape_.channels * blocks_);
    const double vector = 4.0 * lanes_, bytes = vectors * vector;
    const double busy = tile.first * 2 * lanes_ / rates_.f32;
    const auto wait = [&](double rate) { return std::max(0.0, vector / rate - busy); };
    const double all = vectors * share, once = plan.by_filters ? vectors / threads_ : vectors;
    const double far = stays(bytes) ? std::min(once, all) : all;
    const double memory = plan.by_filters ? rates_.dram.all / threads_ : rates_.dram.one;
    return far * wait(memory) + (all - far) * (fits(bytes) ? 0 : wait(rates_.l3.one));
  }

  bool fits(double bytes) const { return bytes <= kFill * static_cast<double>(target_.l2_bytes); }

  /// Whether the last cache holds it.
  bool stays(double bytes, double part = kTurnsInL3) const {
    return bytes <= part * static_cast<double>(target_.l3_bytes);
  }

  /// How often a byte written among `bytes` moves: what does not stay in L2 is fetched before and
  /// written back after.
  double writes(double bytes) const { return fits(bytes) ? 1 : 3; }

  /// Bytes per ns at which one of the workers reads again what is `bytes` in all.
  double again(double bytes) const {
    if (fits(bytes)) return rates_.l2.one;
    return stays(bytes) ? rates_.l3.one : memory_rate();
  }

  /// Bytes per ns that one of the workers gets from memory in turn.
  double memory_rate() const { return std::min(rates_.dram.one, rates_.dram.all / threads_); }

  double transform_ops() const {
    int64_t sums = 0;
    for (const int64_t points : {shape_.points_h(), shape_.points_w()})
      sums += points > 1 ? points / 2 : 0;
    return std::max(kLeastTransformOps, static_cast<double>(sums));
  }

  /// Wall time over work divided evenly, if `parts` equal pieces go to the workers.
  double uneven(double parts) const { return std::ceil(parts / threads_) * threads_ / parts; }

  /// Reading all weights so many times; `shares`: the workers that divide them.
  void add_weights(double bytes, double passes, int shares, Prediction& time) const {
    if (!stays(bytes)) {
      time.dram = passes * bytes / memory_rate();
      return;
    }
    // They come from memory once, from then on from the cache.
    (fits(bytes) ? time.l2 : time.l3) += passes * bytes / again(bytes);
    time.dram = std::max(bytes / rates_.dram.all, bytes / shares / rates_.dram.one);
  }

  Prediction time_of(const WinogradPlan& plan, const Tile& tile) const {
    const auto batch = static_cast<double>(shape_.batch);
    const auto channels = static_cast<double>(shape_.channels);
    const auto filters = static_cast<double>(blocks_) * lanes_;
    const double tiles = static_cast<double>(plan.strip.tiles());
    const double strips = batch * static_cast<double>(rows_ * columns_) / tiles;
    const int64_t whole_groups = blocks_ / plan.group;
    const double groups = static_cast<double>(whole_groups);
    const double operation = 2 * lanes_ / rates_.f32;
    const double staged_in = points_ * tiles * channels * 4;
    const double staged_out = points_ * tiles * static_cast<double>(plan.group) * lanes_ * 4;
    const double weights = points_ * channels * filters * 4;
    const double panel = weights / points_ / groups;

    // Of one worker: times are per strip, then for its share of the strips or of the groups.
    const double share =
        plan.by_filters ? strips / threads_ * uneven(groups) : strips / threads_ * uneven(strips);
    const double mine = plan.by_filters ? strips : share;
    const bool own = plan.by_filters && blocks_ / plan.group % threads_ == 0;
    const double transforms = own ? strips : share;
    Prediction time;
    time.compute =
        points_ * channels * static_cast<double>(blocks_) * tile.operations * operation * share +
        waiting(plan, tile, share);
    const double kept = staged_in + staged_out + 2 * panel;
    const double kept_out = staged_out + panel + staged_in / points_;
    // Until the next group reads the input again, all of this one's weights pass.
    const double passing = weights / groups * (plan.by_filters ? threads_ : 1);
    const bool near = fits(kept);
    const bool far = !near && !stays(threads_ * (staged_in + staged_out) + passing, kPiecesInL3);
    const double in_rate = near ? rates_.l2.one : far ? memory_rate() : rates_.l3.one;
    const double out_rate = again(kept_out);
    const double worker_groups = plan.by_filters ? std::ceil(groups / threads_) : groups;
    const double reads_in = mine * worker_groups * staged_in;
    (near ? time.l2 : time.l3) +=
        (far ? 0 : reads_in / in_rate) + share * groups * staged_out / out_rate;
    add_weights(weights, plan.by_filters ? mine / threads_ : mine, plan.by_filters ? threads_ : 1,
                time);
    const double ops = points_ * tiles * transform_ops() * operation;
    time.pack = ops * (channels * transforms + filters * share) / lanes_ +
                transforms * writes(kept) * staged_in / in_rate +
                share * groups * writes(kept_out) * staged_out / out_rate;
    time.pack += kExposedL3 * time.l3 + kExposedMemory * time.dram +
                 (far ? reads_in / kLineBytes * kMemoryLineNs : 0);
    if (threads_ == 1) return time;
    time.join = rates_.fork_join_ns * (!plan.by_filters ? 1 : own ? strips : 2 * strips);
    // Workers that divide filters share the input and what is transformed together; those of the
    // next kernel, who divide rows, read each other's results.
    const double pixels = batch * static_cast<double>(shape_.height * shape_.width);
    const double together =
        pixels * 4 * (channels + filters * (1 - 1.0 / threads_)) + (own ? 0 : strips * staged_in);
    if (plan.by_filters) time.join += together / kLineBytes * kSharedLineNs / threads_;
    return time;
  }

  const WinogradShape shape_;
  const hw::CpuTarget& target_;
  const hw::CpuRates rates_;
  const int threads_;
  const int lanes_;
  const int64_t rows_, columns_, blocks_;  ///< of tiles; blocks of filters
  const double points_;
};

}  // namespace

WinogradPlan plan_winograd(const WinogradShape& shape, const hw::CpuTarget& target, int threads) {
  return Planner(shape, target, threads).run();
}

std::string describe(const WinogradStrip& strip) {
  const std::string one = fmt::format("{}x{}", strip.rows, strip.columns);
  return strip.images > 1 ? fmt::format("{} of {}", strip.images, one) : one;
}

WinogradCuts winograd_cuts(const WinogradShape& shape, const hw::CpuTarget& target) {
  const Planner planner(shape, target, 1);
  return {planner.strips(), planner.groups()};
}

WinogradPlan winograd_plan_at(const WinogradShape& shape, const WinogradPlan& cuts, size_t slower,
                              const hw::CpuTarget& target, int threads) {
  return Planner(shape, target, threads).at(cuts, slower);
}

}  // namespace tilewright::cost
