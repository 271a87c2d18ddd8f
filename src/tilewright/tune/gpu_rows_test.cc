#include "tilewright/tune/gpu_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/tune/gpu_rule.h"
#include "tilewright/tune/testing/kernels.h"

namespace tilewright::tune {
namespace {

using lower::testing::Order;

hw::GpuTarget small_target() {
  hw::GpuTarget target;
  target.name = "small";
  return target;
}

struct Case {
  std::string name;
  OpCase op;
};

class GpuRows : public ::testing::TestWithParam<Case> {};

TEST_P(GpuRows, OneKernelKeepsTheMeaning) {
  const hw::GpuTarget target = small_target();
  const Func func = func_of(GetParam().op);
  const auto scheduled = schedule::replay(func, gpu_trace(func, target));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  ASSERT_EQ(plan->kernels.size(), 1u) << print(*scheduled);
  EXPECT_TRUE(plan->temporaries.empty());
  EXPECT_GE(plan->kernels[0].block[0], 32);
  const interp::Arguments arguments = quarters(func);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Program, Order::Adversarial}) {
    const auto run = lower::testing::run_plan(func, *plan, arguments.arrays, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(*scheduled);
    for (const auto& [name, value] : run->outputs)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(value.get(i), expected->outputs.at(name).get(i), 1e-4) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, GpuRows,
    ::testing::Values(Case{"softmax", {"", "Softmax", {{7, 150}}, {}}},
                      Case{"softmax_of_one_row", {"", "Softmax", {{1, 1000}}, {}}},
                      Case{"softmax_of_a_batch", {"", "Softmax", {{2, 3, 4, 37}}, {}}},
                      Case{"log_softmax", {"", "LogSoftmax", {{5, 300}}, {}}},
                      Case{"layer_norm", {"", "LayerNormalization", {{6, 70}, {70}, {70}}, {}}}),
    [](const auto& test) { return test.param.name; });

TEST(GpuRows, RowsThatDoNotFit) {
  const hw::GpuTarget target = small_target();
  for (const Shape& shape : {Shape{2, 40000}, Shape{300, 5}}) {
    const Func func = func_of({"", "Softmax", {shape}, {}});
    const auto scheduled = schedule::replay(func, gpu_trace(func, target));
    ASSERT_TRUE(scheduled) << to_string(scheduled.error());
    const auto plan = lower::lower_for_gpu(*scheduled, target);
    ASSERT_TRUE(plan) << to_string(plan.error());
    EXPECT_GT(plan->kernels.size(), 1u) << to_string(shape);
  }
}

}  // namespace
}  // namespace tilewright::tune
