// For tests: what the rule makes of a program for a GPU computes what the program means.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::rules {

/// Runs `plan` in random orders of threads, with races reported, its copies made at once and as
/// late as waits allow: it computes what `func` means.
inline void expect_plan_meaning(const Func& func, const lower::GpuLaunches& plan,
                                const interp::Arguments& arguments, double tolerance = 0) {
  using lower::testing::Order;
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  for (const Order order : {Order::Adversarial, Order::Late}) {
    const auto run = lower::testing::run_plan(func, plan, arguments.arrays, order);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(plan.kernels[0].func);
    ASSERT_EQ(run->outputs.size(), expected->outputs.size());
    for (const auto& [name, value] : run->outputs)
      for (int64_t i = 0; i < value.size(); ++i)
        ASSERT_NEAR(value.get(i), expected->outputs.at(name).get(i), tolerance) << name << " " << i;
  }
}

/// The same of what the rule makes of `func`. Returns the plan.
inline lower::GpuLaunches expect_gpu_meaning(const Func& func, const hw::GpuTarget& target,
                                             double tolerance = 1e-4) {
  const auto scheduled = schedule::replay(func, gpu_trace(func, target));
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  if (!scheduled) return {};
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  EXPECT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  if (!plan) return {};
  expect_plan_meaning(func, *plan, quarters(func), tolerance);
  return *plan;
}

}  // namespace tilewright::rules
