// The portable subset, one restriction at a time.
#include <gtest/gtest.h>

#include "tilewright/accel/vta/testing/findings.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer

TEST(Portable, MicroOpLoads) {
  expect_finding(changed([](Insns& p) {
                   transfer(p[2]).y_size = 2;
                   transfer(p[2]).x_size = transfer(p[2]).x_stride = 4;
                 }),
                 Rule::NotPortable, 2, "first row only", false);
  expect_finding(changed([](Insns& p) { transfer(p[2]).x_pad_right = 1; }), Rule::NotPortable, 2,
                 "with padding", false);
}

TEST(Portable, WeightPadding) {
  expect_finding(changed([](Insns& p) { transfer(p[0]).y_pad_bottom = 1; }), Rule::NotPortable, 0,
                 "weight load with padding", false);
}

TEST(Portable, StoresOfWhatOutDoesNotHold) {
  expect_finding(changed([](Insns& p) {
                   std::swap(p[4], p[3]), std::get<Gemm>(p[4].op).loops = over_uops(0, 4),
                                          p.insert(p.begin() + 3, gemm(over_uops(0, 4), true)),
                                          p[6] = with(kPushNext, nothing(Mem::Uop));
                 }),
                 Rule::NotPortable, 7, "was reset since", false);
  const auto loaded = changed([](Insns& p) {
    p[5].deps.push_next = false;
    p.insert(p.begin() + 6, with(kPushNext, load(Mem::Acc, 2, kAccAt, 1)));
  });
  expect_finding(loaded, Rule::NotPortable, 7, "stores out[2], whose accumulator was loaded",
                 false);
}

TEST(Portable, LoadingAccWhileItIsStored) {
  const auto program = [](bool token) {
    return changed([=](Insns& p) {
      // Without the token FINISH still waits for the store.
      p.insert(p.begin() + 7, load(Mem::Acc, 0, kAccAt, 1));
      if (token) std::swap(p[7].deps, p[8].deps);
    });
  };
  expect_clean(program(true));
  expect_finding(program(false), Rule::NotPortable, 6, "published simulator stores what acc holds");
}

TEST(Portable, ImmediateOperandsInPlace) {
  expect_finding(changed([](Insns& p) { std::get<Alu>(p[5].op).loops = over_uops(4, 8); }),
                 Rule::NotPortable, 5, "source 4 but destination 0", false);
  expect_finding(changed([](Insns& p) {
                   Loops& loops = std::get<Alu>(p[5].op).loops;
                   loops.inner = 2;
                   loops.src_inner = 4;
                   loops.dst_inner = 0;
                 }),
                 Rule::NotPortable, 5, "move differently", false);
}

TEST(Portable, DestinationsThreeStepsApart) {
  const auto program = [](uint32_t end, uint32_t outer, uint32_t inner, uint32_t dst_outer,
                          uint32_t dst_inner) {
    return changed([=](Insns& p) {
      Loops loops = over_uops(0, end);
      loops.outer = outer;
      loops.inner = inner;
      loops.dst_outer = dst_outer;
      loops.dst_inner = dst_inner;
      std::get<Gemm>(p[4].op).loops = loops;
      std::get<Gemm>(p[3].op).loops.inner = 8;
      std::get<Gemm>(p[3].op).loops.dst_inner = 4;
    });
  };
  const auto expect_close = [](const std::vector<Finding>& findings) {
    expect_finding(findings, Rule::NotPortable, 4, "is the destination again", false);
  };
  expect_clean(program(4, 1, 2, 0, 0));  // four micro-ops repeat: distance 4
  expect_clean(program(3, 1, 2, 0, 0));  // distance 3
  expect_close(program(2, 1, 2, 0, 0));  // distance 2
  expect_close(program(1, 1, 2, 0, 0));  // distance 1
  expect_clean(program(1, 1, 8, 0, 1));
  expect_close(program(1, 2, 2, 0, 1));  // 0 1 | 0 1: distance 2 over the outer loop
  expect_clean(program(1, 2, 3, 0, 1));  // 0 1 2 | 0 1 2
  expect_close(program(1, 3, 3, 2, 1));  // 0 1 2 | 2 3 4
  expect_close(program(2, 2, 2, 0, 1));  // 0 1, 1 2: distance 1
  expect_clean(program(1, 4, 1, 1, 0));
}

TEST(Portable, RegisterSourcesThreeStepsAfterTheyAreWritten) {
  const auto program = [](uint32_t factor) {
    return changed([=](Insns& p) {
      Loops loops = over_uops(0, 1);  // dst 0, src 0
      loops.inner = 4;
      loops.dst_inner = 1;
      loops.src_inner = factor;
      loops.outer = 1;
      p[5] = with(kPushNext, alu_reg(AluOp::Add, loops));
      std::get<Gemm>(p[3].op).loops.inner = 8;
      std::get<Gemm>(p[3].op).loops.dst_inner = 4;
    });
  };
  expect_clean(program(1));
  expect_clean(program(2));
  expect_finding(program(0), Rule::NotPortable, 5, "is a source", false);
}

TEST(Portable, FeaturesTheDesignDoesNotHave) {
  const auto mul = [](Insns& p) {
    p[5] = with(kPushNext, alu_imm(AluOp::Mul, 3, over_uops(0, 4)));
  };
  const auto acc8 = [](Insns& p) { p.insert(p.begin() + 3, load(Mem::Acc8, 0, kAccAt * 4, 4)); };
  expect_finding(changed(mul), Rule::NotPortable, 5, "multiplies");
  expect_finding(changed(acc8), Rule::NotPortable, 3, "acc8");
  Config able;
  able.has_mul = able.has_acc8 = true;
  expect_clean(changed(mul, able));
  expect_clean(changed(acc8, able));
}

TEST(Portable, EmptyLoopsAndPaddedNoOps) {
  expect_finding(changed([](Insns& p) {
                   std::get<Gemm>(p[3].op).loops.outer = 0,
                   p.insert(p.begin() + 3, gemm(over_uops(0, 4), true));
                 }),
                 Rule::NotPortable, 4, "no steps", false);
  expect_finding(changed([](Insns& p) {
                   p.insert(p.begin(), nothing(Mem::Inp));
                   transfer(p[0]).x_pad_left = 1;
                 }),
                 Rule::NotPortable, 0, "empty transfer with padding", false);
  expect_finding(changed([](Insns& p) {
                   Loops& loops = std::get<Gemm>(p[3].op).loops;
                   loops.inner = 2;
                   loops.dst_inner = 4;
                   loops.src_inner = 2047;
                 }),
                 Rule::NotPortable, 3, "a reset need not read it", false);
}

TEST(Portable, OnlyIfAskedFor) {
  Program program = hand_program();
  transfer(program.runs[0].insns[0]).y_pad_bottom = 1;
  EXPECT_FALSE(check_program(program).empty());
  EXPECT_TRUE(check_program(program, {.portable = false}).empty());
}

}  // namespace
}  // namespace tilewright::vta
