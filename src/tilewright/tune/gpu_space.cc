#include "tilewright/tune/gpu_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewright/base/integers.h"
#include "tilewright/cost/gpu_sum.h"
#include "tilewright/rules/common/work.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/tile_choice.h"

namespace tilewright::tune {
namespace {

search::Decision numbers(const std::string& name, const std::vector<int64_t>& values,
                         int parent = -1, std::vector<int> when = {}) {
  std::vector<search::DecisionValue> table;
  for (const int64_t v : values)
    table.push_back({std::to_string(v), {std::log2(static_cast<double>(v))}});
  search::Decision decision = search::ordered_decision(name, table);
  decision.parent = parent;
  decision.when = std::move(when);
  return decision;
}

search::Decision steps_decision(const std::string& name,
                                const std::vector<std::vector<int64_t>>& steps, int parent,
                                std::vector<int> when) {
  std::vector<std::string> texts;
  for (const auto& step : steps) texts.push_back(fmt::format("{}", fmt::join(step, "x")));
  search::Decision decision = search::choice_decision(name, texts);
  for (size_t i = 0; i < steps.size(); ++i)
    decision.values[i].features = {std::log2(static_cast<double>(product(steps[i])))};
  decision.parent = parent;
  decision.when = std::move(when);
  return decision;
}

/// The reduction that a space is about: the one with most work, as it is when the rules plan it.
struct Subject {
  std::string block;
  double work = -1;
  std::optional<rules::GpuTileTable> table;
  std::optional<rules::GpuReduction> shared;  ///< by rule
  bool tiled = false;                         ///< likewise
  std::vector<rules::GpuMma> products;        ///< its tiles on matrix instructions
  cost::GpuSum sum;
};

/// Tiles of warps, then those of groups of warps; floats are summed in an order of their own.
std::vector<rules::GpuMma> products_of(const rules::BlockFacts& block, const hw::GpuTarget& target,
                                       MathMode math) {
  const std::optional<rules::GpuMma> mma = rules::find_gpu_mma(block, target);
  if (!mma || (math == MathMode::Exact && is_float(block.store->buffer.dtype()))) return {};
  std::vector<rules::GpuMma> tiles = rules::mma_tiles(*mma, target);
  if (const std::optional<rules::GpuMma> groups = rules::in_groups(*mma, target))
    for (rules::GpuMma& tile : rules::mma_tiles(*groups, target)) tiles.push_back(std::move(tile));
  return tiles;
}

Subject find_subject(const Func& func, const hw::GpuTarget& target) {
  Subject subject;
  rules::gpu_trace(func, target, [&](const rules::BlockFacts& block, const hw::GpuTarget& t) {
    rules::GpuPlan plan = rules::plan_gpu(block, t);
    // The rules ask once more where they plan the same block in words.
    if (const double work = rules::operations_of(block);
        work > subject.work || block.name == subject.block) {
      subject = {block.name,
                 work,
                 rules::GpuTileTable::create(block, t),
                 plan.reduction,
                 plan.tile && !plan.mma,
                 products_of(block, t, func.math),
                 {}};
      for (const Iter& iter : block.block->iters)
        (iter.kind == IterKind::Space ? subject.sum.results : subject.sum.terms) *=
            std::max<int64_t>(block.extent_of(iter.var), 1);
      for (const Load& load : block.loads) {
        int64_t elements = 1;
        for (const Expr& extent : load.buffer.shape()) elements *= as_int(extent).value_or(1);
        subject.sum.bytes += static_cast<double>(storage_bytes(load.buffer.dtype(), elements));
        subject.sum.loads += 1;
      }
      subject.sum.dtype = block.store->buffer.dtype();
    }
    return plan;
  });
  return subject;
}

/// Common to both spaces: a point is a plan for one block.
class GpuSpace : public ScheduleSpace {
 public:
  GpuSpace(Func func, hw::GpuTarget target, Subject subject)
      : func_(std::move(func)), target_(std::move(target)), subject_(std::move(subject)) {}

  const search::Space& space() const override { return *space_; }

  Result<schedule::Trace> trace(const search::Point& point) const override {
    const rules::GpuPlan plan = plan_of(point);
    if (!std::isfinite(prior(point)))
      return fail(ErrorKind::NotApplicable, "no such block of threads on this device",
                  plan.tile ? to_string(*plan.tile) : "");
    bool as_planned = false;
    schedule::Trace trace = rules::gpu_trace(
        func_, target_,
        [&](const rules::BlockFacts& block, const hw::GpuTarget& target) {
          return block.name == subject_.block ? plan : rules::plan_gpu(block, target);
        },
        &as_planned);
    if (as_planned) return trace;
    return fail(ErrorKind::NotApplicable, "the plan does not apply to this kernel",
                plan.tile ? to_string(*plan.tile) : "");
  }

