// Levels of the main nest, outermost first (s: loops of the result, r: of the reduction):
//
//   s.0 fused, parallel | s.1 | s.2 | r.0 r.1 r.2 r.3 | s.3 unrolled, lanes last
//
// Where a factor of r.0 is not 1, r.0 stands outside s.2: then sums of s.2 x s.3 elements wait in
// memory between its iterations.
#include "tilewright/tune/tiling_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/check.h"
#include "tilewright/base/integers.h"
#include "tilewright/base/scanner.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/rules/cpu/nest_model.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/tune/sketch_space.h"
#include "tilewright/tune/tiling_plan.h"

namespace tilewright::tune {
namespace {

using schedule::Sketch;
using schedule::SketchDecision;
using schedule::Words;

constexpr int kLast = kTilingLevels - 1;
/// Vectors of a tile that are written out, and of its unrolled reduction steps.
constexpr int64_t kTileVectors = 32, kMostWrittenVectors = 256;

std::string q(const std::string& name) { return quote_name(name); }

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(q(name));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

class Writer {
 public:
  Writer(const TilingPlan& plan, bool paper, bool parallel)
      : plan_(plan),
        space_(plan.moving(false)),
        reduce_(plan.moving(true)),
        paper_(paper),
        parallel_(parallel) {}

