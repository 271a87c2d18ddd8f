// Other targets and more random programs than the unit test has time for.
#include <gtest/gtest.h>

#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen {
namespace {

void expect_agreement(const std::vector<testing::Case>& cases, const LlvmOptions& options) {
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = jit(*lowered, options);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << options.target.name << " " << cases[i].name << "\n"
                    << to_string(ok.error()) << print(cases[i].func);
  }
}

TEST(LlvmSlow, OlderTargetsAgree) {
  for (const char* name : {"x86-64-v2", "x86-64-v3"}) {
    LlvmOptions options;
    options.target = *hw::find_target(name);
    if (hw::missing_features(options.target).empty())
      expect_agreement(testing::standard_cases(), options);
  }
}

TEST(LlvmSlow, EveryOptimisationLevelAgrees) {
  for (const int level : {0, 2}) {
    LlvmOptions options;
    options.opt_level = level;
    expect_agreement(testing::standard_cases(), options);
  }
}

TEST(LlvmSlow, RandomProgramsAgree) { expect_agreement(testing::random_cases(61, 600), {}); }

}  // namespace
}  // namespace tilewright::codegen
