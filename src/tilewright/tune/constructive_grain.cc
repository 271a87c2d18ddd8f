// The constructive space of kernels without a contraction (element-wise, rows, copies): pieces per
// thread and registers filled at a time. The model predicts only the limit of the machine for them,
// so all points look alike except that the rule's own values come first.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/rules/common/work.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/rules/cpu/dot.h"
#include "tilewright/rules/cpu/winograd.h"
#include "tilewright/tune/constructive_space.h"

namespace tilewright::tune {
namespace {

constexpr int64_t kRegisters[] = {0, 1, 2, 4};

/// The longer of two times: operations at the peak of their type, operands at the bandwidth of the
/// level that holds them. units: ns.
double limit_of(const measure::Task& task) {
  const hw::CpuTarget& target = task.cpu();
  const hw::CpuRates rates = target.rates_or_assumed();
  double bytes = 0;
  for (const Param& p : task.func.params) {
    double size = bit_width(p.buffer.dtype()) / 8.0;
    for (const Expr& extent : p.buffer.shape())
      size *= static_cast<double>(as_int(extent).value_or(1));
    bytes += size;
  }
  const auto fits = [&](int64_t capacity) { return bytes < static_cast<double>(capacity); };
  const hw::Bandwidth& level = fits(target.l2_bytes)   ? rates.l2
                               : fits(target.l3_bytes) ? rates.l3
                                                       : rates.dram;
  const rules::Work work = rules::work_of(task.func);
  const double peak = std::max(rates.peak(work.dtype), 1e-9) * task.threads;
  return std::max({1.0, work.operations / peak, bytes / level.of(task.threads)});
}

class GrainRuleSpace final : public RuleSpace {
 public:
  explicit GrainRuleSpace(const measure::Task& task)
      : task_(task),
        limit_(limit_of(task)),
        open_(!rules::winograd_trace(task.func, task.cpu(), task.threads) &&
              !rules::dot_trace(task.func, task.cpu(), task.threads)) {}

  std::string name() const override { return "grain"; }

  std::vector<search::Decision> decisions() const override {
    if (!open_) return {};
    return {number_decision("pieces", pieces()),
            number_decision("registers", {std::begin(kRegisters), std::end(kRegisters)})};
  }

  Result<schedule::Trace> trace(const search::Point& values) const override {
    if (!open_ || (values[0] == 0 && values[1] == 0))
      return rules::default_trace(task_.func, task_.cpu(), task_.threads);
    return rules::trace_with(task_.func, grain(values), task_.cpu(), task_.threads);
  }

  std::optional<cost::Prediction> time(const search::Point& values) const override {
    cost::Prediction time;
    time.compute = limit_;
    if (open_) time.pack = kDoubt * limit_ * ((values[0] != 0) + (values[1] != 0));
    return time;
  }

 private:
  std::vector<int64_t> pieces() const {
    return task_.threads > 1 ? std::vector<int64_t>{0, 1, 2, 32} : std::vector<int64_t>{0};
  }

  rules::Grain grain(const search::Point& values) const {
    return {pieces()[static_cast<size_t>(values[0])], kRegisters[static_cast<size_t>(values[1])]};
  }

  const measure::Task task_;
  const double limit_;
  const bool open_;  ///< no rule for whole programs takes it
};

}  // namespace

search::Decision number_decision(const std::string& name, const std::vector<int64_t>& numbers) {
  search::Decision decision;
  decision.name = name;
  decision.moves.assign(2, {});
  for (size_t i = 0; i < numbers.size(); ++i) {
    decision.values.push_back({numbers[i] == 0 ? "auto" : fmt::format("{}", numbers[i]),
                               {static_cast<double>(numbers[i])}});
    size_t up = i, down = i;
    for (size_t j = 0; j < numbers.size(); ++j) {
      if (numbers[j] > numbers[i] && (up == i || numbers[j] < numbers[up])) up = j;
      if (numbers[j] < numbers[i] && (down == i || numbers[j] > numbers[down])) down = j;
    }
    decision.moves[0].push_back(static_cast<int>(up));
    decision.moves[1].push_back(static_cast<int>(down));
  }
  return decision;
}

std::unique_ptr<RuleSpace> grain_rule_space(const measure::Task& task) {
  return std::make_unique<GrainRuleSpace>(task);
}

}  // namespace tilewright::tune