  std::string run() {
    decisions();
    for (const TilingAround& a : plan_.around)
      if (!a.reads_main) where(a, "inline", fmt::format("inline(block={})", q(a.block)));
    if (plan_.staged)
      line("cache_write(block={}, copy={}, loop=\"\")", q(plan_.main), q(plan_.sums));
    for (const auto& loops : {space_, reduce_})
      for (const TilingLoop& loop : loops) split(loop);
    if (reduce_.empty()) {
      line("reorder(loops={})", list_of(order(false)));
    } else {
      line("if {} == 1 {{", factors(reduce_, 0));
      line("  reorder(loops={})", list_of(order(false)));
      line("}} else {{");
      line("  reorder(loops={})", list_of(order(true)));
      line("}}");
    }
    fuse_outer();
    for (const TilingAround& a : plan_.around) {
      const char* step = a.reads_main ? "reverse_compute_at" : "compute_at";
      where(a, "outer", fmt::format("{}(block={}, loop={})", step, q(a.block), q(outer_)));
      where(a, "middle", fmt::format("{}(block={}, loop={})", step, q(a.block), q(last(1))));
    }
    if (!plan_.init.empty()) sums();
    unroll();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  bool decided(const TilingAround& a) const { return !paper_ && a.ways.size() > 1; }

  /// `step` where `a` is done in that way.
  void where(const TilingAround& a, const std::string& way, const std::string& step) {
    if (std::find(a.ways.begin(), a.ways.end(), way) == a.ways.end()) return;
    if (decided(a)) {
      line("if ${} == {} {{ {} }}", q(a.decision), way, step);
    } else if (a.ways[0] == way) {
      line("{}", step);
    }
  }

  void decisions() {
    for (const TilingLoop& loop : plan_.loops)
      if (paper_ || (loop.extent > 1 && !loop.name.empty()))
        line("decide {}: {} {} into {}", q(loop.decision),
             paper_ || loop.reduces ? "split" : "tile", loop.extent, kTilingLevels);
    if (paper_) {
      line(
          "decide unroll: ring [[0, 0], [0, 1], [1, 0], [1, 1], [512, 0], [512, 1], [1500, 0], "
          "[1500, 1]]");
    } else if (!reduce_.empty()) {
      line("decide unroll: ordered [1, 4, 16, 64]");
    }
    for (const TilingAround& a : plan_.around)
      if (decided(a)) line("decide {}: choice {}", q(a.decision), list_of(a.ways));
  }

  /// `$a.level * $b.level * ...`
  static std::string factors(const std::vector<TilingLoop>& loops, int level) {
    std::vector<std::string> all;
    for (const TilingLoop& loop : loops)
      all.push_back(fmt::format("${}.{}", q(loop.decision), level));
    return all.empty() ? "1" : fmt::format("{}", fmt::join(all, " * "));
  }

  void split(const TilingLoop& loop) {
    std::string rest = loop.name, inner;
    for (int level = kLast; level > 0; --level)
      inner = fmt::format("${}.{}{}{}", q(loop.decision), level, inner.empty() ? "" : " * ", inner);
    for (int level = 1; level < kTilingLevels; ++level) {
      line("split(loop={}, factor={})", q(rest), inner);
      inner = inner.substr(std::min(inner.find(" * ") + 3, inner.size()));
      rest += ".i";
    }
  }

  std::vector<std::string> order(bool reduction_outside) const {
    std::vector<std::string> out;
    const auto add = [&](const std::vector<TilingLoop>& loops, int level) {
      for (const TilingLoop& loop : loops) out.push_back(loop.at(level));
    };
    const auto add_still = [&](bool reduces) {
      for (const TilingLoop& loop : plan_.loops)
        if (loop.reduces == reduces && loop.extent == 1 && !loop.name.empty())
          out.push_back(loop.name);
    };
    add_still(false);
    add(space_, 0), add(space_, 1);
    if (reduction_outside) add(reduce_, 0);
    add(space_, 2);
    add_still(true);
    if (!reduction_outside) add(reduce_, 0);
    for (int level = 1; level < kTilingLevels; ++level) add(reduce_, level);
    add(space_, kLast);
    return out;
  }

  std::string last(int level) const { return space_.back().at(level); }

  void fuse_outer() {
    outer_ = space_[0].at(0);
    for (size_t i = 1; i < space_.size(); ++i) {
      const std::string inner = space_[i].at(0);
      line("fuse(outer={}, inner={})", q(outer_), q(inner));
      outer_ += "*" + inner;
    }
    if (parallel_) line("parallel(loop={})", q(outer_));
  }

  /// Sums begin and end around the reduction, or around all of s.2 where r.0 is outside that.
  void sums() {
    const auto around = [&](const std::string& indent, const std::string& step,
                            const std::string& block) {
      if (reduce_.empty()) {
        line("{}{}(block={}, loop={})", indent, step, q(block), q(last(2)));
        return;
      }
      line("{}if {} == 1 {{ {}(block={}, loop={}) }} else {{ {}(block={}, loop={}) }}", indent,
           factors(reduce_, 0), step, q(block), q(last(2)), step, q(block), q(last(1)));
    };
    around("", "compute_at", plan_.init);
    for (const TilingAround& a : plan_.around) {
      if (!a.reads_main || std::find(a.ways.begin(), a.ways.end(), "tile") == a.ways.end())
        continue;
      if (!decided(a) && a.ways[0] != "tile") continue;
      if (decided(a)) line("if ${} == tile {{", q(a.decision));
      around(decided(a) ? "  " : "", "reverse_compute_at", a.block);
      if (decided(a)) line("}}");
    }
  }

  void unroll() {
    const TilingLoop& lanes = space_.back();
    const std::vector<TilingLoop> rows(space_.begin(), space_.end() - 1);
    const std::string vectors = fmt::format("{} * ceil_div(${}.{}, {})", factors(rows, kLast),
                                            q(lanes.decision), kLast, plan_.lanes);
    if (!rows.empty()) {
      line("if {} <= {} {{", vectors, kTileVectors);
      for (const TilingLoop& loop : rows) line("  unroll(loop={})", q(loop.at(kLast)));
      line("}}");
    }
    line("vectorize(loop={})", q(lanes.at(kLast)));
    if (reduce_.empty()) return;
    const std::string steps = factors(reduce_, kLast);
    if (paper_)
      line("if $unroll.1 == 1 && {} * {} <= min($unroll.0, {}) {{", steps, vectors,
           kMostWrittenVectors);
    else
      line("if {} <= $unroll && {} * {} <= {} {{", steps, steps, vectors, kMostWrittenVectors);
    for (const TilingLoop& loop : reduce_) line("  unroll(loop={})", q(loop.at(kLast)));
    line("}}");
  }

  const TilingPlan& plan_;
  const std::vector<TilingLoop> space_, reduce_;
  const bool paper_, parallel_;
  std::string outer_;  ///< the fused loop
  std::string text_;
};

/// One value per decision: whole loops outside, sums beside each other.
std::vector<Words> plain_point(const Sketch& sketch, const TilingPlan& plan) {
  std::vector<Words> point;
  for (const SketchDecision& d : sketch.decisions) {
    Words value = d.values.empty() ? Words(static_cast<size_t>(d.parts), int64_t{1}) : d.values[0];
    for (const TilingLoop& loop : plan.loops)
      if (loop.decision == d.name) value[loop.reduces ? kLast : 0] = loop.extent;
    point.push_back(std::move(value));
  }
  return point;
}

/// Leaves of the ways around the main nest those that apply, the usual one first. False where not
/// even the plainest point applies.
bool keep_legal(const measure::Task& task, TilingPlan& plan) {
  const Sketch sketch = *schedule::parse_sketch(Writer(plan, false, false).run());
  const std::vector<Words> plain = plain_point(sketch, plan);
  rules::Draft start(task.func);
  inline_passing(start);
  const auto applies = [&](const std::vector<Words>& point) {
    const auto trace = schedule::instantiate(sketch, point);
    return trace && schedule::replay(start.func(), *trace);
  };
  if (!applies(plain)) return false;
  for (size_t d = 0; d < sketch.decisions.size(); ++d)
    for (TilingAround& a : plan.around) {
      if (a.decision != sketch.decisions[d].name) continue;
      std::erase_if(a.ways, [&](const std::string& way) {
        std::vector<Words> point = plain;
        point[d] = {way};
        return !applies(point);
      });
      const char* usual = a.reads_main ? "tile" : a.pads ? "apart" : "inline";
      const auto at = std::find(a.ways.begin(), a.ways.end(), usual);
      if (at != a.ways.end()) std::rotate(a.ways.begin(), at, at + 1);
    }
  return true;
}

std::optional<TilingPlan> legal_plan(const measure::Task& task) {
  std::optional<TilingPlan> plan = tiling_plan(task);
  if (plan && !keep_legal(task, *plan)) return std::nullopt;
  return plan;
}

std::string write(const measure::Task& task, const TilingPlan& plan, bool paper) {
  const bool parallel = task.threads > 1 && plan.work >= rules::kParallelWork;
  return Writer(plan, paper, parallel).run();
}

/// The model of a point: the main nest by its factors, and what is around it by its bytes.
class TilingModel {
 public:
  TilingModel(const measure::Task& task, TilingPlan plan, const Sketch& sketch)
      : task_(task),
        plan_(std::move(plan)),
        plain_(rules::predict_plain(task.func, task.cpu(), task.threads)) {
    for (const SketchDecision& d : sketch.decisions) names_.push_back(d.name);
    const std::vector<rules::BlockFacts> blocks = rules::collect_blocks(task.func);
    if (const rules::BlockFacts* block = rules::find_block(blocks, plan_.main);
        block != nullptr && block->kind == rules::BlockFacts::Kind::Reduce)
      if (const auto tiled = rules::tiled_block(*block, task.cpu(), task.func.math))
        contraction_ = tiled->contraction;
  }

