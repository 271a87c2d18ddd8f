// Which rule takes which layer on VTA, and why the other declines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/rules/common/testing/rule_cases.h"
#include "tilewright/rules/vta/testing/layers.h"

namespace tilewright::rules {
namespace {

std::vector<TakenKernel> vta_kernels() {
  const vta::Config config;
  std::vector<TakenKernel> kernels;
  for (const auto& [wanted, func] :
       {std::pair{"pooling", make_pool(1, 8, 8, 2, 2, 0, config)},
        std::pair{"convolution", make_layer({.kernel = 3, .pad = 1}, config)}}) {
    const Result<RuleChoice> choice = vta_rule(func);
    EXPECT_TRUE(choice) << (choice ? "" : to_string(choice.error()));
    if (choice) kernels.push_back({wanted, {*choice, {}}});
  }
  return kernels;
}

TEST(VtaRules, StandInThisOrder) {
  EXPECT_THAT(names_of(vta_rules()), testing::ElementsAre("pooling", "convolution"));
}

TEST(VtaRules, EachTakesAKernel) { expect_rules(vta_rules(), vta_kernels(), {"convolution"}); }

TEST(VtaRules, SayTheFactThatDecided) {
  EXPECT_EQ(vta_kernels().at(1).report.kernel.declined.at(0).reason,
            "block `conv` combines with `+=`");
}

/// No rule takes a minimum: both say why, and the error has the reason.
TEST(VtaRules, BothDeclineWhatIsNeither) {
  const vta::Config config;
  std::string text = print(make_pool(1, 8, 8, 2, 2, 0, config));
  const std::string from = "max=";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  text.replace(text.find(from), from.size(), "min=");
  const auto func = parse_func(text);
  ASSERT_TRUE(func) << to_string(func.error());
  RuleChoice choice;
  const auto layer = vta_layer(*schedule::replay(*func, *vta_prologue(*func)), &choice);
  ASSERT_FALSE(layer);
  EXPECT_EQ(choice.rule, "");
  ASSERT_EQ(choice.declined.size(), 2u);
  EXPECT_EQ(choice.declined[0].rule, "pooling");
  EXPECT_EQ(choice.declined[1].rule, "convolution");
  EXPECT_THAT(choice.declined[1].reason, testing::HasSubstr("combines with `min=`"));
  EXPECT_EQ(layer.error().why, choice.declined[1].reason);
}

}  // namespace
}  // namespace tilewright::rules
