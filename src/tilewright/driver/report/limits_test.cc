#include "tilewright/driver/report/limits.h"

#include <gtest/gtest.h>

#include "tilewright/compile/kernel_works.h"
#include "tilewright/driver/report/profile_report.h"
#include "tilewright/graph/ir/builder.h"

namespace tilewright::driver {
namespace {

using Place = runtime::ValueSpec::Place;

/// 100 operations and 1 byte per ns from DRAM; every nearer level twice the bytes of the next.
hw::CpuTarget machine() {
  hw::CpuTarget target;
  target.l1_bytes = 1 << 10;
  target.l2_bytes = 8 << 10;
  target.l3_bytes = 64 << 10;
  target.rates.f32 = 100;
  target.rates.l1 = {8, 16};
  target.rates.l2 = {4, 8};
  target.rates.l3 = {2, 4};
  target.rates.dram = {1, 1};
  return target;
}

runtime::ValueSpec floats(Place place, int64_t offset, int64_t count) {
  runtime::ValueSpec value;
  value.place = place;
  value.offset = offset;
  value.shape = {count};
  return value;
}

runtime::StepSpec step(const std::string& kernel, std::vector<int> args) {
  runtime::StepSpec spec;
  spec.name = spec.kernel = kernel;
  spec.args = std::move(args);
  return spec;
}

runtime::KernelWork work(int64_t operations) {
  runtime::KernelWork result;
  result.operations = operations;
  return result;
}

TEST(Limits, BytesComeFromWhereTheirLastUseLeftThem) {
  runtime::Program program;
  program.values = {floats(Place::Input, 0, 64), floats(Place::Weights, 0, 4096),
                    floats(Place::Arena, 0, 64), floats(Place::Weights, 16384, 20480),
                    floats(Place::Output, 0, 64)};
  program.steps = {step("a", {0, 1, 2}), step("b", {2, 3, 4})};
  // Bytes: input, middle and output 256 each, weights 16384 and 81920. Between two uses of the
  // first weights everything else is touched: more than the 64 KB of L3.
  const std::vector<StepLimit> limits = step_limits(program, machine(), 1);
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[0].bytes, 256 + 16384 + 256);
  EXPECT_EQ(limits[0].from[3], 256 + 16384 + 256);
  EXPECT_EQ(limits[0].memory_ns, 256 + 16384 + 256);
  EXPECT_EQ(limits[0].bound, "dram");
  EXPECT_EQ(limits[1].from[0], 256);  // what the step before has just written
  EXPECT_EQ(limits[1].from[3], 81920 + 256);
  EXPECT_EQ(limits[1].memory_ns, 81920 + 256);
}

TEST(Limits, ASmallProgramStaysInTheNearLevels) {
  runtime::Program program;
  program.values = {floats(Place::Input, 0, 64), floats(Place::Weights, 0, 1024),
                    floats(Place::Output, 0, 64)};
  program.steps = {step("a", {0, 1, 2})};
  const std::vector<StepLimit> limits = step_limits(program, machine(), 1);
  EXPECT_EQ(limits[0].from[1], 256 + 4096 + 256);
  EXPECT_EQ(limits[0].memory_ns, (256 + 4096 + 256) / 4.0);
  EXPECT_EQ(limits[0].bound, "l2");
  // Two threads hold and read twice as much.
  EXPECT_EQ(step_limits(program, machine(), 2)[0].memory_ns, (256 + 4096 + 256) / 8.0);
}

TEST(Limits, TheLongerOfArithmeticAndMemoryBinds) {
  runtime::Program program;
  program.values = {floats(Place::Input, 0, 64), floats(Place::Output, 0, 64)};
  program.steps = {step("a", {0, 1})};
  const auto limits_with = [&](int64_t operations) {
    program.works = {{"a", work(operations)}};
    return step_limits(program, machine(), 1)[0];
  };
  StepLimit limit = limits_with(1000000);
  EXPECT_EQ(limit.compute_ns, 1e4);
  EXPECT_EQ(limit.ns(), 1e4);
  EXPECT_EQ(limit.bound, "f32");
  limit = limits_with(10);
  EXPECT_EQ(limit.ns(), 512 / 8.0);
  EXPECT_EQ(limit.bound, "l1");
}

TEST(Limits, OneValueUnderTwoArgumentsCountsOnce) {
  runtime::Program program;
  program.values = {floats(Place::Input, 0, 64), floats(Place::Output, 0, 64)};
  program.steps = {step("square", {0, 0, 1})};
  EXPECT_EQ(step_limits(program, machine(), 1)[0].bytes, 512);
}

TEST(Limits, WinogradCountsThePlainConvolution) {
  compile::CompiledModel model;
  graph::Graph& graph = model.graph;
  const auto x = graph.add_value("x", {DType::F32, {1, 2, 8, 8, 16}});
  const auto u = graph.add_value("u", {DType::F32, {3, 6, 6, 32, 16}});
  const auto y = graph.add_value("y", {DType::F32, {1, 3, 8, 8, 16}});
  graph::Node node;
  node.name = "conv";
  node.domain = "tilewright";
  node.op = "WinogradConvBlocked";
  node.attrs.values["m"] = int64_t{4};
  node.inputs = {x, u};
  node.outputs = {y};
  graph.nodes = {node};
  compile::KernelReport kernel;
  kernel.symbol = "k";
  kernel.steps = {"conv"};
  kernel.func.body = seq({});
  model.kernels = {kernel};
  const runtime::KernelWork found = compile::kernel_works(model).at("k");
  EXPECT_EQ(found.operations, 2.0 * 9 * 32 * 48 * 8 * 8);
  EXPECT_EQ(found.algorithm, "winograd F(4x4)");
}

TEST(Profile, TimesAreMediansWithoutTheClock) {
  StepTimes times(3, 10);
  for (const int64_t last : {210, 110, 5010}) times.add({last, 2 * last, 5});
  EXPECT_EQ(times.medians(), (std::vector<double>{200, 410, 0}));
  EXPECT_EQ(StepTimes(2, 10).medians(), (std::vector<double>{0, 0}));
}

TEST(Profile, StepsAndTheRestMakeTheLatency) {
  const std::vector<ProfiledStep> steps = {{"a", "k0", 2000}, {"b", "k1", 3000}};
  std::vector<StepLimit> limits(2);
  limits[0].compute_ns = 1000;
  limits[0].operations = 8000;
  limits[0].bytes = 10;
  limits[1].memory_ns = 1500;
  limits[1].bytes = 20;
  const nlohmann::ordered_json json = profile_json(steps, limits, 5200);
  EXPECT_DOUBLE_EQ(json["steps"][0]["of_limit"], 0.5);
  EXPECT_DOUBLE_EQ(json["steps"][0]["gops"], 4);
  EXPECT_DOUBLE_EQ(json["steps"][1]["of_limit"], 0.5);
  EXPECT_DOUBLE_EQ(json["kernels"]["us"], 5);
  EXPECT_DOUBLE_EQ(json["kernels"]["limit_us"], 2.5);
  EXPECT_DOUBLE_EQ(json["kernels"]["of_limit"], 0.5);
  EXPECT_EQ(json["kernels"]["bytes"], 30);
  EXPECT_DOUBLE_EQ(json["between_us"], 0.2);
  EXPECT_DOUBLE_EQ(json["latency_us"], 5.2);
  const std::string text = profile_table(steps, limits, 5200);
  EXPECT_NE(text.find("between kernels"), std::string::npos);
  EXPECT_NE(text.find("50 %"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::driver
