#include "tilewright/rules/gpu/winograd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/meaning.h"

namespace tilewright::rules {
namespace {

using lower::testing::Order;
using Ints = std::vector<int64_t>;

Func winograd(int64_t m, const Shape& x, int64_t filters, const Ints& pads, bool bias = false) {
  const int64_t points = m + 2;
  OpCase op{"tilewright",
            "WinogradConv",
            {x, {1, points, points, x[1], filters}},
            {{"m", m}, {"pads", pads}}};
  if (bias) op.inputs.push_back({filters});
  return func_of(op);
}

struct PlainWinogradCase {
  std::string name;
  Func func;
};

class GpuWinograd : public ::testing::TestWithParam<PlainWinogradCase> {};

TEST_P(GpuWinograd, ThreeKernelsKeepTheMeaning) {
  hw::GpuTarget target;
  target.name = "small";
  const Func& func = GetParam().func;
  const auto scheduled = schedule::replay(func, gpu_trace(func, target));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  EXPECT_EQ(plan->kernels.size(), 3u) << print(*scheduled);
  const interp::Arguments arguments = quarters(func);
  expect_plan_meaning(func, *plan, arguments, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, GpuWinograd,
    ::testing::Values(
        PlainWinogradCase{"even", winograd(2, {1, 5, 8, 8}, 6, {1, 1, 1, 1})},
        PlainWinogradCase{"odd", winograd(2, {2, 3, 7, 9}, 5, {1, 1, 1, 1}, true)},
        // Nine tiles and twenty channels: no power of two divides either evenly.
        PlainWinogradCase{"odd_tiles", winograd(4, {1, 20, 12, 12}, 20, {1, 1, 1, 1})},
        PlainWinogradCase{"large_tiles", winograd(4, {1, 4, 11, 6}, 6, {0, 1, 1, 0}, true)}),
    [](const auto& test) { return test.param.name; });

TEST(GpuWinograd, TransformsStayInRegistersAndProductsTakeTiles) {
  const hw::GpuTarget h200 = *hw::find_gpu_target("cuda");
  const Func func = winograd(4, {1, 64, 32, 32}, 64, {1, 1, 1, 1}, true);
  const auto scheduled = schedule::replay(func, gpu_trace(func, h200));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const std::string text = print(*scheduled);
  for (const char* part : {"block wino_pixels", "block wino_rows", "block wino_half"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is computed anew for each point";
  EXPECT_NE(text.find("alloc wino_in.shared"), std::string::npos) << "products read tiles";
  EXPECT_NE(text.find("alloc wino_in:"), std::string::npos) << "which another kernel made";
}

TEST(GpuWinograd, WhereMultiplicationsCostMoreThanTraffic) {
  const hw::GpuTarget h200 = *hw::find_gpu_target("cuda");
  // A large layer; a small one, where launches count; few channels, where traffic does.
  EXPECT_GT(gpu_winograd_tile({16, 256, 256, 56, 56, 3, 3}, h200), 0);
  EXPECT_EQ(gpu_winograd_tile({1, 64, 64, 14, 14, 3, 3}, h200), 0);
  EXPECT_EQ(gpu_winograd_tile({16, 3, 8, 224, 224, 3, 3}, h200), 0);
  // Other windows, and threads with few registers.
  EXPECT_EQ(gpu_winograd_tile({16, 256, 256, 56, 56, 5, 5}, h200), 0);
  EXPECT_EQ(gpu_winograd_tile({16, 256, 256, 56, 56, 3, 3}, *hw::find_gpu_target("opencl")), 0);
}

}  // namespace
}  // namespace tilewright::rules
