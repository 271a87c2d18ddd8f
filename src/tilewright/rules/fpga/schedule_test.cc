#include "tilewright/rules/fpga/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/processes.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/schedule/testing/fpga_traces.h"

namespace tilewright::rules {
namespace {

using ::testing::HasSubstr;

/// What differs between `func` and its best schedule; empty if nothing.
std::string wrong_with(const Func& func, const char* device, size_t processes) {
  const auto best = best_fpga_schedule(func, *hw::load_fpga_device(device));
  if (!best) return to_string(best.error());
  const interp::Arguments arguments = lower::testing::arguments_of(func, 3);
  const std::string difference = lower::testing::difference(
      interp::run(func, arguments).value(), interp::run(best->func, arguments).value(), 0);
  if (!difference.empty()) return difference;
  const Func lowered = lower::run_pipeline(best->func, "fpga").value();
  const auto program = lower::processes_of(lowered);
  if (!program) return to_string(program.error());
  if (program->regions.size() != 1 || program->regions[0].processes.size() != processes)
    return "other processes:\n" + print(lowered);
  return "";
}

TEST(FpgaSchedule, ConvolutionsAndProducts) {
  for (const char* device : {"vu9p", "zcu104", "zynq7020", "vc707"})
    for (const std::string_view text :
         {schedule::testing::kFpgaConv, schedule::testing::kFpgaProduct})
      EXPECT_EQ(wrong_with(*parse_func(text), device, 4), "") << device << text;
}

TEST(FpgaSchedule, WhatTheDesignKeepsIsReadOutsideOfItsTiles) {
  const Func func = *parse_func(schedule::testing::kFpgaConv);
  const auto best = best_fpga_schedule(func, *hw::load_fpga_device("vu9p"));
  ASSERT_TRUE(best) << to_string(best.error());
  EXPECT_THAT(print(best->trace), HasSubstr("dataflow(loop="));
  EXPECT_THAT(print(best->func), HasSubstr("@(pipeline=dataflow)"));
}

TEST(FpgaSchedule, ProgramsWithoutOneSumHaveNone) {
  const auto best = best_fpga_schedule(
      *parse_func(
          "func f(X: f32[8], out Y: f32[8]) { for i in 8 { block Y(a: space 8 = i) { Y[a] = "
          "X[a] * 2.0 } } }"),
      *hw::load_fpga_device("vu9p"));
  ASSERT_FALSE(best);
  EXPECT_THAT(to_string(best.error()), HasSubstr("it has 0 sums of products"));
}

}  // namespace
}  // namespace tilewright::rules
