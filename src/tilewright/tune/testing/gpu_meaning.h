// For tests: what the rule makes of a program for a GPU computes what the program means.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/tune/gpu_rule.h"
#include "tilewright/tune/testing/kernels.h"

namespace tilewright::tune {

/// Schedules and lowers `func`, and runs it in program order, and in random orders of threads with
/// races reported. Returns the plan.
inline lower::GpuPlan expect_gpu_meaning(const Func& func, const hw::GpuTarget& target,
                                         double tolerance = 1e-4) {
  using lower::testing::Order;
  const auto scheduled = schedule::replay(func, gpu_trace(func, target));
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  if (!scheduled) return {};
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  EXPECT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  const interp::Arguments arguments = quarters(func);
  const auto expected = interp::run(func, arguments);
  EXPECT_TRUE(expected) << to_string(expected.error());
  if (!plan || !expected) return {};
  for (const Order order : {Order::Program, Order::Adversarial, Order::Late}) {
    const auto run = lower::testing::run_plan(func, *plan, arguments.arrays, order);
    EXPECT_TRUE(run) << to_string(run.error());
    if (!run) return *plan;
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(*scheduled);
    for (const auto& [name, value] : run->outputs) {
      double worst = 0;
      for (int64_t i = 0; i < value.size(); ++i)
        worst = std::max(worst, std::abs(value.get(i) - expected->outputs.at(name).get(i)));
      EXPECT_LE(worst, tolerance) << name;
    }
  }
  return *plan;
}

}  // namespace tilewright::tune
