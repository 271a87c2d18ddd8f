#include "tilewright/tune/winograd_schedule.h"

#include <algorithm>
#include <string>

#include "tilewright/tune/machine_rates.h"
#include "tilewright/tune/program_facts.h"

namespace tilewright::tune {
namespace {

using schedule::Step;
using schedule::Trace;

// Names the operator gives its tensors.
constexpr const char* kRows = "wino_rows";  // B^T d, for one side
constexpr const char* kIn = "wino_in";      // B^T d B
constexpr const char* kSum = "wino_sum";    // products, summed over channels
constexpr const char* kHalf = "wino_half";  // A^T m, for one side
constexpr const char* kAcc = "wino_acc";    // the sums of one register tile
constexpr const char* kBack = "wino_sum.wb";

int64_t extent_of(const BlockFacts& block, const std::string& axis) {
  for (const Iter& iter : block.block->iters)
    if (iter.var.name() == axis) return as_int(iter.extent).value_or(0);
  return 0;
}

/// Sizes that decide the schedule.
struct Sizes {
  int64_t points, m, channels, filters, blocks, tiles, columns, rows;
};

class WinogradScheduler {
 public:
  WinogradScheduler(Func func, const hw::CpuTarget& target, int threads)
      : func_(std::move(func)), target_(target), threads_(threads) {}

  std::optional<Trace> run() {
    if (!inline_rest() || !read_sizes()) return std::nullopt;
    choose();
    const bool done = split_output() && place_inverse() && place_products() && place_transform() &&
                      finish_output();
    if (!done) return std::nullopt;
    return std::move(trace_);
  }

 private:
  bool attempt(Step step) {
    Result<Func> next = schedule::apply(step, func_);
    if (!next) return false;
    func_ = *std::move(next);
    trace_.push_back(std::move(step));
    return true;
  }

