#include "tilewright/rules/common/rule_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::rules {
namespace {

Answer<int> only_even(const int& number) {
  if (number % 2 != 0) return decline("{} is odd", number);
  return number / 2;
}
Answer<int> only_small(const int& number) {
  if (number > 9) return decline("{} is more than 9", number);
  return number;
}

constexpr Rule<const int, int> kNumbers[] = {{"even", "even numbers: their half", only_even},
                                             {"small", "small numbers: themselves", only_small}};

TEST(RuleTable, TheFirstThatTakesItDoes) {
  const int both = 4, second = 5, none = 11;
  RuleChoice choice;
  EXPECT_EQ(ask(kNumbers, both, choice), 2);
  EXPECT_EQ(choice.rule, "even");
  EXPECT_EQ(choice.what, "even numbers: their half");
  EXPECT_TRUE(choice.declined.empty());
  choice = {};
  EXPECT_EQ(ask(kNumbers, second, choice), 5);
  EXPECT_EQ(choice.rule, "small");
  EXPECT_THAT(choice.declined, testing::ElementsAre(Declined{"even", "5 is odd"}));
  choice = {};
  EXPECT_FALSE(ask(kNumbers, none, choice));
  EXPECT_EQ(choice.rule, "");
  EXPECT_THAT(choice.declined, testing::ElementsAre(Declined{"even", "11 is odd"},
                                                    Declined{"small", "11 is more than 9"}));
}

TEST(RuleTable, RowsAreListedAndDeclineTogether) {
  std::vector<RuleInfo> all;
  list_rules(kNumbers, all);
  EXPECT_THAT(all, testing::ElementsAre(RuleInfo{"even", "even numbers: their half"},
                                        RuleInfo{"small", "small numbers: themselves"}));
  RuleChoice choice;
  decline_all(kNumbers, "there is no number", choice);
  EXPECT_THAT(choice.declined, testing::ElementsAre(Declined{"even", "there is no number"},
                                                    Declined{"small", "there is no number"}));
}

TEST(RuleLog, TheSumWithMostWorkSpeaksForTheKernel) {
  RuleLog log;
  log.kernel.declined = {{"whole", "it is not whole"}};
  EXPECT_FALSE(log.decided());
  log.add_sum({"rows", "", "few", {}}, 10);
  log.add_sum({"tile", "", "most", {{"rows", "it has no rows"}}}, 30);
  log.add_sum({"loops", "", "as_many", {}}, 30);
  EXPECT_TRUE(log.decided());
  const RuleReport report = log.report();
  EXPECT_EQ(report.kernel.rule, "tile");
  EXPECT_EQ(report.kernel.block, "most");
  EXPECT_THAT(report.kernel.declined, testing::ElementsAre(Declined{"whole", "it is not whole"},
                                                           Declined{"rows", "it has no rows"}));
  ASSERT_EQ(report.sums.size(), 2u);
  EXPECT_EQ(report.sums[0].block, "few");
  EXPECT_EQ(report.sums[1].block, "as_many");
}

TEST(RuleLog, ARuleOfTheKernelLeavesItsSumsTheirOwn) {
  RuleLog log;
  log.kernel = {"whole", "", "", {}};
  log.add_sum({"tile", "", "most", {}}, 30);
  const RuleReport report = log.report();
  EXPECT_EQ(report.kernel.rule, "whole");
  EXPECT_EQ(report.kernel.block, "");
  ASSERT_EQ(report.sums.size(), 1u);
  EXPECT_EQ(report.sums[0].rule, "tile");
}

}  // namespace
}  // namespace tilewright::rules
