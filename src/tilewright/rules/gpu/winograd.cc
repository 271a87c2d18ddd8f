// Winograd on GPUs: when it pays, and the two kernels around its products.
//
// A tile of 2 x 2 or 4 x 4 outputs of a 3 x 3 window takes (m + 2)^2 products instead of 9 m^2, but
// three kernels that hand values on through memory; it is chosen if the sum of their predicted
// times is below that of the direct form by 15 %. In the first kernel a thread transforms a tile of
// pixels in registers, in the last it turns points back into pixels and computes what follows on
// them. The products between are matrix products, which other rules take.
#include "tilewright/rules/gpu/winograd.h"

#include <algorithm>

#include "tilewright/base/integers.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {
namespace {

/// Outputs of a tile along each axis. Larger ones have larger rounding errors.
constexpr int64_t kWinogradTiles[] = {2, 4};
constexpr int64_t kTaps = 3;
/// What products reach of the device's peak, direct ones and those between transforms.
constexpr double kReached = 0.6;
/// The direct form unless the other is faster by this factor.
constexpr double kWinogradMargin = 1.15;
constexpr int64_t kWinogradThreads = 128;
constexpr size_t kWinogradAxes = 3;
/// A thread with fewer registers cannot hold a tile of 6 x 6 before and after a transform.
constexpr int64_t kWinogradRegisters = 128;

double ns_of(double bytes, const hw::GpuTarget& target) {
  const bool cached = bytes <= static_cast<double>(target.l2_bytes) / 2;
  return bytes / (cached ? target.rates.l2 : target.rates.dram);
}

double direct_ns(const tensor::Conv2dShape& c, const hw::GpuTarget& target) {
  const auto outputs = static_cast<double>(c.batch * c.filters * c.height * c.width);
  const auto inputs = static_cast<double>(c.batch * c.channels * c.height * c.width);
  const auto weights = static_cast<double>(c.filters * c.channels * c.taps_h * c.taps_w);
  const double products =
      2 * outputs * static_cast<double>(c.channels * c.taps_h * c.taps_w) / target.rates.f32;
  return std::max(products / kReached, ns_of(4 * (inputs + outputs + weights), target)) +
         target.rates.launch_ns;
}

/// Three kernels, the second of them products: each point of a tile is a matrix product.
double winograd_ns(const tensor::Conv2dShape& c, int64_t m, const hw::GpuTarget& target) {
  const int64_t points = (m + kTaps - 1) * (m + kTaps - 1);
  const auto tiles = static_cast<double>(c.batch * ceil_div(c.height, m) * ceil_div(c.width, m));
  const auto pixels = static_cast<double>(c.batch * c.height * c.width);
  const auto n = static_cast<double>(points), inner = static_cast<double>(c.channels),
             outer = static_cast<double>(c.filters);
  const double before = 4 * (inner * pixels + n * inner * tiles);
  const double after = 4 * (outer * pixels + n * outer * tiles);
  const double between = 4 * n * (inner * tiles + inner * outer + outer * tiles);
  const double products = 2 * n * inner * outer * tiles / target.rates.f32 / kReached;
  return ns_of(before, target) + std::max(products, ns_of(between, target)) + ns_of(after, target) +
         3 * target.rates.launch_ns;
}

/// Threads of a block, at most `most`, for a loop: a divisor that is at least half of that, so that
/// no thread is left over, else parts of about equal length.
int64_t divided_among(int64_t extent, int64_t most) {
  if (extent <= most) return extent;
  for (int64_t threads = most; 2 * threads >= most; --threads)
    if (extent % threads == 0) return threads;
  return ceil_div(extent, ceil_div(extent, most));
}

class PlainWinogradScheduler {
 public:
  PlainWinogradScheduler(Draft& draft, const hw::GpuTarget& target)
      : draft_(draft), target_(target) {}

  Answer<std::vector<std::string>> run() {
    if (!has("wino_sum") || !has("wino_in"))
      return decline("no block holds the products of a Winograd convolution");
    const Draft::Mark start = draft_.mark();
    if (!before()) {
      draft_.revert(start);
      return decline("a step that gives each thread a tile to transform does not apply");
    }
    const Draft::Mark middle = draft_.mark();
    const std::vector<std::string> first = done_;
    if (!after()) {
      draft_.revert(middle);
      done_ = first;
    }
    return done_;
  }

 private:
  bool has(const std::string& block) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    return find_block(blocks, block) != nullptr;
  }
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  /// A thread reads the pixels of a tile, transforms them and writes all points.
  bool before() {
    const schedule::Names threads = {"wino_in.c", "wino_in.p"};
    return attempt(schedule::Reorder{{"wino_in.c", "wino_in.p", "wino_in.x", "wino_in.y"}}) &&
           inside("wino_rows", threads.back()) && inside("wino_pixels", threads.back()) &&
           unroll("wino_in", threads.back()) && bind("wino_in", threads);
  }

