#include "tilewright/accel/vta/runtime/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

const Loops& loops_of(const Kernel& kernel) {
  const auto* gemm = std::get_if<Gemm>(&kernel.op);
  return gemm != nullptr ? gemm->loops : std::get<Alu>(kernel.op).loops;
}

/// What the hardware does with a kernel: outer loop, inner loop, micro-ops, in this order.
std::vector<Uop> steps_of(const Kernel& kernel) {
  const Loops& loops = loops_of(kernel);
  std::vector<Uop> steps;
  for (uint32_t o = 0; o < loops.outer; ++o)
    for (uint32_t i = 0; i < loops.inner; ++i)
      for (const Uop& uop : kernel.uops)
        steps.push_back({uop.dst + o * loops.dst_outer + i * loops.dst_inner,
                         uop.src + o * loops.src_outer + i * loops.src_inner,
                         uop.wgt + o * loops.wgt_outer + i * loops.wgt_inner});
  return steps;
}

/// Records a random nest and appends the steps it stands for.
void record(Rng& rng, int depth, KernelRecorder& recorder, std::vector<Uop>& steps) {
  const int64_t parts = rng.chance(0.6) ? 1 : rng.between(1, 3);
  for (int64_t part = 0; part < parts; ++part) {
    if (depth == 0 || rng.chance(0.2)) {
      const Uop uop{static_cast<uint32_t>(rng.below(9)), static_cast<uint32_t>(rng.below(9)),
                    static_cast<uint32_t>(rng.below(9))};
      recorder.push(uop);
      steps.push_back(uop);
      continue;
    }
    const auto extent = static_cast<uint32_t>(rng.between(1, 4));
    const Uop step{static_cast<uint32_t>(rng.below(4)), static_cast<uint32_t>(rng.below(4)),
                   static_cast<uint32_t>(rng.below(4))};
    ASSERT_TRUE(recorder.loop_begin(extent, step.dst, step.src, step.wgt));
    std::vector<Uop> body;
    record(rng, depth - 1, recorder, body);
    ASSERT_TRUE(recorder.loop_end());
    for (uint32_t i = 0; i < extent; ++i)
      for (const Uop& uop : body)
        steps.push_back({uop.dst + i * step.dst, uop.src + i * step.src, uop.wgt + i * step.wgt});
  }
}

bool close_destinations(const std::vector<Uop>& steps) {
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i].dst == steps[i - 1].dst || (i > 1 && steps[i].dst == steps[i - 2].dst))
      return true;
  return false;
}

TEST(KernelRecorder, KeepsTheStepsOfAnyNest) {
  size_t refused = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelRecorder recorder{Gemm{}};
    std::vector<Uop> steps;
    record(rng, 4, recorder, steps);
    const Result<Kernel> kernel = recorder.finish(Config(), false);
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    ASSERT_EQ(steps_of(*kernel), steps);
    const Result<Kernel> portable = recorder.finish(Config(), true);
    EXPECT_EQ(portable.has_value(), !close_destinations(steps));
    refused += portable ? 0 : 1;
  }
  EXPECT_GT(refused, 20u);
  EXPECT_LT(refused, 400u);
}

TEST(KernelRecorder, OneLoopIsOuterForGemmAndInnerForAlu) {
  const auto fill = [](KernelRecorder& recorder) {
    ASSERT_TRUE(recorder.loop_begin(7, 1, 2));
    recorder.push({3, 4, 0});
    ASSERT_TRUE(recorder.loop_end());
  };
  KernelRecorder gemm{Gemm{}}, alu{Alu{}};
  fill(gemm);
  fill(alu);
  const Kernel first = gemm.finish(Config()).value(), second = alu.finish(Config()).value();
  EXPECT_EQ(loops_of(first).outer, 7u);
  EXPECT_EQ(loops_of(first).inner, 1u);
  EXPECT_EQ(loops_of(first).src_outer, 2u);
  EXPECT_EQ(loops_of(second).outer, 1u);
  EXPECT_EQ(loops_of(second).inner, 7u);
  EXPECT_EQ(loops_of(second).src_inner, 2u);
}

