#include "tilewright/rules/cpu/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tilewright/base/integers.h"
#include "tilewright/cost/winograd.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/cpu/conv_algorithm.h"
#include "tilewright/tensor/winograd.h"

namespace tilewright::rules {
namespace {

using schedule::Step;
using schedule::Trace;

// Names the operator gives its tensors.
constexpr const char* kPixels = kWinogradPixels;
constexpr const char* kRows = "wino_rows";  // B^T d, for one side
constexpr const char* kIn = "wino_in";      // B^T d B
constexpr const char* kSum = "wino_sum";    // products, summed over channels
constexpr const char* kHalf = "wino_half";  // A^T m, for one side
constexpr const char* kAcc = "wino_acc";    // the sums of one register tile
constexpr const char* kBack = "wino_sum.wb";

/// How far ahead of their use weights and tiles of the input are asked for.
constexpr int64_t kWeightsAhead = 8 << 10, kTilesAhead = 4;

int64_t extent_of(const BlockFacts& block, const std::string& axis) {
  for (const Iter& iter : block.block->iters)
    if (iter.var.name() == axis) return as_int(iter.extent).value_or(0);
  return 0;
}

class WinogradScheduler {
 public:
  WinogradScheduler(Func func, const hw::CpuTarget& target, int threads)
      : func_(std::move(func)), target_(target), threads_(threads) {}

  Answer<cost::WinogradShape> shape() {
    if (!inline_rest())
      return decline("a block between the convolution and the output is not element-wise");
    if (Answer<Done> read = read_shape(); !read) return decline("{}", read.error());
    return shape_;
  }

  Answer<Trace> run(const cost::WinogradPlan* plan) {
    if (Answer<cost::WinogradShape> found = shape(); !found) return decline("{}", found.error());
    plan_ = plan != nullptr ? *plan : cost::plan_winograd(shape_, target_, threads_);
    const bool done = split_output() && place_inverse() && place_products() && place_transform() &&
                      finish_output();
    if (!done) return decline("a step that places its transforms does not apply to these loops");
    return std::move(trace_);
  }

  /// requires: `run` found a schedule.
  cost::RuleDecision decision() const {
    cost::RuleDecision decision;
    decision.chosen = {
        form(shape_.m),
        fmt::format("{}x{} vectors, strips of {} tiles, {} filter blocks", plan_.tile_rows,
                    plan_.tile_columns, cost::describe(plan_.strip), plan_.group),
        plan_.time};
    const tensor::Conv2dShape conv{shape_.batch, shape_.channels, shape_.filters, shape_.height,
                                   shape_.width, shape_.taps_h,   shape_.taps_w};
    decision.candidates = 1;
    std::vector<int64_t> forms = winograd_tiles(conv);
    forms.push_back(0);
    for (const int64_t m : forms) {
      if (m == shape_.m) continue;
      ++decision.candidates;
      const cost::Prediction time = predict_conv(conv, m, target_, threads_);
      if (decision.runner_up.algorithm.empty() || time.total() < decision.runner_up.time.total())
        decision.runner_up = {form(m), "", time};
    }
    return decision;
  }

 private:
  std::string form(int64_t m) const {
    if (m == 0) return "direct";
    return fmt::format("winograd F({}x{})", shape_.taps_h == 1 ? 1 : m, shape_.taps_w == 1 ? 1 : m);
  }

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
        const bool fixed = block.name == kPixels || block.name == kRows || block.name == kIn ||
                           block.name == kHalf;
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

  Answer<Done> read_shape() {
    const std::vector<BlockFacts> blocks = collect_blocks(func_);
    const BlockFacts* sum = find_block(blocks, kSum);
    const BlockFacts* half = find_block(blocks, kHalf);
    const BlockFacts* input = find_block(blocks, kIn);
    if (sum == nullptr || half == nullptr || input == nullptr)
      return decline("its transforms are not blocks of the kernel");
    const BlockFacts* last = nullptr;
    for (const BlockFacts& block : blocks)
      if (block.store != nullptr && is_output(func_, block.store->buffer)) {
        if (last != nullptr) return decline("the kernel has several outputs");
        last = &block;
      }
    const size_t axes = last == nullptr ? 0 : last->loops.size();
    if (axes != 5)
      return decline("the output has {} axes, not images, channel blocks, rows, columns, lanes",
                     axes);
    for (size_t i = 0; i < 5; ++i) {
      const std::string& loop = last->loops[i];
      out_loops_.push_back(loop);
      for (const Iter& iter : last->block->iters)
        if (last->loop_of(iter.var) == loop)
          out_extents_.push_back(as_int(iter.extent).value_or(0));
    }
    if (out_extents_.size() != 5) return decline("a loop over the output runs no axis of it");
    shape_ = {out_extents_[0],
              extent_of(*sum, "co") * extent_of(*sum, "ci"),
              out_extents_[1] * out_extents_[4],
              out_extents_[2],
              out_extents_[3],
              extent_of(*half, "i")};
    if (shape_.m <= 0) return decline("the size of its tiles is not constant");
    const auto taps = [&](const char* axis) {
      const int64_t points = extent_of(*sum, axis);
      return points == 1 ? 1 : points - shape_.m + 1;
    };
    shape_.taps_h = taps("x"), shape_.taps_w = taps("y");
    const std::optional<Product> product = product_of(*sum);
    if (!product) return decline("block `{}` is no sum of products", kSum);
    const Load& weights = product->a.buffer == input->store->buffer ? product->b : product->a;
    shape_.shared = !mentions(weights, sum->block->iters[0].var);
    const int64_t columns = tensor::winograd_columns(shape_.height, shape_.width, shape_.tile_w());
    if (columns * shape_.tile_w() >= shape_.width + shape_.tile_w())
      shape_.width = columns * shape_.tile_w();
    if (out_extents_[4] != target_.lanes(32))
      return decline("the output's channels come in blocks of {}, a vector has {} lanes",
                     out_extents_[4], target_.lanes(32));
    if (ceil_div(shape_.height, shape_.tile_h()) * columns != extent_of(*sum, "t") ||
        shape_.channels <= 0 || shape_.filters <= 0)
      return decline("its tiles do not cover the output of {} x {} pixels", shape_.height,
                     shape_.width);
    return Done{};
  }

