// The constructive space of Winograd convolutions: the strip of tiles that is transformed together,
// the group of filter blocks computed together, one of the three best register tiles, and whether
// threads share out strips or filters. The cost model (cost/winograd.h) predicts every point.
#include <fmt/format.h>

#include "tilewright/rules/cpu/winograd.h"
#include "tilewright/tune/constructive_space.h"

namespace tilewright::tune {
namespace {

using cost::WinogradPlan;

/// Register tiles that are tried: the fastest by the model, and those behind it.
constexpr size_t kTiles = 3;

class WinogradRuleSpace final : public RuleSpace {
 public:
  WinogradRuleSpace(const measure::Task& task, const cost::WinogradShape& shape)
      : task_(task),
        shape_(shape),
        cuts_(cost::winograd_cuts(shape, task.cpu())),
        chosen_(cost::plan_winograd(shape, task.cpu(), task.threads)) {}

  std::string name() const override { return "winograd"; }

  std::vector<search::Decision> decisions() const override {
    std::vector<search::DecisionValue> strips, groups;
    for (const cost::WinogradStrip& strip : cuts_.strips)
      strips.push_back(
          {cost::describe(strip),
           {static_cast<double>(strip.images * strip.rows), static_cast<double>(strip.columns)}});
    for (const int64_t group : cuts_.groups)
      groups.push_back({fmt::format("{}", group), {static_cast<double>(group)}});
    std::vector<search::DecisionValue> tiles, shares = {{"strips", {0}}};
    for (size_t i = 0; i < kTiles; ++i)
      tiles.push_back({fmt::format("{}", i), {static_cast<double>(i)}});
    if (task_.threads > 1) shares.push_back({"filters", {1}});
    return {search::ordered_decision("strip", strips), search::ordered_decision("group", groups),
            search::ordered_decision("tile", tiles), search::ordered_decision("shared", shares)};
  }

  Result<schedule::Trace> trace(const search::Point& values) const override {
    const WinogradPlan plan = at(values);
    if (auto trace = rules::winograd_trace(task_.func, task_.cpu(), task_.threads, nullptr, &plan))
      return *std::move(trace);
    return fail(ErrorKind::NotApplicable,
                fmt::format("{} cannot be cut into strips of {} tiles and groups of {}", task_.name,
                            cost::describe(plan.strip), plan.group),
                "a step of its schedule does not apply");
  }

  /// Plans that seem about as fast as the rule's come after it.
  std::optional<cost::Prediction> time(const search::Point& values) const override {
    WinogradPlan plan = at(values);
    const double least = chosen_.time.total() * (1 + kDoubt / 10), own = plan.time.total();
    if (!is_chosen(plan) && own < least) plan.time.pack += least - own;
    return plan.time;
  }

 private:
  bool is_chosen(const WinogradPlan& plan) const {
    return plan.strip == chosen_.strip && plan.group == chosen_.group &&
           plan.by_filters == chosen_.by_filters && plan.tile_rows == chosen_.tile_rows &&
           plan.tile_columns == chosen_.tile_columns;
  }

  WinogradPlan at(const search::Point& values) const {
    WinogradPlan plan;
    const auto value = [&](size_t i) { return static_cast<size_t>(values[i]); };
    plan.strip = cuts_.strips[value(0)];
    plan.group = cuts_.groups[value(1)];
    plan.by_filters = value(3) == 1;
    return cost::winograd_plan_at(shape_, plan, value(2), task_.cpu(), task_.threads);
  }

  const measure::Task task_;
  const cost::WinogradShape shape_;
  const cost::WinogradCuts cuts_;
  const WinogradPlan chosen_;
};

}  // namespace

std::unique_ptr<RuleSpace> winograd_rule_space(const measure::Task& task) {
  const std::optional<cost::WinogradShape> shape = rules::winograd_shape(task.func, task.cpu());
  if (!shape || !rules::winograd_trace(task.func, task.cpu(), task.threads)) return nullptr;
  return std::make_unique<WinogradRuleSpace>(task, *shape);
}

}  // namespace tilewright::tune
