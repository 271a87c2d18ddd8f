// Schedules for a GPU through the real worker, `tilewright measure-child`, on the first OpenCL
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/driver/tuning/gpu_calibrate.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/tensor/workload.h"
#include "tilewright/tune/gpu_space.h"

namespace tilewright::driver {
namespace {

using measure::OutcomeKind;
using ::testing::HasSubstr;

class GpuWorker : public testing::Test {
 protected:
  void SetUp() override {
    const auto device = gpu_for(target_, "opencl");
    if (!device) GTEST_SKIP() << to_string(device.error());
    const auto call = tensor::workload_call("conv2d", {{"batch", 1},
                                                       {"in_channels", 5},
                                                       {"height", 9},
                                                       {"width", 9},
                                                       {"kernel_h", 3},
                                                       {"kernel_w", 3},
                                                       {"out_channels", 12},
                                                       {"pad", 1},
                                                       {"stride", 1}});
    ASSERT_TRUE(call) << to_string(call.error());
    const auto func = tensor::op_func(*call);
    ASSERT_TRUE(func) << to_string(func.error());
    task_.name = "conv";
    task_.func = *func;
    task_.target = hw::as_target(target_);
    task_.device = {(*device)->info().id, (*device)->info().name};
    task_.threads = hw::host().cores;
  }

  const hw::GpuTarget target_ = *hw::find_gpu_target("opencl");
  measure::Task task_;
};

std::unique_ptr<measure::Measurer> measurer() {
  measure::MeasureOptions options;
  options.worker = {TILEWRIGHT_PROGRAM, "measure-child"};
  options.limit_seconds = 60;
  options.readings = 3;
  auto started = measure::start_measurer(options);
  EXPECT_TRUE(started) << to_string(started.error());
  return *std::move(started);
}

TEST_F(GpuWorker, MeasuresWhatRunsAndCountsWhatDoesNot) {
  const auto measure = measurer();
  const auto evaluator = measure->evaluator(task_);
  ASSERT_TRUE(evaluator) << to_string(evaluator.error());
  const schedule::Trace rule = rules::gpu_trace(task_.func, target_);
  const auto space = tune::constructive_gpu_space(task_.func, target_);
  ASSERT_TRUE(space);
  Rng rng(3);
  std::vector<measure::Candidate> candidates = {{{}, rule}};
  while (candidates.size() < 4) {
    const search::Point point = space->space().random(rng);
    if (auto trace = space->trace(point)) candidates.push_back({point, *std::move(trace)});
  }
  // Steps that do not apply, late and early.
  schedule::Trace late = rule, early = rule;
  const auto bind = std::find_if(late.begin(), late.end(), [](const auto& step) {
    return std::holds_alternative<schedule::Bind>(step);
  });
  ASSERT_NE(bind, late.end());
  std::get<schedule::Bind>(*bind).loop = "nowhere";
  early.insert(early.begin(), schedule::Split{"nowhere", 2});
  candidates.push_back({{}, late});
  candidates.push_back({{}, early});
  candidates.push_back({{}, rule});
  const std::vector<measure::Reading> readings = (*evaluator)->evaluate(candidates);
  for (const size_t i : {0u, 1u, 2u, 3u, 6u}) {
    EXPECT_EQ(readings[i].kind, OutcomeKind::Ok) << readings[i].reason;
    EXPECT_GT(readings[i].cost, 100) << i;  // ns
    EXPECT_LT(readings[i].cost, 1e9) << i;
  }
  EXPECT_EQ(readings[4].kind, OutcomeKind::Invalid);
  EXPECT_EQ(readings[5].kind, OutcomeKind::Invalid);
  const auto ratios = measure->race(task_, {rule, rule}, 5);
  ASSERT_TRUE(ratios) << to_string(ratios.error());
  EXPECT_GT(ratios->at(1), 0.2);
  EXPECT_LT(ratios->at(1), 5);
}

TEST_F(GpuWorker, LoopsAsWrittenRunToo) {
  const auto evaluator = measurer()->evaluator(task_);
  ASSERT_TRUE(evaluator) << to_string(evaluator.error());
  const measure::Reading reading = (*evaluator)->evaluate({{{}, {}}}).at(0);
  EXPECT_EQ(reading.kind, OutcomeKind::Ok) << reading.reason;
}

TEST_F(GpuWorker, RatesOfTheDeviceArePlausible) {
  const auto device = gpu_for(target_, "opencl");
  int steps = 0;
  const auto rates = calibrate_gpu(target_, **device, [&](int done, int total, const std::string&) {
    EXPECT_EQ(done, steps++);
    EXPECT_LT(done, total);
    return Status{};
  });
  ASSERT_TRUE(rates) << to_string(rates.error());
  EXPECT_TRUE(rates->measured);
  // Low, since others may be at work.
  EXPECT_GT(rates->f32, 0.01);
  EXPECT_LT(rates->f32, 1e6);
  EXPECT_GT(rates->shared, 0.01);
  EXPECT_GT(rates->dram, 0.01);
  EXPECT_GT(rates->launch_ns, 50);
  EXPECT_LT(rates->launch_ns, 1e8);
  EXPECT_GT(rates->sync_ns, 0.01);
  const auto stopped = calibrate_gpu(target_, **device, [](int done, int, const std::string&) {
    return done < 2 ? Status{} : Status(fail(ErrorKind::Interrupted, "enough"));
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::Interrupted);
}

TEST(GpuKernel, KeysNameTargetAndDevice) {
  runtime::GpuDeviceInfo device;
  device.name = "a GPU";
  EXPECT_EQ(gpu_target_key(*hw::find_gpu_target("cuda"), device), "cuda-sm_90a:a GPU");
  EXPECT_EQ(gpu_target_key(*hw::find_gpu_target("cuda-sm_90a"), device), "cuda-sm_90a:a GPU");
  EXPECT_EQ(gpu_target_key(*hw::find_gpu_target("opencl-mali"), device), "opencl-mali:a GPU");
  const auto other = gpu_for(*hw::find_gpu_target("opencl"), "cuda:1");
  ASSERT_FALSE(other);
  EXPECT_THAT(to_string(other.error()), HasSubstr("--device opencl"));
}

}  // namespace
}  // namespace tilewright::driver