  double prior(const search::Point& point) const override {
    const rules::GpuPlan plan = plan_of(point);
    if (plan.mma) return rules::mma_time(*plan.mma, target_).value_or(search::kInvalid);
    if (plan.tile) {
      const auto time = subject_.table->predict(*plan.tile);
      return time ? time->total : search::kInvalid;
    }
    const int64_t threads = plan.reduction ? plan.reduction->threads : 1;
    const int64_t side = plan.reduction ? plan.reduction->side : 0;
    return cost::predict_gpu_sum(subject_.sum, threads, side, target_).value_or(search::kInvalid);
  }

  std::vector<double> terms(const search::Point& point) const override {
    constexpr double kWhole = 16;  // value of a term that is all there is
    std::vector<double> all(7);
    const rules::GpuPlan plan = plan_of(point);
    if (plan.tile) {
      if (const auto time = subject_.table->predict(*plan.tile)) {
        const double whole = std::max(time->total, 1e-9) / kWhole;
        all = {time->compute / whole,
               time->shared / whole,
               time->l2 / whole,
               time->dram / whole,
               time->latency / whole,
               time->launch / whole,
               std::log2(static_cast<double>(time->resident * time->threads))};
      }
    }
    for (const double feature : space_->features(point)) all.push_back(feature);
    return all;
  }

 protected:
  virtual rules::GpuPlan plan_of(const search::Point& point) const = 0;
  void set_decisions(std::vector<search::Decision> decisions) {
    space_ = std::make_unique<search::Space>(std::move(decisions));
  }

  Func func_;
  hw::GpuTarget target_;
  Subject subject_;

 private:
  std::unique_ptr<search::Space> space_;
};

class ConstructiveGpuSpace final : public GpuSpace {
 public:
  ConstructiveGpuSpace(Func func, hw::GpuTarget target, Subject subject)
      : GpuSpace(std::move(func), std::move(target), std::move(subject)) {
    if (!subject_.products.empty()) forms_.push_back(Form::Matrix);
    if (subject_.table) forms_.push_back(Form::Tile);
    if (subject_.shared) forms_.push_back(Form::Shared);
    forms_.push_back(Form::Plain);
    std::vector<std::string> names;
    for (const Form form : forms_) names.emplace_back(kFormNames[static_cast<size_t>(form)]);
    std::vector<search::Decision> all = {search::choice_decision("form", names)};
    for (size_t i = 0; i < forms_.size(); ++i) {
      const std::vector<int> when = {static_cast<int>(i)};
      if (forms_[i] == Form::Matrix) add_matrix(all, when);
      if (forms_[i] == Form::Tile) add_tile(all, when);
      if (forms_[i] == Form::Shared) add_shared(all, when);
    }
    set_decisions(std::move(all));
  }

 private:
  enum class Form { Matrix, Tile, Shared, Plain };
  static constexpr const char* kFormNames[] = {"matrix", "tile", "shared_terms",
                                               "thread_per_result"};

  void add_matrix(std::vector<search::Decision>& all, const std::vector<int>& when) {
    first_matrix_ = all.size();
    std::vector<std::string> names;
    for (const rules::GpuMma& p : subject_.products)
      names.push_back(fmt::format("{}x{}/{}x{}{}", p.block_m, p.block_n, p.warp_m, p.warp_n,
                                  p.groups ? "x4" : ""));
    search::Decision tiles = search::choice_decision("matrix_tile", names);
    for (size_t i = 0; i < names.size(); ++i) {
      const rules::GpuMma& p = subject_.products[i];
      tiles.values[i].features = {std::log2(static_cast<double>(p.block_m)),
                                  std::log2(static_cast<double>(p.block_n)),
                                  std::log2(static_cast<double>(p.warps()))};
    }
    tiles.parent = 0, tiles.when = when;
    all.push_back(std::move(tiles));
    parts_ = subject_.products[0].split_choices();
    all.push_back(numbers("matrix_depth", kDepths, 0, when));
    all.push_back(numbers("matrix_parts", parts_, 0, when));
    all.push_back(numbers("matrix_turns", kTurns, 0, when));
  }

  rules::GpuMma product(const search::Point& point) const {
    const auto value = [&](size_t decision) {
      return static_cast<size_t>(point.at(first_matrix_ + decision));
    };
    rules::GpuMma mma = subject_.products[value(0)];
    mma.splits = parts_[value(2)];
    mma.depth = std::min(kDepths[value(1)], mma.rounds());
    mma.turns = std::min(kTurns[value(3)], ceil_div(mma.extent_n, mma.block_n));
    return mma;
  }

  void add_tile(std::vector<search::Decision>& all, const std::vector<int>& when) {
    const rules::GpuTileTable& table = *subject_.table;
    first_tile_ = all.size();
    threads_ = table.threads(), each_ = table.each();
    all.push_back(numbers("threads_a", threads_, 0, when));
    all.push_back(numbers("each_a", each_, 0, when));
    all.push_back(numbers("threads_b", threads_, 0, when));
    all.push_back(numbers("each_b", each_, 0, when));
    all.push_back(steps_decision("steps", table.steps(), 0, when));
    all.push_back(numbers("depth", table.depths(), 0, when));
    all.push_back(numbers("parts", table.splits(), 0, when));
  }

