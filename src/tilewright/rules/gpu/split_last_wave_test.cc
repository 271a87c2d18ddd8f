// Products in two parts of their rows: they mean what one product does, and are made where the
// model says that the last wave of one would be mostly idle.
#include "tilewright/rules/gpu/split_last_wave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/rules/gpu/mma.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/meaning.h"
#include "tilewright/rules/gpu/testing/mma_cases.h"

namespace tilewright::rules {
namespace {

/// Rows of the first part.
constexpr int64_t kFirst = 48;

size_t products(const Func& func) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  return static_cast<size_t>(std::count_if(blocks.begin(), blocks.end(), [](const auto& b) {
    return b.kind == BlockFacts::Kind::Reduce;
  }));
}

class GpuRowParts : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuRowParts, KeepTheMeaning) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = func_of(GetParam());
  const Func parted = in_row_parts(func, target, kFirst);
  ASSERT_EQ(products(parted), 2u) << print(parted);
  const interp::Arguments arguments = exact(func);
  const auto expected = interp::run(func, arguments), tensor = interp::run(parted, arguments);
  ASSERT_TRUE(expected);
  ASSERT_TRUE(tensor) << to_string(tensor.error()) << print(parted);
  bool as_planned = false;
  const auto scheduled = schedule::replay(parted, gpu_trace(parted, target, plan_gpu, &as_planned));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  EXPECT_TRUE(as_planned) << print(*scheduled);
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  for (const auto& [name, value] : expected->outputs)
    for (int64_t i = 0; i < value.size(); ++i)
      ASSERT_EQ(value.get(i), tensor->outputs.at(name).get(i)) << name << " " << i;
  expect_plan_meaning(func, *plan, arguments);
}

INSTANTIATE_TEST_SUITE_P(Products, GpuRowParts, ::testing::ValuesIn(row_part_cases()),
                         [](const auto& test) { return test.param.name; });

int64_t chosen(int64_t m, int64_t n, int64_t k) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");  // 132 units
  const Func func = func_of(MmaCase{"", "MatMul", {{m, k}, {k, n}}, {}});
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks)
    if (const auto mma = find_gpu_mma(block, target)) return rows_of_whole_waves(*mma, target);
  return -1;
}

TEST(GpuRowPartsChoice, PartsWhatLeavesMostOfAWaveIdle) {
  // 24 x 12 tiles of 128 x 256 are 2.2 waves, of which 22 rows of tiles fill two.
  EXPECT_EQ(chosen(3072, 3072, 3072), 2816);
  EXPECT_GT(chosen(5120, 5120, 5120), 0);  // 6.1 waves
  // Groups of warps, which need whole matrices, take a product of floats faster; bytes have none.
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func floats = func_of(MmaCase{"", "MatMul", {{3072, 3072}, {3072, 3072}}, {}});
  EXPECT_EQ(products(with_row_parts(floats, target)), 1u);
  const Func bytes =
      func_of(MmaCase{"", "MatMulInteger", {{3072, 3072}, {3072, 3072}}, {}, DType::I8});
  EXPECT_EQ(products(with_row_parts(bytes, target)), 2u);
}

TEST(GpuRowPartsChoice, LeavesNearlyWholeWavesAlone) {
  EXPECT_EQ(chosen(2048, 2048, 2048), 0);  // 0.97
  EXPECT_EQ(chosen(4096, 4096, 4096), 0);  // 3.9
  EXPECT_EQ(chosen(8192, 8192, 8192), 0);  // 15.5
  EXPECT_EQ(chosen(64, 64, 64), 0);        // less than one
}

TEST(GpuRowPartsChoice, KeepsWhatItMustNotPart) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  Func func = func_of(MmaCase{"", "MatMul", {{80, 64}, {64, 40}}, {}});
  EXPECT_EQ(products(in_row_parts(func, target, 80)), 1u);
  EXPECT_EQ(products(in_row_parts(func, *hw::find_gpu_target("opencl"), kFirst)), 1u);
  func.math = MathMode::Exact;
  EXPECT_EQ(products(in_row_parts(func, target, kFirst)), 1u);
}

}  // namespace
}  // namespace tilewright::rules