  cost::Prediction operator()(const std::vector<Words>& point) const {
    cost::Prediction time =
        contraction_ ? rules::predict_nest(*contraction_, form(point), task_.cpu(), task_.threads)
                     : plain_;
    const int workers = std::max(task_.threads, 1);
    const hw::CpuRates rates = task_.cpu().rates.f32 > 0
                                   ? task_.cpu().rates
                                   : hw::assumed_rates(task_.cpu().vector_bytes, task_.cpu().cores);
    for (const TilingAround& a : plan_.around) {
      const std::string way = way_of(a, point);
      constexpr double kTests = 2;  // conditions on every operand
      if (way == "inline" && a.pads) time.compute *= kTests;
      if (way == "apart") time.pack += 2 * a.bytes / rates.l3.of(workers);
      if (way == "outer" || way == "middle") time.pack += a.bytes / rates.l2.of(workers);
    }
    return time;
  }

 private:
  const Words* value(const std::string& decision, const std::vector<Words>& point) const {
    const auto at = std::find(names_.begin(), names_.end(), decision);
    return at == names_.end() ? nullptr : &point[static_cast<size_t>(at - names_.begin())];
  }

  std::string way_of(const TilingAround& a, const std::vector<Words>& point) const {
    const Words* chosen = value(a.decision, point);
    return chosen == nullptr ? a.ways[0] : std::get<std::string>(chosen->front());
  }

