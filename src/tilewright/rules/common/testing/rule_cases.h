// What tests of the tables of rules expect of each of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tilewright/rules/common/rule_table.h"

namespace tilewright::rules {

inline std::vector<std::string> names_of(const std::vector<RuleInfo>& rules) {
  std::vector<std::string> names;
  for (const RuleInfo& rule : rules) names.push_back(rule.name);
  return names;
}

/// What each kernel of a test was taken by; `wanted`: the rule that it is made for.
struct TakenKernel {
  std::string wanted;
  RuleReport report;
};

/// Why `rule` declined; empty where it did not.
inline std::string reason_of(const RuleReport& report, const std::string& rule) {
  for (const Declined& one : report.kernel.declined)
    if (one.rule == rule) return one.reason;
  return "";
}

/// Every rule has a kernel that it takes after all rules before it have declined, each with a
/// sentence; all rules but `takes_any` decline somewhere.
inline void expect_rules(const std::vector<RuleInfo>& rules,
                         const std::vector<TakenKernel>& kernels,
                         const std::set<std::string>& takes_any) {
  const std::vector<std::string> names = names_of(rules);
  std::set<std::string> taken, declined;
  for (const auto& [wanted, report] : kernels) {
    const RuleChoice& kernel = report.kernel;
    EXPECT_EQ(kernel.rule, wanted) << reason_of(report, wanted);
    taken.insert(kernel.rule);
    const auto at = std::find(names.begin(), names.end(), wanted);
    ASSERT_NE(at, names.end()) << wanted;
    EXPECT_EQ(kernel.what, rules[static_cast<size_t>(at - names.begin())].what);
    std::vector<std::string> before;
    for (const Declined& one : kernel.declined) {
      before.push_back(one.rule);
      declined.insert(one.rule);
      EXPECT_GT(one.reason.size(), 10u) << wanted << ": " << one.rule;
      EXPECT_NE(one.reason.back(), '.') << wanted << ": " << one.rule;
    }
    EXPECT_EQ(before, std::vector<std::string>(names.begin(), at)) << wanted;
  }
  EXPECT_THAT(taken, testing::UnorderedElementsAreArray(names));
  for (const std::string& name : names)
    EXPECT_NE(declined.contains(name), takes_any.contains(name)) << name;
}

}  // namespace tilewright::rules
