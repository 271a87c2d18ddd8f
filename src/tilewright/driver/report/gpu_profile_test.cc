#include "tilewright/driver/report/gpu_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/compile/gpu/device.h"
#include "tilewright/ir/text.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

/// Two runs of three calls, of which the first two compute one group.
compile::LaunchLog recorded() {
  runtime::GpuProgram program = runtime::sample_program("opencl");
  program.calls[1].step = "first";
  compile::LaunchLog log;
  const auto record = std::make_shared<compile::GpuLaunchRecord>(
      "opencl:0", std::make_shared<const runtime::GpuProgram>(std::move(program)));
  record->add({500, 1500, 2000}, 3000);
  record->add({1500, 2500, 4000}, 5000);
  log.entries.push_back({"net", record});
  return log;
}

std::map<std::string, compile::LaunchCode> compiled() {
  compile::LaunchCode code;
  compile::KernelReport report;
  report.steps = {"first"};
  report.func = *parse_func(
      "func f(X: f32[8], out Y: f32[8]) { for Y.i in 8 { block Y(i: space 8 = Y.i) { Y[i] = X[i] "
      "* 2.0 + 1.0 } } }");
  code.kernels.push_back(std::move(report));
  return {{"net", std::move(code)}};
}

TEST(GpuProfile, CallsOfAGroupAreOneStep) {
  hw::GpuTarget target;
  target.rates.known = true;
  target.rates.f32 = target.rates.dram = 2;
  const std::vector<GpuStepTime> steps = gpu_step_times(recorded(), compiled(), &target);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].launch, "net");
  EXPECT_EQ(steps[0].step, "first");
  EXPECT_EQ(steps[0].kernels, (std::vector<std::string>{"scale", "sum"}));
  EXPECT_EQ(steps[0].ns, 3000);
  EXPECT_EQ(steps[0].operations, 16);
  // x, w, t, which both calls use, and y.
  EXPECT_EQ(steps[0].bytes, 2304 + 24 + 2304 + 72);
  EXPECT_EQ(steps[0].limit_ns, 2352);
  EXPECT_EQ(steps[1].step, "third");
  EXPECT_EQ(steps[1].ns, 3000);
  EXPECT_EQ(steps[1].operations, 0);

  const GpuProfile profile = gpu_profile(recorded(), compiled(), &target);
  EXPECT_EQ(profile.run_ns, 4000) << "the mean of the two runs, not the sum of their calls";
  const std::string table = gpu_profile_table(profile);
  EXPECT_THAT(table, HasSubstr("scale and 1 more"));
  EXPECT_THAT(table, HasSubstr("50.0 %"));
  EXPECT_THAT(table, HasSubstr("78 %"));  // 2352 of 3000
  const nlohmann::ordered_json json = gpu_profile_json(profile);
  EXPECT_EQ(json["total"]["mean_us"], 6);
  EXPECT_EQ(json["run_us"], 4);
  EXPECT_EQ(json["steps"][0]["operations"], 16);
  EXPECT_FALSE(json["steps"][1].contains("operations"));
}

TEST(GpuProfile, WithoutModelOrTargetTimesRemain) {
  const std::vector<GpuStepTime> steps = gpu_step_times(recorded(), {}, nullptr);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].operations, 0);
  EXPECT_EQ(steps[0].limit_ns, 0);
  EXPECT_EQ(steps[0].ns, 3000);
  EXPECT_TRUE(gpu_step_times({}, {}, nullptr).empty());
}

}  // namespace
}  // namespace tilewright::driver
