// Tiles with elements side by side and copies that run ahead: they mean what the operator does, in
// every order of threads and with copies as late as may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

using lower::testing::Order;
using Ints = std::vector<int64_t>;

/// Threads, elements and elements side by side along an axis.
struct Share {
  int64_t threads = 1, each = 1, vector = 1;
};
struct GpuTileCase {
  std::string name;
  OpCase op;
  std::vector<Share> axes;
  int64_t steps = 4, depth = 2;
  bool pipelined = true;
  int barriers = 1;  ///< in the loop over rounds
};

/// The tile of the rule with the shares and steps of `c`.
PlanGpu plan_of(const GpuTileCase& c) {
  return [&c](const BlockFacts& block, const hw::GpuTarget& target) {
    GpuPlan plan;
    plan.tile = choose_gpu_tile(block, target);
    if (!plan.tile) return plan;
    GpuTile& tile = *plan.tile;
    EXPECT_EQ(tile.axes.size(), c.axes.size());
    for (size_t i = 0; i < std::min(c.axes.size(), tile.axes.size()); ++i) {
      tile.axes[i].threads = c.axes[i].threads;
      tile.axes[i].each = c.axes[i].each;
      tile.axes[i].vector = c.axes[i].vector;
    }
    tile.steps[0] = c.steps;
    tile.depth = c.depth;
    tile.splits = 1;
    return plan;
  };
}

hw::GpuTarget gpu_tile_small_target() {
  hw::GpuTarget target;
  target.name = "small";
  target.shared_bytes = 64 << 10;
  return target;
}

std::vector<GpuTileCase> gpu_tile_cases() {
  const OpCase product = {"", "MatMul", {{32, 24}, {24, 48}}, {}};
  const OpCase conv = {"", "Conv", {{1, 12, 10, 10}, {24, 12, 3, 3}}, {{"pads", Ints{1, 1, 1, 1}}}};
  return {
      {"vectors", product, {{2, 8, 4}, {4, 4, 4}}, 8, 1, false},
      {"two_rounds", product, {{2, 8, 4}, {4, 8, 4}}, 8, 2},
      {"four_rounds", product, {{4, 4, 2}, {4, 8, 4}}, 4, 4},
      // All but one round are copied ahead, so the slot of the last is a number, which no iteration
      // is compared with.
      {"more_rounds_than_there_are", product, {{2, 4, 4}, {4, 4, 1}}, 12, 4, true, 2},
      {"one_round", product, {{2, 4, 4}, {4, 4, 1}}, 24, 2, false},
      {"tails", {"", "MatMul", {{37, 19}, {19, 46}}, {}}, {{4, 8, 4}, {4, 8, 4}}, 4, 3},
      {"turned_factor",
       {"", "Gemm", {{21, 24}, {40, 24}, {40}}, {{"transB", int64_t{1}}}},
       {{4, 4, 4}, {4, 8, 4}},
       8,
       2},
      {"padded_conv", conv, {{}, {2, 8, 4}, {2, 2, 1}, {4, 2, 1}}, 2, 3},
      {"pointwise_conv",
       {"", "Conv", {{1, 16, 8, 8}, {20, 16, 1, 1}}, {}},
       {{}, {2, 8, 4}, {4, 2, 1}, {2, 4, 4}},
       4,
       2},
  };
}

class GpuTiles : public ::testing::TestWithParam<GpuTileCase> {};

TEST_P(GpuTiles, KeepTheMeaning) {
  const GpuTileCase& c = GetParam();
  const hw::GpuTarget target = gpu_tile_small_target();
  const Func func = func_of(c.op);
  bool as_planned = false;
  const schedule::Trace trace = gpu_trace(func, target, plan_of(c), &as_planned);
  ASSERT_TRUE(as_planned) << print(trace);
  EXPECT_EQ(std::any_of(trace.begin(), trace.end(),
                        [](const schedule::Step& step) {
                          return std::holds_alternative<schedule::Pipeline>(step);
                        }),
            c.pipelined)
      << print(trace);
  const auto scheduled = schedule::replay(func, trace);
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  const interp::Arguments arguments = quarters(func);
  expect_plan_meaning(func, *plan, arguments, 1e-4);
}

/// However many rounds copies run ahead.
TEST_P(GpuTiles, HaveOneBarrierPerRound) {
  const GpuTileCase& c = GetParam();
  if (!c.pipelined) GTEST_SKIP() << "copies do not run ahead";
  const Func func = func_of(c.op);
  const auto scheduled =
      schedule::replay(func, gpu_trace(func, gpu_tile_small_target(), plan_of(c)));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, gpu_tile_small_target());
  ASSERT_TRUE(plan) << to_string(plan.error());
  int loops = 0, barriers = 0;
  for (const lower::GpuKernel& kernel : plan->kernels)
    walk(kernel.func.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop == nullptr || loop->marks.empty()) return;
      ++loops;
      walk(loop->body, [&](const Stmt& x) { barriers += lower::is_sync(x) ? 1 : 0; });
    });
  EXPECT_GE(loops, 1);
  EXPECT_EQ(barriers, c.barriers) << print(plan->kernels[0].func);
}

INSTANTIATE_TEST_SUITE_P(GpuTile, GpuTiles, ::testing::ValuesIn(gpu_tile_cases()),
                         [](const auto& test) { return test.param.name; });

/// The copy whose rows a thread reads side by side is turned round, its rows begin in other banks.
TEST(GpuTile, WhatIsReadTogetherLiesTogether) {
  const GpuTileCase c = gpu_tile_cases()[1];
  const schedule::Trace trace = gpu_trace(func_of(c.op), gpu_tile_small_target(), plan_of(c));
  std::vector<std::string> turned, padded, later;
  for (const schedule::Step& step : trace) {
    if (const auto* layout = std::get_if<schedule::Layout>(&step)) turned.push_back(layout->buffer);
    const auto* mark = std::get_if<schedule::SetMark>(&step);
    if (mark) (mark->mark == "pad" ? padded : later).push_back(mark->target);
  }
  EXPECT_EQ(turned, std::vector<std::string>{"x0.shared"}) << print(trace);
  EXPECT_EQ(padded, turned);
  EXPECT_EQ(later, (std::vector<std::string>{"x0.shared", "x1.shared"}));
}

}  // namespace
}  // namespace tilewright::rules