  /// Strips, groups of filters in a strip, tiles, pixels of a tile.
  bool split_output() {
    const std::string n = out_loops_[0], ko = out_loops_[1], h = out_loops_[2], w = out_loops_[3],
                      ki = out_loops_[4];
    const int64_t mh = shape_.tile_h(), mw = shape_.tile_w();
    if (!attempt(schedule::Split{h, plan_.strip.rows * mh}) ||
        !attempt(schedule::Split{h + ".i", mh}) ||
        !attempt(schedule::Split{w, plan_.strip.columns * mw}) ||
        !attempt(schedule::Split{w + ".i", mw}) || !attempt(schedule::Split{ko, plan_.group}))
      return false;
    if (several_images() && !attempt(schedule::Split{n, plan_.strip.images})) return false;
    image_loop_ = several_images() ? n + ".o" : n;
    std::vector<std::string> order = {image_loop_, h + ".o", w + ".o", ko + ".o"};
    strip_loop_ = input_loop_ = w + ".o";
    group_loop_ = ko + ".o";
    const int64_t groups = out_extents_[1] / plan_.group;
    if (plan_.by_filters && groups % threads_ == 0) {
      if (!attempt(schedule::Split{group_loop_, groups / threads_})) return false;
      input_loop_ = order.back() = ko + ".o.o";
      group_loop_ = ko + ".o.i";
      order.push_back(group_loop_);
    }
    tile_loop_ = w + ".i.o";
    inner_ = {h + ".i.i", w + ".i.i", ki};
    if (several_images()) order.push_back(n + ".i");
    order.insert(order.end(), {ko + ".i", h + ".i.o", w + ".i.o"});
    order.insert(order.end(), inner_.begin(), inner_.end());
    return attempt(schedule::Reorder{order});
  }

  bool place_products() {
    if (!attempt(schedule::CacheWrite{kSum, kAcc, ""})) return false;
    if (!attempt(schedule::ComputeAt{kBack, group_loop_})) return false;
    const std::string b = kBack, t = b + ".t", ko = b + ".ko", s = kSum;
    const int64_t lanes = target_.lanes(32);
    // Images lie inside points and filters: they share what L2 holds of the weights.
    std::vector<std::string> order = {b + ".x", b + ".y", ko + ".o"};
    if (several_images()) order.push_back(b + ".n");
    order.insert(order.end(), {t + ".o", t + ".i", ko + ".i", b + ".ki"});
    if (!attempt(schedule::Split{ko, plan_.tile_columns}) ||
        !attempt(schedule::Split{t, plan_.tile_rows}) || !attempt(schedule::Reorder{order}) ||
        !attempt(schedule::ComputeAt{kSum, t + ".o"}) ||
        !attempt(schedule::Reorder{{s + ".co", s + ".ci", s + ".t", s + ".ko", s + ".ki"}}) ||
        !attempt(schedule::SetScope{kAcc, "local"}))
      return false;
    for (const std::string& loop :
         {s + ".t", s + ".ko", s + ".init.t", s + ".init.ko", t + ".i", ko + ".i"})
      attempt(schedule::Unroll{loop});
    if (shape_.points_h() * shape_.points_w() * shape_.channels * shape_.filters * 4 >
        target_.l2_bytes / 2)
      prefetch(s + ".co", kWeightsAhead / (lanes * lanes * 4));
    return vectorize(s + ".ki") && vectorize(s + ".init.ki") && vectorize(b + ".ki");
  }

