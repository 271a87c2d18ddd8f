#include "tilewright/codegen/llvm/llvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

TEST(Llvm, AgreesWithTheInterpreter) {
  const std::vector<testing::Case> cases = testing::standard_cases();
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  LlvmOptions options;
  options.opt_level = 1;
  const auto module = jit(*lowered, options);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << cases[i].name << "\n" << to_string(ok.error()) << print(cases[i].func);
  }
}

}  // namespace
}  // namespace tilewright::codegen
