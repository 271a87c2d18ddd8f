// Which steps a kernel is listed with.
#include "tilewright/driver/report/explain_sass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

using ::testing::ElementsAre;

TEST(ExplainSass, StepsOfAKernelArePreparedOnesTooEachOnce) {
  runtime::GpuProgram program;
  program.kernels.resize(3);
  program.kernels[0].symbol = "pack", program.kernels[1].symbol = "mul";
  program.kernels[2].symbol = "unused";
  const auto call = [](int kernel, const char* step) {
    runtime::GpuCall made;
    made.kernel = kernel, made.step = step;
    return made;
  };
  program.prepare = {call(0, "conv1"), call(0, "conv2")};
  program.calls = {call(1, "conv1"), call(1, "conv1"), call(0, "conv3"), call(1, "conv2")};
  EXPECT_THAT(steps_of(program, "pack"), ElementsAre("conv1", "conv2", "conv3"));
  EXPECT_THAT(steps_of(program, "mul"), ElementsAre("conv1", "conv2"));
  EXPECT_THAT(steps_of(program, "unused"), ElementsAre());
}

}  // namespace
}  // namespace tilewright::driver
