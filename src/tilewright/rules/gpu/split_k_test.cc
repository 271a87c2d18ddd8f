#include "tilewright/rules/gpu/split_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

/// Several units and little work for them.
hw::GpuTarget wide_target() {
  hw::GpuTarget target;
  target.name = "wide";
  target.units = 32;
  return target;
}

/// The rule's tiles, with their terms in three parts.
GpuPlan in_parts(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.tile) plan.tile->splits = 3;
  return plan;
}

struct GpuSplitCase {
  std::string name;
  OpCase op;
};

class GpuSplit : public ::testing::TestWithParam<GpuSplitCase> {};

TEST_P(GpuSplit, KeepsTheMeaning) {
  const hw::GpuTarget target = wide_target();
  const Func func = func_of(GetParam().op);
  bool as_planned = false;
  const auto scheduled = schedule::replay(func, gpu_trace(func, target, in_parts, &as_planned));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  EXPECT_TRUE(as_planned);
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  ASSERT_EQ(plan->kernels.size(), 2u) << print(*scheduled);
  ASSERT_EQ(plan->temporaries.size(), 1u) << print(plan->kernels[0].func);
  int64_t blocks = 1;
  for (const int64_t extent : plan->kernels[0].grid) blocks *= extent;
  EXPECT_GT(blocks, 1);
  const interp::Arguments arguments = quarters(func);
  expect_plan_meaning(func, *plan, arguments, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Operators, GpuSplit,
    ::testing::Values(GpuSplitCase{"product", {"", "MatMul", {{20, 528}, {528, 21}}, {}}},
                      GpuSplitCase{"batch", {"", "MatMul", {{2, 9, 300}, {2, 300, 18}}, {}}},
                      GpuSplitCase{
                          "with_bias",
                          {"", "Gemm", {{9, 402}, {17, 402}, {17}}, {{"transB", int64_t{1}}}}},
                      GpuSplitCase{"convolution",
                                   {"",
                                    "Conv",
                                    {{1, 69, 5, 4}, {18, 69, 3, 3}},
                                    {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}}}),
    [](const auto& test) { return test.param.name; });

TEST(GpuSplit, ExactMathKeepsOneSum) {
  const hw::GpuTarget target = wide_target();
  Func func = func_of(OpCase{"", "MatMul", {{20, 528}, {528, 21}}, {}});
  func.math = MathMode::Exact;
  bool as_planned = true;
  const auto scheduled = schedule::replay(func, gpu_trace(func, target, in_parts, &as_planned));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  EXPECT_FALSE(as_planned);
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->kernels.size(), 1u);
}

}  // namespace
}  // namespace tilewright::rules
