// What tests of rules for instructions expect.
#pragma once

#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {

/// The rules make one nest of `func` instructions; scheduled and lowered, it computes the same.
inline void expect_instructions(const Func& func, const hw::CpuTarget& target, int threads) {
  const schedule::Trace trace = default_trace(func, target, threads);
  EXPECT_EQ(tensorized(trace), 1u) << print(func) << print(trace);
  const auto made = schedule::replay(func, trace);
  ASSERT_TRUE(made) << to_string(made.error());
  const auto lowered = lower::run_pipeline(*made, "cpu");
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const interp::Arguments arguments = whole_bytes(func);
  const auto want = interp::run(func, arguments);
  ASSERT_TRUE(want);
  for (const Func* f : {&*made, &*lowered}) {
    const auto got = interp::run(*f, arguments);
    ASSERT_TRUE(got) << to_string(got.error()) << print(*f);
    for (const auto& [name, array] : want->outputs)
      EXPECT_TRUE(identical(array, got->outputs.at(name))) << name << print(*f);
  }
}

}  // namespace tilewright::rules
