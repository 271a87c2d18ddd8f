// Products of bytes by instructions of threads, four terms at a time: they mean what their tensor
// form does, in every order of threads, and are used wherever words of four terms can be had.
#include "tilewright/rules/gpu/byte_dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/byte_cases.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

bool multiplies_words(const lower::GpuLaunches& plan) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const auto& kernel) {
    return lower::contains(kernel.func.body, lower::is_thread_call);
  });
}

void expect_meaning(const MmaCase& c, const hw::GpuTarget& target, const PlanGpu& rule = plan_gpu) {
  const Func func = func_of(c);
  const auto scheduled = schedule::replay(func, gpu_trace(func, target, rule));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  EXPECT_EQ(multiplies_words(*plan), c.applies) << print(*scheduled);
  const interp::Arguments arguments = whole_bytes(func);
  expect_plan_meaning(func, *plan, arguments);
}

class GpuWords : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuWords, KeepTheMeaning) { expect_meaning(GetParam(), word_target()); }

TEST_P(GpuWords, KeepItInOpenCl) { expect_meaning(GetParam(), *hw::find_gpu_target("opencl")); }

INSTANTIATE_TEST_SUITE_P(ProductsSlow, GpuWords, ::testing::ValuesIn(word_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(GpuWordsRule, LeavesMatricesToMatrixInstructions) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const MmaCase matrices = {"", "MatMulInteger", {{24, 64}, {64, 40}}, {}, DType::I8};
  MmaCase vector = {"", "MatMulInteger", {{4, 64}, {64, 40}}, {}, DType::I8};
  for (const MmaCase& c : {matrices, vector}) {
    const Func func = func_of(c);
    const auto scheduled = schedule::replay(func, gpu_trace(func, target));
    ASSERT_TRUE(scheduled);
    const auto plan = lower::lower_for_gpu(*scheduled, target);
    ASSERT_TRUE(plan) << to_string(plan.error());
    EXPECT_EQ(multiplies_words(*plan), c.inputs[0][0] == 4);
  }
}

TEST(GpuWordsRule, LaysOutWhatIsKnown) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = func_of(MmaCase{"", "MatMulInteger", {{1, 192}, {192, 40}}, {}, DType::I8});
  Func known = func;
  known.params[1].mode = ParamMode::Const;
  const auto scheduled = schedule::replay(func, gpu_trace(known, target));
  ASSERT_TRUE(scheduled);
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->kernels.size(), 2u);
  EXPECT_TRUE(multiplies_words(*plan)) << print(*scheduled);
  expect_plan_meaning(func, *plan, whole_bytes(func));
}

TEST(GpuWordsRule, SharesTermsOut) {
  const MmaCase product = {"", "MatMulInteger", {{9, 256}, {256, 10}}, {}, DType::I8};
  expect_meaning(product, word_target(), [](const BlockFacts& block, const hw::GpuTarget& target) {
    GpuPlan plan = plan_gpu(block, target);
    if (plan.tile) plan.tile->splits = 2;
    return plan;
  });
}

}  // namespace
}  // namespace tilewright::rules
