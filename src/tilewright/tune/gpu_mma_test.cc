// Products on matrix instructions: they mean what their tensor form does, in every order of
// threads.
#include "tilewright/tune/gpu_mma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/tune/gpu_rule.h"
#include "tilewright/tune/testing/mma_cases.h"

namespace tilewright::tune {
namespace {

using lower::testing::Order;

bool has_matrix_instructions(const lower::GpuPlan& plan) {
  bool found = false;
  for (const lower::GpuKernel& kernel : plan.kernels)
    found |= lower::contains(kernel.func.body, lower::is_warp_call);
  return found;
}

class GpuMmaRule : public ::testing::TestWithParam<MmaCase> {};

void expect_meaning(const MmaCase& c, const PlanGpu& rule) {
  const Func func = func_of(c);
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto scheduled = schedule::replay(func, gpu_trace(func, target, rule));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  EXPECT_EQ(has_matrix_instructions(*plan), c.applies) << print(*scheduled);
  const interp::Arguments arguments = quarters(func);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial}) {
    const auto run = lower::testing::run_plan(func, *plan, arguments.arrays, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(*scheduled);
    for (const auto& [name, value] : run->outputs)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_EQ(value.get(i), expected->outputs.at(name).get(i)) << name << " " << i;
  }
}

TEST_P(GpuMmaRule, KeepsTheMeaning) { expect_meaning(GetParam(), plan_gpu); }

class GpuMmaGroups : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaGroups, KeepTheMeaning) { expect_meaning(GetParam(), plan_groups); }

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaGroups, ::testing::ValuesIn(group_mma_cases()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaRule, ::testing::ValuesIn(small_mma_cases()),
                         [](const auto& test) { return test.param.name; });

GpuMma chosen(const MmaCase& c) {
  const Func func = func_of(c);
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks)
    if (const auto mma = choose_gpu_mma(block, *hw::find_gpu_target("cuda"))) return *mma;
  ADD_FAILURE() << c.name;
  return {};
}

TEST(GpuMmaChoice, TilesAreAsLargeAsKeepsAllMultiprocessorsBusy) {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return MmaCase{"", "MatMul", {{m, k}, {k, n}}, {}, DType::BF16};
  };
  const GpuMma large = chosen(product(8192, 8192, 512));
  EXPECT_EQ(large.block_m * large.block_n, 128 * 256);
  EXPECT_EQ(large.warps(), 8);
  EXPECT_EQ(large.raster, 8);
  EXPECT_EQ(chosen(product(128 * 12, 8192, 512)).raster, 4);
  const GpuMma small = chosen(product(512, 512, 512));
  EXPECT_LT(small.block_m * small.block_n, 128 * 128);
}

TEST(GpuMmaChoice, GroupsOfWarpsWhereTheTargetHasThemAndTilesFit) {
  const GpuMma large = chosen({"", "MatMul", {{8192, 512}, {512, 8192}}, {}, DType::BF16});
  const auto groups = in_groups(large, *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->warp_m, 64);
  EXPECT_EQ(groups->warp_n, 256);
  EXPECT_LE(groups->depth * (groups->block_m + groups->block_n) * groups->block_k * 2,
            hw::find_gpu_target("cuda")->shared_bytes);
  EXPECT_FALSE(in_groups(large, *hw::find_gpu_target("cuda-sm_80")));
  const GpuMma narrow = chosen({"", "MatMul", {{512, 64}, {64, 16}}, {}, DType::BF16});
  EXPECT_FALSE(in_groups(narrow, *hw::find_gpu_target("cuda")));
}

TEST(GpuMmaChoice, OnlyWhereTheTargetHasInstructions) {
  const Func func = func_of(MmaCase{"", "MatMul", {{64, 64}, {64, 64}}, {}, DType::BF16});
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  hw::GpuTarget older = *hw::find_gpu_target("cuda-sm_80");
  older.arch = "sm_75";
  for (const BlockFacts& block : blocks) {
    EXPECT_FALSE(choose_gpu_mma(block, *hw::find_gpu_target("opencl"))) << block.name;
    EXPECT_FALSE(choose_gpu_mma(block, older)) << block.name;
  }
}

}  // namespace
}  // namespace tilewright::tune