  /// Everything behind the inverse transform becomes one block, which writes the output.
  bool inline_rest() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const BlockFacts& block : collect_blocks(func_)) {
        const bool fixed = block.name == kRows || block.name == kIn || block.name == kHalf;
        if (block.kind != BlockFacts::Kind::Injective || fixed) continue;
        if (is_output(func_, block.store->buffer)) continue;
        const std::string name = block.name;
        changed = attempt(schedule::Inline{name});
        if (!changed) return false;
        break;
      }
    }
    return true;
  }

  bool read_sizes() {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* sum = find_block(blocks, kSum);
    const BlockFacts* half = find_block(blocks, kHalf);
    if (sum == nullptr || half == nullptr || find_block(blocks, kIn) == nullptr) return false;
    const BlockFacts* last = nullptr;
    for (const BlockFacts& block : blocks)
      if (block.store != nullptr && is_output(func_, block.store->buffer)) {
        if (last != nullptr) return false;
        last = &block;
      }
    if (last == nullptr || last->loops.size() != 5) return false;
    for (size_t i = 0; i < 5; ++i) {
      const std::string& loop = last->loops[i];
      out_loops_.push_back(loop);
      for (const Iter& iter : last->block->iters)
        if (last->loop_of(iter.var) == loop)
          out_extents_.push_back(as_int(iter.extent).value_or(0));
    }
    if (out_extents_.size() != 5) return false;
    sizes_.points = extent_of(*sum, "x");
    sizes_.m = extent_of(*half, "i");
    sizes_.channels = extent_of(*sum, "co") * extent_of(*sum, "ci");
    sizes_.blocks = extent_of(*sum, "ko");
    sizes_.filters = sizes_.blocks * extent_of(*sum, "ki");
    sizes_.tiles = extent_of(*sum, "t");
    sizes_.columns = (out_extents_[3] + sizes_.m - 1) / sizes_.m;
    sizes_.rows = sizes_.tiles / std::max<int64_t>(sizes_.columns, 1);
    return sizes_.m > 0 && sizes_.rows * sizes_.columns == sizes_.tiles;
  }

  struct Tile {
    int64_t rows = 1, columns = 1;
    double rate = 0;  ///< part of the peak
  };

  /// The register tile for groups of `tiles`: accumulators, a row of weights and one broadcast fit
  /// the registers.
  Tile best_tile(int64_t tiles) const {
    Tile best;
    for (int64_t columns = 1; columns <= std::min<int64_t>(4, sizes_.blocks); ++columns) {
      if (sizes_.blocks % columns != 0) continue;
      for (int64_t rows = 1; rows <= tiles; ++rows) {
        if ((rows + 1) * columns + 1 > target_.vector_registers) break;
        const auto useful = static_cast<double>(rows * columns);
        const int64_t padded = (tiles + rows - 1) / rows * rows;
        // An edge runs at the price of a full tile; small tiles pay more for loop control.
        const double rate =
            static_cast<double>(tiles) / static_cast<double>(padded) * useful / (useful + 1);
        if (rate > best.rate + 1e-9) best = {rows, columns, rate};
      }
    }
    return best;
  }

  /// Predicted time with strips of `strip` rows of tiles; units: vector multiply-adds.
  double time_of(int64_t strip) const {
    const auto points = static_cast<double>(sizes_.points * sizes_.points);
    const auto channels = static_cast<double>(sizes_.channels);
    const auto filters = static_cast<double>(sizes_.filters);
    const auto l2 = static_cast<double>(target_.l2_bytes);
    const auto tiles = static_cast<double>(sizes_.tiles);
    const double products = points * channels * filters / target_.lanes(32) * tiles /
                            best_tile(strip * sizes_.columns).rate;
    const double weights = points * channels * filters * 4;
    const double strips = static_cast<double>(sizes_.rows) / static_cast<double>(strip);
    double weight_time = 0;
    if (weights > l2 / 2)
      weight_time = strips * weights /
                    (weights > static_cast<double>(target_.l3_bytes) / 2 ? kBytesFromDram : kBytesFromL3);
    const double staged = points * (channels + filters) * tiles * 4;
    const double strip_bytes = staged / strips;
    const auto l3 = static_cast<double>(target_.l3_bytes);
    const double rate = strip_bytes <= 0.75 * l2 ? kBytesFromL2
                        : strip_bytes <= l3 / 4  ? kBytesFromL3
                                                 : kBytesFromDram;
    const double staged_time = 2 * staged / rate;
    return std::max(products, weight_time) + staged_time;
  }

  /// Strips divide the rows of tiles. With too few rows for the threads the filters are divided
  /// instead, and the input is transformed as a whole.
  void choose() {
    by_filters_ = threads_ > 1 && sizes_.rows < 2 * threads_;
    strip_ = by_filters_ ? sizes_.rows : 1;
    for (int64_t rows = 2; rows <= sizes_.rows && !by_filters_; ++rows)
      if (sizes_.rows % rows == 0 && sizes_.rows / rows >= threads_ &&
          time_of(rows) < 0.98 * time_of(strip_))
        strip_ = rows;
    tile_ = best_tile(strip_ * sizes_.columns);
  }

  bool split_output() {
    const std::string n = out_loops_[0], ko = out_loops_[1], h = out_loops_[2], w = out_loops_[3],
                      ki = out_loops_[4];
    if (!attempt(schedule::Split{h, strip_ * sizes_.m})) return false;
    if (!attempt(schedule::Split{h + ".i", sizes_.m})) return false;
    if (!attempt(schedule::Split{w, sizes_.m})) return false;
    tile_loop_ = w + ".o";
    schedule::Names order = {n, h + ".o", ko, h + ".i.o", tile_loop_, h + ".i.i", w + ".i", ki};
    strip_loop_ = h + ".o";
    if (by_filters_) {
      if (!attempt(schedule::Split{ko, tile_.columns})) return false;
      order = {n, ko + ".o", h + ".o", ko + ".i", h + ".i.o", tile_loop_, h + ".i.i", w + ".i", ki};
    }
    inner_ = {h + ".i.i", w + ".i", ki};
    return attempt(schedule::Reorder{order});
  }

  bool place_products() {
    if (!attempt(schedule::CacheWrite{kSum, kAcc, ""})) return false;
    if (!attempt(schedule::ComputeAt{kBack, strip_loop_})) return false;
    const std::string b = kBack;
    std::string t = b + ".t", ko = b + ".ko";
    schedule::Names order = {b + ".x", b + ".y"};
    const bool split_columns = !by_filters_ && tile_.columns > 1;
    if (split_columns) {
      if (!attempt(schedule::Split{ko, tile_.columns})) return false;
      order.push_back(ko + ".o");
    } else if (!by_filters_) {
      order.push_back(ko);
    }
    if (!attempt(schedule::Split{t, tile_.rows})) return false;
    order.push_back(t + ".o");
    order.push_back(t + ".i");
    if (split_columns) order.push_back(ko + ".i");
    if (by_filters_) order.push_back(ko);
    order.push_back(b + ".ki");
    if (!attempt(schedule::Reorder{order})) return false;
    const std::string anchor = t + ".o";
    if (!attempt(schedule::ComputeAt{kSum, anchor})) return false;
    const std::string s = kSum;
    schedule::Names sum = {s + ".co", s + ".ci", s + ".t"};
    if (tile_.columns > 1) sum.push_back(s + ".ko");
    sum.push_back(s + ".ki");
    if (!attempt(schedule::Reorder{sum})) return false;
    if (!attempt(schedule::SetScope{kAcc, "local"})) return false;
    for (const std::string& loop : {s + ".t", s + ".ko", s + ".init.t", s + ".init.ko", t + ".i",
                                    split_columns ? ko + ".i" : ko})
      if (loop != ko || by_filters_) attempt(schedule::Unroll{loop});
    return vectorize(s + ".ki") && vectorize(s + ".init.ki") && vectorize(b + ".ki");
  }

  bool vectorize(const std::string& loop) { return attempt(schedule::Vectorize{loop}); }

  bool place_inverse() {
    const std::string h = kHalf;
    if (!attempt(schedule::ComputeAt{h, tile_loop_})) return false;
    attempt(schedule::Reorder{{h + ".y", h + ".i"}});
    attempt(schedule::Unroll{h + ".i"});
    return vectorize(h + ".ki");
  }

  bool place_transform() {
    const std::string v = kIn, r = kRows;
    if (!by_filters_ && !attempt(schedule::ComputeAt{v, strip_loop_})) return false;
    if (!attempt(schedule::Reorder{{v + ".co", v + ".t", v + ".x", v + ".y", v + ".ci"}}))
      return false;
    if (!attempt(schedule::ComputeAt{r, v + ".t"})) return false;
    if (!attempt(schedule::Reorder{{r + ".b", r + ".x", r + ".ci"}})) return false;
    attempt(schedule::Unroll{r + ".x"});
    attempt(schedule::Unroll{v + ".y"});
    if (!vectorize(r + ".ci") || !vectorize(v + ".ci")) return false;
    if (by_filters_ && threads_ > 1) attempt(schedule::Parallel{v + ".co"});
    return true;
  }

  bool finish_output() {
    for (size_t i = 0; i + 1 < inner_.size(); ++i) attempt(schedule::Unroll{inner_[i]});
    if (!vectorize(inner_.back())) return false;
    // Cutting the last, smaller tile off leaves the others without guards.
    const int64_t tiles = strip_ * sizes_.columns;
    if (tiles % tile_.rows != 0 && tiles > tile_.rows)
      attempt(schedule::Cut{std::string(kBack) + ".t.o", {tiles / tile_.rows, 1}});
    if (threads_ > 1) {
      const std::string n = out_loops_[0];
      const std::string outer = by_filters_ ? out_loops_[1] + ".o" : strip_loop_;
      attempt(schedule::Fuse{n, outer}) && attempt(schedule::Parallel{n + "*" + outer});
    }
    return true;
  }

  Func func_;
  Trace trace_;
  const hw::CpuTarget& target_;
  int threads_;
  Sizes sizes_{};
  std::string strip_loop_, tile_loop_;
  std::vector<std::string> out_loops_, inner_;
  std::vector<int64_t> out_extents_;
  int64_t strip_ = 1;
  Tile tile_;
  bool by_filters_ = false;
};

}  // namespace

std::optional<schedule::Trace> winograd_trace(const Func& func, const hw::CpuTarget& target,
                                              int threads) {
  if (find_block(collect_blocks(func), kSum) == nullptr) return std::nullopt;
  return WinogradScheduler(func, target, threads).run();
}

}  // namespace tilewright::tune
