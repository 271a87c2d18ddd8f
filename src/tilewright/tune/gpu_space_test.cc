// Every point of a space for GPUs is refused with a reason, or keeps the meaning.
#include "tilewright/tune/gpu_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu.h"
#include "tilewright/lower/testing/gpu_runner.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/rule.h"

namespace tilewright::tune {
namespace {

using Ints = std::vector<int64_t>;
using lower::testing::Order;

hw::GpuTarget gpu_space_small_target() {
  hw::GpuTarget target;
  target.name = "small";
  target.shared_bytes = 16 << 10;
  return target;
}

/// No block has more threads, and no buffer more shared memory, than `target` has.
void expect_limits(const lower::GpuLaunches& plan, const hw::GpuTarget& target) {
  for (const lower::GpuKernel& kernel : plan.kernels) {
    EXPECT_LE(kernel.block[0] * kernel.block[1] * kernel.block[2], target.max_threads);
    walk(kernel.func.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr || alloc->buffer.scope() != "shared") return;
      int64_t count = 1;
      for (const Expr& extent : alloc->buffer.shape()) count *= *as_int(extent);
      EXPECT_LE(storage_bytes(alloc->buffer.dtype(), count), target.shared_bytes)
          << alloc->buffer.name();
    });
  }
}

/// Random points, until `wanted` of them make a schedule; each must compute what `func` does.
void check_points(const Func& func, const ScheduleSpace& space, int wanted,
                  const hw::GpuTarget& target = gpu_space_small_target()) {
  const interp::Arguments arguments = rules::quarters(func);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected);
  Rng rng(7);
  int good = 0;
  for (int i = 0; i < 400 && good < wanted; ++i) {
    const search::Point point = space.space().canonical(space.space().random(rng));
    SCOPED_TRACE(space.space().text(point));
    EXPECT_EQ(space.terms(point).size(), space.terms(search::Point(point.size(), 0)).size());
    const Result<schedule::Trace> trace = space.trace(point);
    if (!trace) {
      EXPECT_EQ(trace.error().kind, ErrorKind::NotApplicable);
      continue;
    }
    EXPECT_TRUE(std::isfinite(space.prior(point)));
    const auto scheduled = schedule::replay(func, *trace);
    ASSERT_TRUE(scheduled) << to_string(scheduled.error());
    const auto plan = lower::lower_for_gpu(*scheduled, target);
    if (!plan) {  // an estimate of shared memory may be low
      EXPECT_EQ(plan.error().kind, ErrorKind::Capacity) << to_string(plan.error());
      continue;
    }
    ++good;
    expect_limits(*plan, target);
    const auto run = lower::testing::run_plan(func, *plan, arguments.arrays, Order::Adversarial);
    ASSERT_TRUE(run) << to_string(run.error());
    EXPECT_THAT(run->findings, ::testing::IsEmpty()) << print(*scheduled);
    for (const auto& [name, value] : run->outputs)
      for (int64_t k = 0; k < value.size(); ++k)
        ASSERT_NEAR(value.get(k), expected->outputs.at(name).get(k), 1e-4) << name << " " << k;
  }
  EXPECT_EQ(good, wanted);
}

rules::OpCase product() { return {"", "MatMul", {{20, 37}, {37, 34}}, {}}; }
rules::OpCase convolution() {
  return {"", "Conv", {{1, 5, 9, 9}, {12, 5, 3, 3}}, {{"pads", Ints{1, 1, 1, 1}}}};
}

TEST(GpuSpace, D4_PointsOfProductsKeepTheMeaning) {
  const Func func = rules::func_of(product());
  const auto space = constructive_gpu_space(func, gpu_space_small_target());
  ASSERT_TRUE(space);
  EXPECT_GT(space->space().size(), 1000);
  check_points(func, *space, 12);
}

TEST(GpuSpace, D4_PointsOfConvolutionsKeepTheMeaning) {
  const Func func = rules::func_of(convolution());
  const auto space = constructive_gpu_space(func, gpu_space_small_target());
  ASSERT_TRUE(space);
  check_points(func, *space, 8);
}

TEST(GpuSpace, D4_PointsOfSumsKeepTheMeaning) {
  const Func func = rules::func_of(rules::OpCase{"", "ReduceSum", {{6, 300}}, {{"axes", Ints{1}}}});
  const auto space = constructive_gpu_space(func, gpu_space_small_target());
  ASSERT_TRUE(space);
  check_points(func, *space, 6);
}

TEST(GpuSpace, EveryAxisOnItsOwn) {
  const Func func = rules::func_of(convolution());
  const auto space = tiling_gpu_space(func, gpu_space_small_target());
  ASSERT_TRUE(space);
  EXPECT_GT(space->space().size(),
            constructive_gpu_space(func, gpu_space_small_target())->space().size());
  check_points(func, *space, 6);
}

TEST(GpuSpaceSlow, HoldsTheRulesOwnTile) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = rules::func_of(rules::OpCase{"", "MatMul", {{256, 320}, {320, 512}}, {}});
  const auto space = constructive_gpu_space(func, target);
  const auto decision = gpu_decision(func, target);
  ASSERT_TRUE(space && decision);
  const std::string rule = schedule::print(rules::gpu_trace(func, target));
  bool found = false;
  double least = INFINITY;
  for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i) {
    const search::Point point = space->space().at(i);
    const double prior = space->prior(point);
    least = std::min(least, prior);
    if (found || std::abs(prior - decision->chosen.time.total) > 1e-6) continue;
    const auto trace = space->trace(point);
    found = trace && schedule::print(*trace) == rule;
  }
  EXPECT_TRUE(found);
  EXPECT_LE(least, decision->chosen.time.total);
}

TEST(GpuSpace, HoldsMatrixTilesAndTheRulesOwn) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  tensor::OpCall call;
  call.op = "MatMul";
  for (const Shape& shape : {Shape{24, 128}, Shape{128, 24}})
    call.inputs.push_back({true, DType::BF16, shape, {}});
  Func func = *tensor::op_func(call);
  const auto space = constructive_gpu_space(func, target);
  ASSERT_TRUE(space);
  check_points(func, *space, 4, target);
  const std::string rule = schedule::print(rules::gpu_trace(func, target));
  bool found = false;
  std::set<std::string> traces;
  for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i) {
    const search::Point point = space->space().at(i);
    if (found && traces.size() > 5) break;
    if (!space->space().text(point).starts_with("form=matrix") ||
        !std::isfinite(space->prior(point)))
      continue;
    const auto trace = space->trace(point);
    if (trace) traces.insert(schedule::print(*trace));
    found |= trace && schedule::print(*trace) == rule;
  }
  EXPECT_TRUE(found);
  EXPECT_GT(traces.size(), 5);
  func.math = MathMode::Exact;
  EXPECT_LT(constructive_gpu_space(func, target)->space().size(), space->space().size());
}

TEST(GpuSpace, NothingToChooseWithoutReductions) {
  const Func func = rules::func_of(rules::OpCase{"", "Relu", {{3, 1001}}, {}});
  EXPECT_EQ(constructive_gpu_space(func, gpu_space_small_target()), nullptr);
  EXPECT_EQ(tiling_gpu_space(func, gpu_space_small_target()), nullptr);
  EXPECT_EQ(tiling_gpu_space(
                rules::func_of(rules::OpCase{"", "ReduceSum", {{6, 300}}, {{"axes", Ints{1}}}}),
                gpu_space_small_target()),
            nullptr);
}

}  // namespace
}  // namespace tilewright::tune
