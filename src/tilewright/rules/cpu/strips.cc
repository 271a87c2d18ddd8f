#include "tilewright/rules/cpu/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/cost/prediction.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/rules/cpu/strip_steps.h"
#include "tilewright/rules/cpu/tile.h"

namespace tilewright::rules {
namespace {

/// Share of the peak that register tiles reach, by their columns of vectors; windows of one channel
/// each load an operand per product.
constexpr double kOneColumn = 0.88, kStripColumns = 0.97, kWindow = 0.8;

/// What is kept takes one part in this many of L2: weights and streams pass through it too.
constexpr double kShare = 1.6;

/// Writing one line of what the next kernel reads: the memory was used before, by other workers
/// too. What a worker keeps to itself costs nothing of that kind.
/// source: depthwise layers of MobileNet-v2 on two cores of a Zen 4, 6-10 ns beyond their own time.
constexpr double kHandedLineNs = 7;

int64_t bytes_of(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer.shape()) count *= as_int(extent).value_or(0);
  return storage_bytes(buffer.dtype(), count);
}

/// The only block that reads what `block` writes, besides itself; null if there are none or more.
const BlockFacts* only_reader(const std::vector<BlockFacts>& blocks, const BlockFacts& block) {
  const BlockFacts* found = nullptr;
  for (const BlockFacts* reader : readers(blocks, block.store->buffer)) {
    if (reader->name == block.name) continue;
    if (found != nullptr) return nullptr;
    found = reader;
  }
  return found;
}

/// A contraction of the chain with the block that finishes its values.
struct Link {
  const BlockFacts* sum = nullptr;
  const BlockFacts* finish = nullptr;
};

/// All contractions of `func` if each feeds the next and the last one ends in the only output.
Answer<std::vector<Link>> chain_of(const Func& func, const std::vector<BlockFacts>& blocks) {
  std::vector<Link> links;
  for (const BlockFacts& block : blocks) {
    if (block.kind == BlockFacts::Kind::Other)
      return decline("block `{}` is neither element-wise nor a sum", block.name);
    if (block.kind != BlockFacts::Kind::Reduce) continue;
    if (!product_of(block)) return decline("the sum `{}` is not one of products", block.name);
    if (block.store->indices.size() != 5)
      return decline("`{}` writes {} axes, not images, channel blocks, rows, columns, lanes",
                     block.name, block.store->indices.size());
    if (!links.empty() && only_reader(blocks, *links.back().finish) != &block)
      return decline("`{}` is not all that reads what `{}` has made", block.name,
                     links.back().sum->name);
    const BlockFacts* finish = only_reader(blocks, block);
    if (finish == nullptr || finish->kind != BlockFacts::Kind::Injective)
      return decline("no element-wise block alone finishes the sums of `{}`", block.name);
    links.push_back({&block, finish});
  }
  if (links.size() < 2 || links.size() > 3)
    return decline("a chain has two or three convolutions, the kernel has {}", links.size());
  if (!is_output(func, links.back().finish->store->buffer))
    return decline("the last convolution does not end in the output");
  return links;
}

/// Extent of axis `axis` of what a block writes.
int64_t axis(const BlockFacts& block, size_t at) {
  return as_int(block.store->buffer.shape()[at]).value_or(0);
}
class StripPlanner {
 public:
  StripPlanner(const hw::CpuTarget& target, int threads)
      : target_(target), threads_(std::max(threads, 1)) {}

  Answer<StripPlan> run(const std::vector<Link>& links) {
    size_t depthwise = links.size();
    for (size_t i = 0; i < links.size(); ++i)
      if (channel_wise(*links[i].sum)) {
        if (depthwise < links.size()) return decline("two of the convolutions are depthwise");
        depthwise = i;
      }
    if (depthwise == links.size()) return decline("none of the convolutions is depthwise");
    if (depthwise > 1) return decline("the depthwise convolution is the third, not in the middle");
    StripPlan plan;
    for (const Link& link : links) plan.sums.push_back(link.sum->name);
    plan.depthwise = links[depthwise].sum->name;
    const bool projects = depthwise + 1 < links.size(), expands = depthwise == 1;
    const BlockFacts& wise = *links[depthwise].sum;
    const BlockFacts& last = *links.back().sum;
    for (int64_t rows : row_choices(projects ? axis(last, kRowAxis) : 0))
      for (int64_t columns : {1, 2, 3, 4, 6}) {
        if (axis(wise, kBlockAxis) % columns != 0 || (!expands && columns > 1)) continue;
        const double time = fused_time(links, depthwise, rows, columns);
        if (!std::isfinite(time) || (plan.fused > 0 && time >= plan.fused)) continue;
        plan.fused = time, plan.rows = rows, plan.columns = columns;
      }
    if (plan.fused <= 0) return decline("no strip of what they hand on fits L2");
    for (const Link& link : links) plan.apart += apart_time(link);
    return plan;
  }