  /// Whether each worker transforms the input it needs, around its groups.
  bool transforms_alone() const { return input_loop_ != strip_loop_; }

  bool several_images() const { return plan_.strip.images > 1; }

  bool one_sided() const { return shape_.taps_h == 1 || shape_.taps_w == 1; }

  bool vectorize(const std::string& loop) { return attempt(schedule::Vectorize{loop}); }

  void prefetch(const std::string& loop, int64_t iterations) {
    attempt(schedule::SetMark{loop, "prefetch", std::to_string(std::max<int64_t>(iterations, 1))});
  }

  bool place_inverse() {
    const std::string h = kHalf;
    if (!attempt(schedule::ComputeAt{h, tile_loop_})) return false;
    attempt(schedule::Reorder{{h + ".y", h + ".i"}});
    attempt(schedule::Unroll{h + ".i"});
    // The inverse for one side is the whole: what it finishes need not wait in memory.
    if (one_sided()) {
      attempt(schedule::Unroll{h + ".y"});
      attempt(schedule::SetScope{h, "local"});
    }
    return vectorize(h + ".ki");
  }

  bool place_transform() {
    const std::string v = kIn, r = kRows;
    if (!attempt(schedule::ComputeAt{v, input_loop_})) return false;
    std::vector<std::string> order = {v + ".co"};
    if (several_images()) order.push_back(v + ".n");
    order.insert(order.end(), {v + ".t", v + ".x", v + ".y", v + ".ci"});
    if (!attempt(schedule::Reorder{order})) return false;
    const std::string p = kPixels;
    if (!one_sided() && (!attempt(schedule::ComputeAt{r, v + ".t"}) ||
                         !attempt(schedule::Reorder{{r + ".b", r + ".x", r + ".ci"}})))
      return false;
    if (!attempt(schedule::ComputeAt{p, one_sided() ? v + ".t" : r + ".b"}) ||
        !attempt(schedule::SetScope{p, "local"}))
      return false;
    const std::vector<std::string> whole = {p + ".a", p + ".b", v + ".x", v + ".y"};
    const std::vector<std::string> halves = {p + ".a", r + ".x", v + ".y"};
    for (const std::string& loop : one_sided() ? whole : halves) attempt(schedule::Unroll{loop});
    prefetch(v + ".t", kTilesAhead);
    if (!vectorize(p + ".ci") || !vectorize(v + ".ci")) return false;
    if (!one_sided() && !vectorize(r + ".ci")) return false;
    if (plan_.by_filters && !transforms_alone()) attempt(schedule::Parallel{v + ".co"});
    return true;
  }

  bool finish_output() {
    for (size_t i = 0; i + 1 < inner_.size(); ++i) attempt(schedule::Unroll{inner_[i]});
    if (!vectorize(inner_.back())) return false;
    // Cutting the last, smaller tile off leaves the others without guards.
    const int64_t tiles = plan_.strip.rows * plan_.strip.columns;
    if (tiles % plan_.tile_rows != 0 && tiles > plan_.tile_rows)
      attempt(schedule::Cut{std::string(kBack) + ".t.o", {tiles / plan_.tile_rows, 1}});
    if (threads_ < 2) return true;
    if (plan_.by_filters)
      return attempt(schedule::Parallel{transforms_alone() ? input_loop_ : group_loop_});
    const std::string n = image_loop_, rows = out_loops_[2] + ".o";
    return attempt(schedule::Fuse{n, rows}) &&
           attempt(schedule::Fuse{n + "*" + rows, strip_loop_}) &&
           attempt(schedule::Parallel{n + "*" + rows + "*" + strip_loop_});
  }

  Func func_;
  Trace trace_;
  const hw::CpuTarget& target_;
  int threads_;
  cost::WinogradShape shape_;
  cost::WinogradPlan plan_;
  std::string image_loop_, strip_loop_, input_loop_, group_loop_, tile_loop_;
  std::vector<std::string> out_loops_, inner_;
  std::vector<int64_t> out_extents_;
};

}  // namespace

Answer<schedule::Trace> winograd_trace(const Func& func, const hw::CpuTarget& target, int threads,
                                       cost::RuleDecision* why, const cost::WinogradPlan* plan) {
  if (find_block(collect_blocks(func), kSum) == nullptr)
    return decline("no block holds the products of a Winograd convolution");
  WinogradScheduler scheduler(func, target, threads);
  Answer<schedule::Trace> trace = scheduler.run(plan);
  if (trace && why != nullptr) *why = scheduler.decision();
  return trace;
}

std::optional<cost::WinogradShape> winograd_shape(const Func& func, const hw::CpuTarget& target) {
  if (find_block(collect_blocks(func), kSum) == nullptr) return std::nullopt;
  const Answer<cost::WinogradShape> shape = WinogradScheduler(func, target, 1).shape();
  return shape ? std::optional(*shape) : std::nullopt;
}

}  // namespace tilewright::rules
