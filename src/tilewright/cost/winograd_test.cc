// Plans of Winograd convolutions: what a schedule relies on, and who follows from the arithmetic.
#include "tilewright/cost/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tilewright/base/integers.h"
#include "tilewright/base/rng.h"

namespace tilewright::cost {
namespace {

hw::CpuTarget winograd_machine(int vector_bytes = 64, int registers = 32) {
  hw::CpuTarget target;
  target.vector_bytes = vector_bytes;
  target.vector_registers = registers;
  target.cores = 2;
  target.rates = hw::assumed_rates(vector_bytes, 2);
  return target;
}

TEST(WinogradPlan, FitsTheSizesAndTheRegisters) {
  Rng rng(5);
  for (int i = 0; i < 400; ++i) {
    const bool wide = rng.between(0, 1) == 1;
    const hw::CpuTarget target = winograd_machine(wide ? 64 : 32, wide ? 32 : 16);
    const int64_t lanes = target.lanes(32);
    const WinogradShape shape{rng.between(1, 3),          lanes * rng.between(1, 40),
                              lanes * rng.between(1, 40), rng.between(1, 120),
                              rng.between(1, 120),        2 * rng.between(1, 3),
                              2 * rng.between(0, 3) + 1,  2 * rng.between(1, 3) + 1};
    const int threads = static_cast<int>(rng.between(1, 4));
    const WinogradPlan plan = plan_winograd(shape, target, threads);
    const std::string what =
        fmt::format("{}x{} of {} -> {}: strips {}x{}, group {}, tile {}x{}", shape.height,
                    shape.width, shape.channels, shape.filters, plan.strip.rows, plan.strip.columns,
                    plan.group, plan.tile_rows, plan.tile_columns);
    const int64_t rows = ceil_div(shape.height, shape.tile_h());
    const int64_t columns = ceil_div(shape.width, shape.tile_w());
    const int64_t blocks = shape.filters / lanes, tiles = plan.strip.rows * plan.strip.columns;
    EXPECT_EQ(shape.batch % plan.strip.images, 0) << what;
    EXPECT_TRUE(plan.strip.images == 1 || plan.strip.rows * plan.strip.columns == rows * columns)
        << what;
    EXPECT_EQ(rows % plan.strip.rows, 0) << what;
    EXPECT_EQ(columns % plan.strip.columns, 0) << what;
    EXPECT_TRUE(plan.strip.rows == 1 || plan.strip.columns == columns) << what;
    EXPECT_EQ(blocks % plan.group, 0) << what;
    EXPECT_EQ(plan.group % plan.tile_columns, 0) << what;
    EXPECT_LE((plan.tile_rows + 1) * plan.tile_columns + 1, target.vector_registers) << what;
    EXPECT_TRUE(tiles == rows * columns || tiles % plan.tile_rows == 0) << what;
    EXPECT_FALSE(threads == 1 && plan.by_filters) << what;
    const double products =
        static_cast<double>(shape.points_h() * shape.points_w() * rows * columns * shape.batch *
                            shape.channels * shape.filters);
    EXPECT_GE(plan.time.total(), 2 * products / target.rates.f32 / threads) << what;
  }
}

/// 960 to 608 channels, dilation 2 at 42x42: four images of 21x21, whose transformed input is 20
/// MB. Measured on a Zen 3 with 32 MB of L3: 189 ms if it is read for every four filter blocks, 90
/// ms if for all 76 at once.
TEST(WinogradPlan, ReadsAnInputThatLeavesTheLastCacheFewTimes) {
  hw::CpuTarget target = winograd_machine(32, 16);
  target.l2_bytes = 512 << 10;
  target.l3_bytes = 32 << 20;
  const WinogradShape shape{4, 960, 608, 21, 21, 4};
  const auto time = [&](int64_t group) {
    WinogradPlan cuts;
    cuts.strip = {4, 6, 6};
    cuts.group = group;
    return winograd_plan_at(shape, cuts, 0, target, 1).time.total();
  };
  EXPECT_GT(time(4), 1.5 * time(76));
  EXPECT_LT(time(38), 1.15 * time(76));
  const WinogradPlan best = plan_winograd(shape, target, 1);
  EXPECT_LE(best.time.total(), 1.01 * time(76));
  EXPECT_GE(best.group, 38);
}

TEST(WinogradPlan, SharesWhatIsLarge) {
  const hw::CpuTarget target = winograd_machine();
  // 9 MB of weights and few tiles: each worker reads its own half.
  EXPECT_TRUE(plan_winograd({1, 256, 256, 14, 14, 4}, target, 2).by_filters);
  EXPECT_TRUE(plan_winograd({1, 512, 512, 28, 28, 4}, target, 2).by_filters);
  // Small weights stay in both caches; transformed images of 29 MB would not.
  const WinogradPlan image = plan_winograd({1, 64, 64, 224, 224, 4}, target, 2);
  EXPECT_FALSE(image.by_filters);
  EXPECT_LT(36 * 4 * 64 * image.strip.tiles(), target.l2_bytes / 2);
}

TEST(WinogradPlan, ReadsLargeWeightsOnceForSeveralImages) {
  hw::CpuTarget target = winograd_machine();
  target.l3_bytes = 16 << 20;
  // Planes of a 3-D convolution of 512 channels: 57 MB of weights, 16 tiles each.
  WinogradShape planes{4, 1536, 256, 14, 14, 4};
  const WinogradPlan together = plan_winograd(planes, target, 2);
  EXPECT_GT(together.strip.images, 1);
  planes.shared = false;
  const WinogradPlan apart = plan_winograd(planes, target, 2);
  EXPECT_EQ(apart.strip.images, 1);
  EXPECT_LT(together.time.total(), apart.time.total());
  // Images of many tiles gain nothing by it.
  EXPECT_EQ(plan_winograd({4, 64, 64, 56, 56, 4}, target, 2).strip.images, 1);
}

TEST(WinogradPlan, PassesWeightsFromFarSeldom) {
  // Twelve tiles in a strip: 6x4 vectors pass the weights of four blocks twice, 12x2 those of two
  // once. Those of 32 channels stay in L1 in between, those of 256 do not.
  const hw::CpuTarget target = winograd_machine();
  const WinogradPlan cuts{{1, 1, 12}, 4, 1, 1, false, {}};
  EXPECT_EQ(winograd_plan_at({1, 32, 64, 96, 96, 4}, cuts, 0, target, 1).tile_columns, 4);
  EXPECT_EQ(winograd_plan_at({1, 256, 64, 96, 96, 4}, cuts, 0, target, 1).tile_columns, 2);
}

TEST(WinogradPlan, PassesWeightsThatMemoryDelaysOnce) {
  // 16 tiles: 16x1 vectors ask memory for weights as long as they compute, the others wait for
  // them in the first of several passes.
  hw::CpuTarget target = winograd_machine();
  const WinogradShape shape{1, 512, 512, 7, 7, 2};
  target.rates.dram = {target.rates.f32, 2 * target.rates.f32};  // much more than is needed
  EXPECT_GT(plan_winograd(shape, target, 2).tile_columns, 1);
  target.rates.dram = {target.rates.f32 / 12, target.rates.f32 / 6};
  const WinogradPlan slow = plan_winograd(shape, target, 2);
  EXPECT_EQ(slow.tile_rows, 16);
  EXPECT_EQ(slow.tile_columns, 1);
}

TEST(WinogradPlan, TakesTurnsAtLoading) {
  // 26x1 vectors have no more left-over tiles than 13x2, but a load for every multiply-add.
  const WinogradPlan plan = plan_winograd({1, 256, 256, 14, 14, 2}, winograd_machine(), 2);
  EXPECT_GT(plan.tile_columns, 1);
}

TEST(WinogradPlan, TimesFollowTheArithmetic) {
  const hw::CpuTarget target = winograd_machine();
  const auto time = [&](const WinogradShape& shape, int threads) {
    return plan_winograd(shape, target, threads).time.total();
  };
  const double one = time({1, 128, 128, 56, 56, 4}, 1), two = time({1, 128, 128, 56, 56, 4}, 2);
  EXPECT_GT(one / two, 1.7);
  EXPECT_LE(one / two, 2.001);
  // F(4x4) halves the products of F(2x2), and doubles the weights to read.
  EXPECT_LT(time({1, 256, 256, 56, 56, 4}, 1), 0.65 * time({1, 256, 256, 56, 56, 2}, 1));
  EXPECT_GT(plan_winograd({1, 512, 512, 7, 7, 4}, target, 2).time.dram,
            2 * plan_winograd({1, 512, 512, 7, 7, 2}, target, 2).time.dram);
  // Four times the images take about four times as long.
  EXPECT_NEAR(time({4, 64, 64, 56, 56, 4}, 2) / time({1, 64, 64, 56, 56, 4}, 2), 4, 0.4);
}

TEST(WinogradPlan, PaysForWeightsFromMemoryOncePerPass) {
  hw::CpuTarget target = winograd_machine();
  target.l3_bytes = 16 << 20;
  const WinogradShape shape{1, 1024, 1024, 7, 7, 2};  // a strip for all: one pass
  const double weights = 16 * 1024 * 1024 * 4.0;
  const WinogradPlan plan = plan_winograd(shape, target, 2);
  EXPECT_DOUBLE_EQ(plan.time.dram, weights / target.rates.dram.all);
  EXPECT_LT(plan.time.l3, 0.2 * plan.time.dram);
  // Strips of one image each pass over them again.
  const WinogradPlan twice = winograd_plan_at({2, 1024, 1024, 7, 7, 2}, plan, 0, target, 2);
  EXPECT_DOUBLE_EQ(twice.time.dram, 2 * plan.time.dram);
}

}  // namespace
}  // namespace tilewright::cost