  /// A thread reads all points of a tile and writes its pixels, with what is computed on them.
  bool after() {
    std::string last = only_reader("wino_half");
    if (last.empty()) return false;
    for (std::string next = only_reader(last); !next.empty(); next = only_reader(last)) {
      if (!attempt(schedule::Inline{last})) return false;
      last = next;
    }
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, last);
    const int64_t m = as_int(find_block(blocks, "wino_half")->store->buffer.shape()[2]).value_or(0);
    if (facts == nullptr || facts->loops.size() != 4 || m < 1) return false;
    schedule::Names threads(facts->loops.begin(), facts->loops.begin() + 2), order, inner;
    for (size_t i = 2; i < 4; ++i) {
      const std::string loop = facts->loops[i];
      if (facts->extents[i] % m != 0 && facts->extents[i] < m) return false;
      if (!attempt(schedule::Split{loop, m})) return false;
      threads.push_back(loop + ".o");
      inner.push_back(loop + ".i");
    }
    order = threads;
    order.insert(order.end(), inner.begin(), inner.end());
    return attempt(schedule::Reorder{order}) && inside("wino_half", threads.back()) &&
           unroll(last, threads.back()) && bind(last, threads);
  }

  /// The one block that reads the result of `block`, if it is element-wise.
  std::string only_reader(const std::string& block) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    if (facts == nullptr || is_output(draft_.func(), facts->store->buffer)) return "";
    const auto reading = readers(blocks, facts->store->buffer);
    const bool one = reading.size() == 1 && reading[0]->kind == BlockFacts::Kind::Injective;
    return one ? reading[0]->name : "";
  }

  /// `block` is computed in `loop`, in registers.
  bool inside(const std::string& block, const std::string& loop) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const std::string buffer = find_block(blocks, block)->store->buffer.name();
    return attempt(schedule::ComputeAt{block, loop}) &&
           attempt(schedule::SetScope{buffer, "local"}) && unroll(block, loop);
  }

  bool unroll(const std::string& block, const std::string& loop) {
    for (const std::string& name : draft_.nest_inside(block, loop).names)
      if (!attempt(schedule::Unroll{name})) return false;
    return true;
  }

  /// Threads take the innermost of `loops`, a longer one in parts of about equal length; blocks
  /// take the rest.
  bool bind(const std::string& block, const schedule::Names& loops) {
    done_.push_back(block);
    const LoopNest nest = draft_.nest_of(block);
    int64_t left = std::min(kWinogradThreads, target_.max_threads);
    schedule::Names blocks, threads;
    for (size_t i = loops.size(); i-- > 0;) {
      const auto at = std::find(nest.names.begin(), nest.names.end(), loops[i]);
      if (at == nest.names.end()) return false;
      if (left < 2 || threads.size() == kWinogradAxes) {
        blocks.insert(blocks.begin(), loops[i]);
        continue;
      }
      const int64_t extent = nest.extents[static_cast<size_t>(at - nest.names.begin())];
      const int64_t each = divided_among(extent, left), parts = ceil_div(extent, each);
      if (parts > 1 && !attempt(schedule::Split{loops[i], each})) return false;
      if (parts > 1) blocks.insert(blocks.begin(), loops[i] + ".o");
      threads.insert(threads.begin(), parts > 1 ? loops[i] + ".i" : loops[i]);
      left /= each;
    }
    schedule::Names order = blocks;
    order.insert(order.end(), threads.begin(), threads.end());
    return (order.size() < 2 || attempt(schedule::Reorder{order})) &&
           bind_threads(draft_, threads) && bind_blocks(draft_, blocks);
  }

  Draft& draft_;
  const hw::GpuTarget& target_;
  std::vector<std::string> done_;
};

}  // namespace

int64_t gpu_winograd_tile(const tensor::Conv2dShape& conv, const hw::GpuTarget& target) {
  if (conv.taps_h != kTaps || conv.taps_w != kTaps || target.registers < kWinogradRegisters)
    return 0;
  int64_t best = 0;
  double best_ns = direct_ns(conv, target) / kWinogradMargin;
  for (const int64_t m : kWinogradTiles)
    if (const double ns = winograd_ns(conv, m, target); ns < best_ns) best_ns = ns, best = m;
  return best;
}

Answer<std::vector<std::string>> schedule_gpu_winograd(Draft& draft, const hw::GpuTarget& target) {
  return PlainWinogradScheduler(draft, target).run();
}

}  // namespace tilewright::rules