  rules::NestForm form(const std::vector<Words>& point) const {
    rules::NestForm out;
    out.tile.assign(plan_.loops.size(), 1);
    const auto factor = [&](size_t loop, int level) {
      const Words* chosen = value(plan_.loops[loop].decision, point);
      return chosen == nullptr ? int64_t{1}
                               : std::get<int64_t>((*chosen)[static_cast<size_t>(level)]);
    };
    const auto add = [&](bool reduces, int level) {
      for (size_t i = 0; i < plan_.loops.size(); ++i)
        if (plan_.loops[i].reduces == reduces && factor(i, level) > 1)
          out.nest.push_back({static_cast<int>(i), factor(i, level)});
    };
    add(false, 0);
    for (const cost::NestLoop& loop : out.nest) out.pieces *= loop.trips;
    add(false, 1);
    const size_t before = out.nest.size();
    add(true, 0);
    out.in_registers = out.nest.size() == before;
    add(false, 2);
    for (int level = 1; level < kTilingLevels; ++level) add(true, level);
    for (size_t i = 0; i < plan_.loops.size(); ++i)
      if (!plan_.loops[i].reduces) out.tile[i] = factor(i, kLast);
    for (const TilingAround& a : plan_.around)
      if (a.reads_main && way_of(a, point) != "tile") out.in_registers = false;
    return out;
  }

  const measure::Task task_;
  const TilingPlan plan_;
  const cost::Prediction plain_;
  std::vector<std::string> names_;
  std::optional<cost::Contraction> contraction_;
};

/// One point: the schedule by rule.
class OnePointSpace final : public ScheduleSpace {
 public:
  explicit OnePointSpace(const measure::Task& task) : task_(task) {}
  const search::Space& space() const override { return space_; }
  Result<schedule::Trace> trace(const search::Point&) const override {
    return rules::default_trace(task_.func, task_.cpu(), task_.threads);
  }
  double prior(const search::Point&) const override {
    return rules::predict_plain(task_.func, task_.cpu(), task_.threads).total();
  }
  std::vector<double> terms(const search::Point& point) const override { return {prior(point)}; }

 private:
  const measure::Task task_;
  const search::Space space_{{search::choice_decision("schedule", {"rule"})}};
};

}  // namespace

std::string tiling_sketch(const measure::Task& task, const TilingOptions& options) {
  const std::optional<TilingPlan> plan = legal_plan(task);
  return plan ? write(task, *plan, options.paper) : "";
}

std::unique_ptr<ScheduleSpace> tiling_space(const measure::Task& task,
                                            const TilingOptions& options) {
  const std::optional<TilingPlan> plan = legal_plan(task);
  if (!plan) return std::make_unique<OnePointSpace>(task);
  const Result<Sketch> sketch = schedule::parse_sketch(write(task, *plan, options.paper));
  TW_CHECK(sketch, "the sketch of {} does not parse: {}", task.name, to_string(sketch.error()));
  SketchOptions how;
  how.raw_features = options.paper;
  how.predict = TilingModel(task, *plan, *sketch);
  Result<std::unique_ptr<ScheduleSpace>> space = sketch_space(task, *sketch, std::move(how));
  if (!space) return std::make_unique<OnePointSpace>(task);
  return *std::move(space);
}

std::unique_ptr<ScheduleSpace> tiling_space(const measure::Task& task) {
  return tiling_space(task, {});
}

}  // namespace tilewright::tune