 private:
  /// Divisors, the largest first, since a strip has no ragged end; 0 without strips.
  static std::vector<int64_t> row_choices(int64_t extent) {
    if (extent == 0) return {extent};
    std::vector<int64_t> rows;
    for (int64_t r = extent; r >= 1; --r)
      if (extent % r == 0) rows.push_back(r);
    return rows;
  }

  /// Multiply-adds of one core. units: per ns.
  double rate() const { return target_.rates.f32 / 2; }

  /// Reading or writing `bytes` that lie where `footprint` bytes fit. units: ns, one core.
  double move(double bytes, double footprint) const {
    const hw::CpuRates& r = target_.rates;
    const auto cores = static_cast<double>(threads_);
    if (footprint <= static_cast<double>(target_.l2_bytes) / 2) return bytes / r.l2.one;
    const bool l3 = footprint <= static_cast<double>(target_.l3_bytes) / 2;
    return bytes * cores / std::min(l3 ? r.l3.all : r.dram.all, cores * (l3 ? r.l3 : r.dram).one);
  }

  double compute(const BlockFacts& sum, double columns) const {
    const double share = channel_wise(sum) ? kWindow : columns > 1 ? kStripColumns : kOneColumn;
    return static_cast<double>(sum.work()) / rate() / share;
  }

  /// Time of one contraction as a kernel of its own: its results and its operand pass through the
  /// caches that hold them. units: ns with all workers.
  double apart_time(const Link& link) const {
    const auto out = static_cast<double>(bytes_of(link.finish->store->buffer));
    const auto in = static_cast<double>(operand_bytes(*link.sum));
    const auto cores = static_cast<double>(threads_);
    // Workers mostly read what they wrote: their own caches count.
    const double moved = (move(out, (in + out) / cores) + move(in, (in + out) / cores)) / cores;
    const RowWindow window = row_window(*link.sum);
    return compute(*link.sum, 2) / cores + moved + handed(link) +
           shared(*link.sum, window.taps - window.step) + target_.rates.fork_join_ns;
  }

  /// Writing the result where other workers have read and written. units: ns with all workers.
  double handed(const Link& link) const {
    if (threads_ < 2) return 0;
    return static_cast<double>(bytes_of(link.finish->store->buffer)) / cost::kLineBytes *
           kHandedLineNs / static_cast<double>(threads_);
  }

  static int64_t operand_bytes(const BlockFacts& sum) { return bytes_of(image_of(sum).buffer); }

  /// Time that workers lose who share out rows, and read `rows` rows of the operand at each border
  /// between them that its makers then write again. units: ns with all workers.
  double shared(const BlockFacts& sum, int64_t rows) const {
    if (threads_ < 2 || rows <= 0) return 0;
    const Buffer in = image_of(sum).buffer;
    const double row = static_cast<double>(bytes_of(in)) /
                       static_cast<double>(as_int(in.shape()[kRowAxis]).value_or(1));
    return static_cast<double>(rows) / 2 * row / cost::kLineBytes * cost::kSharedLineNs;
  }

  /// A strip of each value of the chain.
  struct Strip {
    double strips = 1;                  ///< over all images
    int64_t made = 0;                   ///< rows of the depthwise result
    int64_t expanded = 0, overlap = 0;  ///< rows it reads; those that two strips read
  };

  static Strip strip_of(const std::vector<Link>& links, size_t depthwise, int64_t rows) {
    const BlockFacts &wise = *links[depthwise].sum, &last = *links.back().sum;
    const RowWindow window = row_window(wise);
    Strip strip;
    strip.strips = static_cast<double>(axis(last, kBatchAxis));
    if (depthwise + 1 == links.size()) return strip;
    const RowWindow behind = row_window(last);
    const int64_t of_image = axis(last, kRowAxis) / rows;  // no rest: see row_choices
    strip.strips *= static_cast<double>(of_image);
    strip.made = std::min(axis(wise, kRowAxis), behind.reach(rows));
    strip.expanded = window.reach(strip.made);
    strip.overlap = std::max<int64_t>(0, strip.expanded - rows * behind.step * window.step);
    return strip;
  }