  void add_shared(std::vector<search::Decision>& all, const std::vector<int>& when) {
    first_shared_ = all.size();
    for (int64_t t = 2; t <= std::min<int64_t>(target_.max_threads, 512); t *= 2)
      sharing_.push_back(t);
    all.push_back(numbers("threads", sharing_, 0, when));
    all.push_back(numbers("side", kSides, 0, when));
  }

  rules::GpuPlan plan_of(const search::Point& point) const override {
    rules::GpuPlan plan;
    plan.rows = false;
    const auto value = [&](size_t decision) { return static_cast<size_t>(point.at(decision)); };
    const Form form = forms_.at(value(0));
    if (form == Form::Matrix) {
      plan.mma = product(point);
    } else if (form == Form::Tile) {
      const size_t at = first_tile_;
      const rules::GpuTileTable& table = *subject_.table;
      rules::GpuTilePoint numbers{threads_[value(at)], each_[value(at + 1)],
                                  threads_[value(at + 2)], each_[value(at + 3)]};
      numbers.steps = value(at + 4);
      numbers.depth = table.depths()[value(at + 5)];
      numbers.splits = table.splits()[value(at + 6)];
      plan.tile = table.tile(numbers);
    } else if (form == Form::Shared) {
      plan.reduction = subject_.shared;
      plan.reduction->threads = sharing_[value(first_shared_)];
      plan.reduction->side = kSides[value(first_shared_ + 1)];
    }
    return plan;
  }

  static inline const std::vector<int64_t> kSides = {1, 2, 4, 8, 16, 32};
  static inline const std::vector<int64_t> kDepths = {1, 2, 3, 4, 6};
  static inline const std::vector<int64_t> kTurns = {1, 2, 4};
  std::vector<Form> forms_;
  size_t first_matrix_ = 0, first_tile_ = 0, first_shared_ = 0;
  std::vector<int64_t> threads_, each_, sharing_, parts_;
};

class TilingGpuSpace final : public GpuSpace {
 public:
  TilingGpuSpace(Func func, hw::GpuTarget target, Subject subject)
      : GpuSpace(std::move(func), std::move(target), std::move(subject)),
        loops_(subject_.table->tile({})) {
    std::vector<search::Decision> all;
    for (const rules::GpuAxis& axis : loops_.axes) {
      threads_.push_back(powers_up_to(axis.extent));
      each_.push_back(up_to(axis.extent));
      all.push_back(numbers("threads." + axis.loop, threads_.back()));
      all.push_back(numbers("each." + axis.loop, each_.back()));
    }
    for (size_t i = 0; i < loops_.reduces.size(); ++i) {
      steps_.push_back(divisors(loops_.extents[i]));
      all.push_back(numbers("steps." + loops_.reduces[i], steps_.back()));
    }
    set_decisions(std::move(all));
  }

 private:
  static std::vector<int64_t> powers_up_to(int64_t extent) {
    std::vector<int64_t> values = {1};
    while (values.back() < extent && values.back() < 64) values.push_back(2 * values.back());
    return values;
  }
  static std::vector<int64_t> up_to(int64_t extent) {
    std::vector<int64_t> values;
    for (int64_t e = 1; e <= std::min<int64_t>(extent, 8); ++e) values.push_back(e);
    return values;
  }

  rules::GpuPlan plan_of(const search::Point& point) const override {
    rules::GpuTile tile = loops_;
    size_t at = 0;
    for (size_t i = 0; i < tile.axes.size(); ++i) {
      tile.axes[i].threads = threads_[i][static_cast<size_t>(point.at(at++))];
      tile.axes[i].each = each_[i][static_cast<size_t>(point.at(at++))];
    }
    for (size_t i = 0; i < tile.steps.size(); ++i)
      tile.steps[i] = steps_[i][static_cast<size_t>(point.at(at++))];
    rules::GpuPlan plan;
    plan.tile = std::move(tile);
    return plan;
  }

  const rules::GpuTile loops_;
  std::vector<std::vector<int64_t>> threads_, each_, steps_;
};

}  // namespace

std::unique_ptr<ScheduleSpace> constructive_gpu_space(const Func& func,
                                                      const hw::GpuTarget& target) {
  Subject subject = find_subject(func, target);
  if (subject.work < 0) return nullptr;
  return std::make_unique<ConstructiveGpuSpace>(func, target, std::move(subject));
}

std::unique_ptr<ScheduleSpace> tiling_gpu_space(const Func& func, const hw::GpuTarget& target) {
  Subject subject = find_subject(func, target);
  if (!subject.table) return nullptr;
  return std::make_unique<TilingGpuSpace>(func, target, std::move(subject));
}

std::optional<GpuDecision> gpu_decision(const Func& func, const hw::GpuTarget& target) {
  const Subject subject = find_subject(func, target);
  if (!subject.tiled) return std::nullopt;
  GpuDecision decision;
  std::vector<rules::GpuTileTable::Choice> best = subject.table->best(2, &decision.candidates);
  if (best.empty()) return std::nullopt;
  decision.chosen = std::move(best[0]);
  if (best.size() > 1) decision.runner_up = std::move(best[1]);
  return decision;
}

}  // namespace tilewright::tune
