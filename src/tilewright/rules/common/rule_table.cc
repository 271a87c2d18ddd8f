#include "tilewright/rules/common/rule_table.h"

#include <algorithm>

namespace tilewright::rules {

void RuleLog::add_sum(RuleChoice choice, int64_t work) {
  sums_.emplace_back(work, std::move(choice));
}

RuleReport RuleLog::report() const {
  RuleReport report{kernel, {}};
  auto main = sums_.end();
  if (kernel.rule.empty())
    main = std::max_element(sums_.begin(), sums_.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (main != sums_.end()) {
    report.kernel.rule = main->second.rule, report.kernel.what = main->second.what;
    report.kernel.block = main->second.block;
    report.kernel.declined.insert(report.kernel.declined.end(), main->second.declined.begin(),
                                  main->second.declined.end());
  }
  for (auto sum = sums_.begin(); sum != sums_.end(); ++sum)
    if (sum != main) report.sums.push_back(sum->second);
  return report;
}

}  // namespace tilewright::rules