  /// Time of one kernel; infinite if what it keeps does not fit.
  double fused_time(const std::vector<Link>& links, size_t depthwise, int64_t rows,
                    int64_t columns) const {
    const BlockFacts& wise = *links[depthwise].sum;
    const BlockFacts& last = *links.back().sum;
    const bool projects = depthwise + 1 < links.size(), expands = depthwise == 1;
    const auto blocks = static_cast<double>(axis(wise, kBlockAxis));
    const auto made = static_cast<double>(bytes_of(wise.store->buffer));
    const double batch = static_cast<double>(axis(last, kBatchAxis));
    const Strip strip = strip_of(links, depthwise, rows);
    // Pieces that workers share: strips of rows, or groups of channel blocks.
    const double pieces = projects ? strip.strips : batch * blocks / static_cast<double>(columns);
    const auto cores = static_cast<double>(threads_);
    double kept = projects ? made / batch * static_cast<double>(strip.made) /
                                 static_cast<double>(axis(wise, kRowAxis))
                           : 0;
    double time = 0, border = 0;
    if (expands) {
      const BlockFacts& first = *links[0].sum;
      const auto image = static_cast<double>(bytes_of(links[0].finish->store->buffer)) / batch;
      const auto height = static_cast<double>(axis(*links[0].finish, kRowAxis));
      const double part =
          projects ? std::min(1.0, static_cast<double>(strip.expanded) / height) : 1;
      // Rows that strips share are expanded in each of them.
      const double again =
          1 + static_cast<double>(strip.overlap) * (strip.strips / batch - 1) / height;
      const double tile = image / blocks * static_cast<double>(columns) * part;
      kept += tile;
      time += again * compute(first, static_cast<double>(columns));
      // Written once, read by the window: both from L2.
      time += 2 * again * move(image * batch, tile);
      const auto in = static_cast<double>(operand_bytes(first));
      const double passes = again * blocks / static_cast<double>(columns);
      time += move(in, in / cores) + (passes - 1) * move(in, in / strip.strips);
      if (projects) border = shared(first, strip.overlap);
    } else {
      const auto in = static_cast<double>(operand_bytes(wise));
      time += move(in, in / cores);
      if (projects) border = shared(wise, strip.overlap);
    }
    if (kept > static_cast<double>(target_.l2_bytes) / kShare) return INFINITY;
    time += compute(wise, 1);
    if (projects) time += compute(last, 2) + 2 * move(made, made / strip.strips);
    const auto out = static_cast<double>(bytes_of(links.back().finish->store->buffer));
    time += move(out, out / cores);
    border += handed(links.back());
    const double rounds = std::ceil(pieces / cores) / pieces;
    return time * std::max(rounds, 1 / cores) + border + target_.rates.fork_join_ns;
  }

  const hw::CpuTarget& target_;
  int threads_;
};

class StripRule {
 public:
  StripRule(Draft& draft, StripPlan plan, const hw::CpuTarget& target, int threads)
      : draft_(draft), plan_(std::move(plan)), target_(target), threads_(threads) {}

  bool run() {
    find_finishes();
    const std::string last = plan_.sums.back();
    std::string outer;
    if (plan_.rows > 0) {
      outer = split_axis(draft_, last, kRowAxis, plan_.rows);
      if (outer.empty() || !draft_.move_outward(last, outer)) return false;
      keep_down_to(draft_, last, outer);
      if (!tile_by_model(draft_, last, target_)) return false;
      if (!compute_inside(plan_.depthwise, outer)) return false;
    }
    const bool expands = plan_.sums.front() != plan_.depthwise;
    std::string group;
    if (expands) {
      group = split_axis(draft_, plan_.depthwise, kBlockAxis, plan_.columns);
      if (group.empty()) return false;
      keep_down_to(draft_, plan_.depthwise, group);
    }
    if (!tile_by_model(draft_, plan_.depthwise, target_)) return false;
    if (expands && !(compute_inside(plan_.sums.front(), group) &&
                     tile_by_model(draft_, plan_.sums.front(), target_)))
      return false;
    draft_.kept.clear();
    if (threads_ > 1) share_out(draft_, plan_.sums.front(), outer.empty() ? group : outer);
    return true;
  }

 private:
  /// Names stay while their blocks change.
  void find_finishes() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    for (const std::string& sum : plan_.sums)
      finish_.push_back(only_reader(blocks, *find_block(blocks, sum))->name);
  }

  bool compute_inside(const std::string& sum, const std::string& loop) {
    const auto at = std::find(plan_.sums.begin(), plan_.sums.end(), sum) - plan_.sums.begin();
    if (!draft_.attempt(schedule::ComputeAt{finish_[static_cast<size_t>(at)], loop}) ||
        !draft_.attempt(schedule::ComputeAt{sum, loop}))
      return false;
    keep_down_to(draft_, sum, loop);
    return true;
  }

  Draft& draft_;
  StripPlan plan_;
  const hw::CpuTarget& target_;
  int threads_;
  std::vector<std::string> finish_;  ///< the block behind each sum
};

}  // namespace

Answer<StripPlan> plan_strips(const Func& func, const hw::CpuTarget& target, int threads) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const Answer<std::vector<Link>> links = chain_of(func, blocks);
  if (!links) return decline("{}", links.error());
  return StripPlanner(target, threads).run(*links);
}

Answer<Done> schedule_strips(Draft& draft, const hw::CpuTarget& target, int threads) {
  const Answer<StripPlan> plan = plan_strips(draft.func(), target, threads);
  if (!plan) return decline("{}", plan.error());
  return all_or_nothing(draft, [&] { return StripRule(draft, *plan, target, threads).run(); });
}

}  // namespace tilewright::rules
