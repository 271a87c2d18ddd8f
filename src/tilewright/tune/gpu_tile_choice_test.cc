// Tiles of products on GPUs: what is possible, and that the model's choice is the best of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/tile_choice.h"
#include "tilewright/tune/gpu_space.h"

namespace tilewright::tune {
namespace {

using Ints = std::vector<int64_t>;

/// The table of the first reduction of an operator, as the rule sees it.
std::optional<rules::GpuTileTable> table_of(const rules::OpCase& op, const hw::GpuTarget& target) {
  std::optional<rules::GpuTileTable> table;
  rules::gpu_trace(rules::func_of(op), target,
                   [&](const rules::BlockFacts& block, const hw::GpuTarget& t) {
                     if (!table) table = rules::GpuTileTable::create(block, t);
                     return rules::plan_gpu(block, t);
                   });
  return table;
}

rules::OpCase matmul(int64_t m, int64_t n, int64_t k) {
  return {"", "MatMul", {{m, k}, {k, n}}, {}};
}

rules::OpCase conv(int64_t channels, int64_t size, int64_t filters, int64_t window) {
  return {"",
          "Conv",
          {{1, channels, size, size}, {filters, channels, window, window}},
          {{"pads", Ints(4, window / 2)}}};
}

/// The fastest of all points, each looked at.
double exhaustive(const rules::GpuTileTable& table) {
  double least = INFINITY;
  for (const int64_t ta : table.threads())
    for (const int64_t tb : table.threads())
      for (const int64_t ea : table.each())
        for (const int64_t eb : table.each())
          for (size_t s = 0; s < table.steps().size(); ++s)
            for (const int64_t depth : table.depths())
              for (const int64_t splits : table.splits())
                if (const auto p = table.predict(table.tile({ta, ea, tb, eb, s, depth, splits})))
                  least = std::min(least, p->total);
  return least;
}

TEST(GpuTileChoiceSlow, IsNearlyTheBestOfAllPoints) {
  const std::pair<const char*, rules::OpCase> cases[] = {{"cuda", matmul(4096, 4096, 4096)},
                                                         {"cuda-sm_80", matmul(64, 64, 8192)},
                                                         {"cuda", conv(64, 56, 64, 3)},
                                                         {"opencl-mali", matmul(256, 384, 1000)}};
  for (const auto& [name, op] : cases) {
    SCOPED_TRACE(std::string(name) + " " + op.op);
    const auto table = table_of(op, *hw::find_gpu_target(name));
    ASSERT_TRUE(table);
    int64_t looked_at = 0;
    const auto best = table->best(1, &looked_at);
    ASSERT_FALSE(best.empty());
    EXPECT_LE(best[0].time.total, 1.15 * exhaustive(*table)) << to_string(best[0].tile);
    EXPECT_LT(looked_at, 8000);  // about a millisecond
  }
}

TEST(GpuTileChoice, ListsTheFastestFirst) {
  const auto table = table_of(matmul(1024, 1024, 1024), *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(table);
  const auto best = table->best(10);
  ASSERT_EQ(best.size(), 10u);
  for (size_t i = 1; i < best.size(); ++i) EXPECT_GE(best[i].time.total, best[i - 1].time.total);
  for (const rules::GpuTileTable::Choice& choice : best)
    EXPECT_DOUBLE_EQ(table->predict(choice.tile)->total, choice.time.total);
}

TEST(GpuTileChoice, LargeProductsKeepUnitsBusyAndSmallOnesSpread) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto large = table_of(matmul(8192, 8192, 8192), target)->best(1);
  EXPECT_EQ(large[0].time.bound(), "compute");
  EXPECT_GT(target.rates.f32 * large[0].time.total, 2 * std::pow(8192.0, 3));  // no miracle
  EXPECT_LT(target.rates.f32 * large[0].time.total, 3 * std::pow(8192.0, 3));
  const auto small = table_of(matmul(256, 256, 256), target)->best(1);
  EXPECT_GT(small[0].time.blocks, large[0].time.resident * 16);
}

TEST(GpuTileChoice, PointsAreSharedOutFromTheInnermostAxis) {
  const auto table = table_of(conv(16, 14, 32, 3), *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(table);
  const rules::GpuTile tile = table->tile({8, 4, 32, 2, 0, 1, 1});
  std::vector<int64_t> sizes;
  for (const rules::GpuAxis& axis : tile.axes) sizes.push_back(axis.tile());
  // n, filters, rows, columns: 32 threads on filters; 8 threads with 2 of 4 elements on columns.
  EXPECT_THAT(sizes, testing::ElementsAre(1, 32, 2, 16));
}

TEST(GpuTileChoice, WhatIsNotSharedHasNoTiles) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  EXPECT_FALSE(table_of({"", "MatMul", {{1, 300}, {300, 70}}, {}}, target));
  EXPECT_FALSE(table_of({"", "ReduceSum", {{40, 50}}, {}}, target));
  EXPECT_FALSE(gpu_decision(rules::func_of(rules::OpCase{"", "Relu", {{3, 1001}}, {}}), target));
  const auto decision = gpu_decision(rules::func_of(matmul(512, 512, 512)), target);
  ASSERT_TRUE(decision && decision->runner_up);
  EXPECT_LE(decision->chosen.time.total, decision->runner_up->time.total);
  EXPECT_GT(decision->candidates, 100);
}

TEST(GpuTileChoice, GroupsAreBlocks) {
  const rules::OpCase op{"", "Conv", {{1, 12, 11, 11}, {24, 4, 3, 3}}, {{"group", int64_t{3}}}};
  const auto table = table_of(op, *hw::find_gpu_target("opencl"));
  ASSERT_TRUE(table);
  const auto best = table->best(1);
  ASSERT_FALSE(best.empty());
  EXPECT_EQ(best[0].tile.group, 8);
  EXPECT_EQ(best[0].time.blocks % 3, 0);
}

}  // namespace
}  // namespace tilewright::tune
