#include "tilewright/tune/constructive_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::tune {
namespace {

/// Decisions of all rules under one root, which is left out where there is one rule.
class ConstructiveSpace final : public ScheduleSpace {
 public:
  explicit ConstructiveSpace(std::vector<std::unique_ptr<RuleSpace>> rules)
      : rules_(std::move(rules)), space_(join()) {}

  const search::Space& space() const override { return space_; }

  Result<schedule::Trace> trace(const search::Point& point) const override {
    const size_t rule = rule_of(point);
    return rules_[rule]->trace(values_of(rule, point));
  }

  double prior(const search::Point& point) const override {
    const std::optional<cost::Prediction> time = time_of(point);
    return time ? time->total() : search::kInvalid;
  }

  std::vector<double> terms(const search::Point& point) const override {
    std::vector<double> all(7);
    if (const std::optional<cost::Prediction> time = time_of(point)) {
      // Shares of the whole: what binds, whatever the size of the operator.
      const double whole = std::max(time->total(), 1e-9) / kWhole;
      all = {time->compute / whole, time->l1 / whole,   time->l2 / whole,  time->l3 / whole,
             time->dram / whole,    time->pack / whole, time->join / whole};
    }
    for (const double feature : space_.features(point)) all.push_back(feature);
    return all;
  }

 private:
  std::vector<search::Decision> join() {
    std::vector<search::Decision> all;
    std::vector<std::string> names;
    for (const auto& rule : rules_) names.push_back(rule->name());
    if (names.size() > 1) all.push_back(search::choice_decision("rule", names));
    for (size_t r = 0; r < rules_.size(); ++r) {
      const auto first = static_cast<int>(all.size());
      first_.push_back(static_cast<size_t>(first));
      for (search::Decision decision : rules_[r]->decisions()) {
        if (decision.parent >= 0) {
          decision.parent += first;
        } else if (names.size() > 1) {
          decision.parent = 0;
          decision.when = {static_cast<int>(r)};
        }
        all.push_back(std::move(decision));
      }
    }
    // A space has at least one decision; of one value where there is nothing to choose.
    if (all.empty()) all.push_back(search::choice_decision("rule", names));
    first_.push_back(all.size());
    return all;
  }

  size_t rule_of(const search::Point& point) const {
    return rules_.size() > 1 ? static_cast<size_t>(point[0]) : 0;
  }

  search::Point values_of(size_t rule, const search::Point& point) const {
    return {point.begin() + static_cast<long>(first_[rule]),
            point.begin() + static_cast<long>(first_[rule + 1])};
  }

  std::optional<cost::Prediction> time_of(const search::Point& point) const {
    const size_t rule = rule_of(point);
    return rules_[rule]->time(values_of(rule, point));
  }

  static constexpr double kWhole = 16;  ///< value of a term that is all there is

  const std::vector<std::unique_ptr<RuleSpace>> rules_;
  std::vector<size_t> first_;  ///< decision of each rule; their number at the end
  const search::Space space_;
};

}  // namespace

std::unique_ptr<ScheduleSpace> constructive_space(const measure::Task& task) {
  std::vector<std::unique_ptr<RuleSpace>> rules;
  if (std::unique_ptr<RuleSpace> rule = winograd_rule_space(task)) rules.push_back(std::move(rule));
  if (std::unique_ptr<RuleSpace> rule = tile_rule_space(task)) rules.push_back(std::move(rule));
  if (rules.empty()) rules.push_back(grain_rule_space(task));
  return std::make_unique<ConstructiveSpace>(std::move(rules));
}

}  // namespace tilewright::tune