TEST(KernelRecorder, FoldsPushesIntoHardwareLoops) {
  KernelRecorder recorder{Gemm{}};
  for (uint32_t i = 0; i < 5; ++i)
    for (uint32_t j = 0; j < 4; ++j)
      for (uint32_t k = 0; k < 3; ++k) recorder.push({i * 100 + j * 7 + k * k, i * 9 + j, k});
  const Kernel kernel = recorder.finish(Config()).value();
  EXPECT_EQ(loops_of(kernel).outer, 5u);
  EXPECT_EQ(loops_of(kernel).inner, 4u);
  EXPECT_EQ(kernel.uops, (std::vector<Uop>{{0, 0, 0}, {1, 0, 1}, {4, 0, 2}}));
}

TEST(KernelRecorder, LoopsDeeperThanTwoAreUnrolled) {
  KernelRecorder recorder{Gemm{}};
  ASSERT_TRUE(recorder.loop_begin(2, 100, 0));
  ASSERT_TRUE(recorder.loop_begin(3, 10, 1));
  ASSERT_TRUE(recorder.loop_begin(4, 1, 5, 1));
  recorder.push({0, 0, 0});
  ASSERT_TRUE(recorder.loop_end());
  ASSERT_TRUE(recorder.loop_end());
  ASSERT_TRUE(recorder.loop_end());
  const Kernel kernel = recorder.finish(Config()).value();
  EXPECT_EQ(loops_of(kernel).outer, 2u);
  EXPECT_EQ(loops_of(kernel).inner, 3u);
  EXPECT_EQ(kernel.uops.size(), 4u);
}

void expect_error(const Result<Kernel>& kernel, ErrorKind kind, const std::string& text) {
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().kind, kind);
  EXPECT_NE(to_string(kernel.error()).find(text), std::string::npos) << to_string(kernel.error());
}

TEST(KernelRecorder, RefusesWhatHardwareCannotDo) {
  const Config config;
  expect_error(KernelRecorder{Gemm{}}.finish(config), ErrorKind::Invalid, "no micro-op");
  KernelRecorder open{Gemm{}};
  EXPECT_EQ(open.loop_begin(0, 1, 1).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(open.loop_end().error().kind, ErrorKind::Invalid);
  ASSERT_TRUE(open.loop_begin(2, 1, 1));
  EXPECT_EQ(open.loop_end().error().kind, ErrorKind::Invalid);
  expect_error(open.finish(config), ErrorKind::Invalid, "still open");
  KernelRecorder outside{Alu{}};
  ASSERT_TRUE(outside.loop_begin(2049, 1, 1));
  outside.push({0, 0, 0});
  ASSERT_TRUE(outside.loop_end());
  expect_error(outside.finish(config), ErrorKind::Capacity, "largest index 2048");
  KernelRecorder many{Gemm{}};
  ASSERT_TRUE(many.loop_begin(16384, 0, 0));
  for (uint32_t i = 0; i < 3; ++i) many.push({i * i, 0, 0});
  ASSERT_TRUE(many.loop_end());
  expect_error(many.finish(config), ErrorKind::Capacity, "outer");
  KernelRecorder long_one{Gemm{}};
  Rng rng(2);
  for (int i = 0; i < 8193; ++i) {
    const auto dst = static_cast<uint32_t>(i % 3 * 100 + rng.below(50));
    long_one.push({dst, 0, 0});
  }
  expect_error(long_one.finish(config), ErrorKind::Capacity, "the memory has 8192");
  KernelRecorder endless{Gemm{}};
  for (int depth = 0; depth < 6; ++depth) ASSERT_TRUE(endless.loop_begin(16000, 0, 0));
  endless.push({0, 0, 0});
  for (int depth = 0; depth < 6; ++depth) ASSERT_TRUE(endless.loop_end());
  expect_error(endless.finish(config), ErrorKind::Capacity, "too long");
}

}  // namespace
}  // namespace tilewright::vta
