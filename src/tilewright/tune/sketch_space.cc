#include "tilewright/tune/sketch_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/rules/cpu/nest_model.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/tune/tiling_plan.h"

namespace tilewright::tune {
namespace {

using schedule::Sketch;
using schedule::SketchDecision;
using schedule::Words;

/// Values that a table may list.
constexpr double kMostValues = 1 << 20;

/// Ordered factorisations, from the exponents of the primes; an upper bound for tiles.
double count_values(const SketchDecision& d) {
  if (d.kind != SketchDecision::Kind::Split && d.kind != SketchDecision::Kind::Tile)
    return static_cast<double>(d.values.size());
  double count = 1;
  int64_t rest = std::get<int64_t>(d.extent);
  for (int64_t p = 2; rest > 1; ++p) {
    if (p * p > rest) p = rest;
    double ways = 1;
    for (double k = 1; rest % p == 0; ++k, rest /= p)
      ways *= (static_cast<double>(d.parts) + k - 1) / k;
    count *= ways;
  }
  constexpr double kInnerFactors = 64;
  return d.kind == SketchDecision::Kind::Tile ? count * kInnerFactors : count;
}

/// What a sketch may call the blocks of `func`.
schedule::Roles roles_of(const Func& func) {
  schedule::Roles roles;
  const std::vector<rules::BlockFacts> blocks = rules::collect_blocks(func);
  const rules::BlockFacts* main = main_block(func, blocks);
  if (main == nullptr) return roles;
  roles["main"] = main->name;
  for (const rules::BlockFacts& block : blocks) {
    if (block.kind != rules::BlockFacts::Kind::Injective) continue;
    const auto reads = [](const rules::BlockFacts& reader, const rules::BlockFacts& writer) {
      return std::any_of(reader.loads.begin(), reader.loads.end(),
                         [&](const Load& load) { return load.buffer == writer.store->buffer; });
    };
    if (reads(*main, block) && block.store->value.as<Select>() != nullptr)
      roles["pad"] = block.name;
    if (reads(block, *main)) roles["out"] = block.name;
  }
  return roles;
}

class SketchSpace final : public ScheduleSpace {
 public:
  /// `start`: the task's Func with the steps that come before those of the sketch.
  SketchSpace(const measure::Task& task, rules::Draft start, Sketch sketch, SketchOptions options)
      : task_(task),
        start_(std::move(start)),
        sketch_(std::move(sketch)),
        options_(std::move(options)),
        space_(tables()) {
    const std::vector<rules::BlockFacts> blocks = start_.blocks();
    const rules::BlockFacts* main = main_block(start_.func(), blocks);
    if (options_.predict || main == nullptr || main->kind != rules::BlockFacts::Kind::Reduce)
      return;
    if (const auto tiled = rules::tiled_block(*main, task.cpu(), task.func.math))
      main_ = main->name, contraction_ = tiled->contraction;
  }

  const search::Space& space() const override { return space_; }

  Result<schedule::Trace> trace(const search::Point& point) const override {
    rules::Draft draft = start_;
    TW_TRY_STATUS(take_steps(point, draft));
    finish_draft(draft, task_.cpu(), task_.threads);
    return draft.take();
  }

  double prior(const search::Point& point) const override {
    const auto time = predict(point);
    return time ? time->total() : search::kInvalid;
  }

  std::vector<double> terms(const search::Point& point) const override {
    const cost::Prediction t = predict(point).value_or(cost::Prediction{});
    return {t.compute, t.l1, t.l2, t.l3, t.dram, t.pack, t.join};
  }

 private:
  std::vector<search::Decision> tables() {
    std::vector<search::Decision> out;
    for (const SketchDecision& d : sketch_.decisions) {
      values_.push_back(decision_values(d));
      search::Decision table = search_decision(d, values_.back(), options_.raw_features);
      table.parent = d.parent;
      for (const Words& value : d.when) {
        const std::vector<Words>& known = values_[static_cast<size_t>(d.parent)];
        table.when.push_back(
            static_cast<int>(std::find(known.begin(), known.end(), value) - known.begin()));
      }
      out.push_back(std::move(table));
    }
    return out;
  }

  std::vector<Words> chosen(const search::Point& point) const {
    std::vector<Words> out;
    for (size_t d = 0; d < values_.size(); ++d)
      out.push_back(values_[d][static_cast<size_t>(point[d])]);
    return out;
  }

  Status take_steps(const search::Point& point, rules::Draft& draft) const {
    for (schedule::Step& step : TW_TRY(schedule::instantiate(sketch_, chosen(point))))
      if (!draft.attempt(step)) {
        Result<Func> refused = schedule::apply(step, draft.func());
        if (!refused) return tl::unexpected<Error>(std::move(refused).error());
      }
    return {};
  }

  std::optional<cost::Prediction> predict(const search::Point& point) const {
    if (options_.predict) return options_.predict(chosen(point));
    rules::Draft draft = start_;
    if (!take_steps(point, draft)) return std::nullopt;
    if (!main_.empty())
      if (const auto form = rules::nest_form(draft.func(), main_, contraction_))
        return rules::predict_nest(contraction_, *form, task_.cpu(), task_.threads);
    return rules::predict_plain(task_.func, task_.cpu(), task_.threads);
  }

  const measure::Task task_;
  const rules::Draft start_;
  const Sketch sketch_;
  const SketchOptions options_;
  std::vector<std::vector<Words>> values_;  ///< by decision
  const search::Space space_;
  std::string main_;               ///< the reduction with most work; empty without one
  cost::Contraction contraction_;  ///< of `main_`
};

}  // namespace

Result<std::unique_ptr<ScheduleSpace>> sketch_space(const measure::Task& task, const Sketch& sketch,
                                                    SketchOptions options) {
  rules::Draft start(task.func);
  inline_passing(start);
  Sketch bound = TW_TRY(schedule::bind(sketch, start.func(), roles_of(start.func())));
  for (const SketchDecision& d : bound.decisions)
    if (count_values(d) > kMostValues)
      return fail(ErrorKind::Invalid,
                  fmt::format("decision {} has about {:.0f} values", d.name, count_values(d)),
                  fmt::format("a table lists up to {:.0f}", kMostValues), "split into fewer parts");
  return std::make_unique<SketchSpace>(task, std::move(start), std::move(bound),
                                       std::move(options));
}

}  // namespace tilewright::tune
