// What measured rates can and cannot be, and how two measurements make one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/hw/rates.h"

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

/// Two cores at 2.78 GHz with vectors of 64 bytes: two multiply-adds per cycle are 177.9.
CpuRates quiet_machine() {
  CpuRates rates;
  rates.measured = true;
  rates.f32 = 177.9, rates.bf16 = 355, rates.int8 = 711;
  rates.ghz = 2.78;
  rates.l1 = {340, 680};
  rates.l2 = {150, 300};
  rates.l3 = {80, 160};
  rates.dram = {30, 40};
  rates.fork_join_ns = 400;
  rates.tiles = {{DType::F32, 1, 1, 0.12, 21}, {DType::F32, 14, 2, 0.99, 176}};
  return rates;
}

std::string problem(const CpuRates& rates) { return contradiction(rates, 64, 2, 2).text; }

TEST(Contradiction, SoundRatesHaveNone) {
  EXPECT_EQ(problem(quiet_machine()), "");
  CpuRates rates = quiet_machine();
  rates.l2.one = 160, rates.l3.one = 165;  // noise
  rates.l3.all = 200;
  EXPECT_EQ(problem(rates), "");
  rates.bf16 = rates.int8 = 0;  // no such instructions
  EXPECT_EQ(problem(rates), "");
}

TEST(Contradiction, APeakFourTimesTooHighIsFoundInThreeWays) {
  CpuRates rates = quiet_machine();
  rates.f32 *= 4.2;
  EXPECT_THAT(problem(rates), HasSubstr("multiply-adds per cycle"));
  rates.ghz = 0;
  EXPECT_THAT(problem(rates), HasSubstr("int8 peak 711.0 Gop/s"));
  rates.int8 = rates.bf16 = 0;
  EXPECT_THAT(problem(rates), HasSubstr("read too high"));
  rates.tiles.clear();
  EXPECT_EQ(problem(rates), "");
}

TEST(Contradiction, PeaksAgainstTheClockAndTheTiles) {
  CpuRates rates = quiet_machine();
  rates.ghz = 7;
  EXPECT_THAT(problem(rates), HasSubstr("7.0 GHz"));
  rates = quiet_machine();
  rates.f32 = 120, rates.int8 = 500, rates.bf16 = 250;
  EXPECT_THAT(problem(rates), HasSubstr("read too low"));
  rates = quiet_machine();
  rates.bf16 = 20;
  EXPECT_THAT(problem(rates), HasSubstr("bf16 peak"));
  rates.assumed = {"bf16"};
  EXPECT_EQ(problem(rates), "");
  rates = quiet_machine();
  rates.f32 = 0;
  EXPECT_THAT(problem(rates), HasSubstr("multiply-adds"));
}

TEST(Contradiction, MemoryLevelsAgainstEachOther) {
  CpuRates rates = quiet_machine();
  rates.l3 = {250, 500};
  EXPECT_THAT(problem(rates), HasSubstr("L3 gives 250.0 GB/s, L2 before it 150.0 GB/s"));
  EXPECT_EQ(contradiction(rates, 64, 2, 2).part, "l2");
  rates = quiet_machine();
  rates.dram.all = 20;
  EXPECT_THAT(problem(rates), HasSubstr("DRAM: one core reads 30.0 GB/s, 2 cores 20.0 GB/s"));
  rates = quiet_machine();
  rates.l1.one = 0;
  EXPECT_THAT(problem(rates), HasSubstr("L1 was not read"));
  rates.assumed = {"l1"};
  EXPECT_EQ(problem(rates), "");
}

TEST(Assumed, TypicalValuesFitBetweenMeasuredOnes) {
  for (const char* part : {"l1", "l2", "l3", "dram"}) {
    CpuRates rates = quiet_machine();
    rates.assumed = {part};
    fill_assumed(rates, 64, 2);
    rates.assumed.clear();
    EXPECT_EQ(problem(rates), "") << part;
  }
  CpuRates rates = quiet_machine();
  rates.assumed = {"fork_join", "tiles"};
  fill_assumed(rates, 64, 2);
  EXPECT_GT(rates.fork_join_ns, 0);
  EXPECT_TRUE(rates.tiles.empty());
}

TEST(Combined, PartsComeFromWhoeverMeasuredThem) {
  CpuRates older = quiet_machine(), newer = quiet_machine();
  older.assumed = {"l3", "bf16"}, older.l3 = {1, 1}, older.bf16 = 1;
  newer.assumed = {"dram", "l3"}, newer.dram = {1, 1};
  newer.f32 = 180, newer.l1 = {350, 700};
  const CpuRates both = combined(older, newer);
  EXPECT_EQ(both.readings, 2);
  EXPECT_EQ(both.f32, 180);
  EXPECT_EQ(both.bf16, 355);
  EXPECT_EQ(both.dram.one, 30);
  EXPECT_EQ(both.l1.one, 350);
  EXPECT_EQ(both.assumed, std::vector<std::string>{"l3"});
  EXPECT_TRUE(both.measured);
}

TEST(Combined, NeitherOfTwoDifferentPeaksWinsByBeingLarger) {
  CpuRates older = quiet_machine(), newer = quiet_machine();
  older.f32 *= 4.2;
  EXPECT_EQ(combined(older, newer).f32, newer.f32);
  EXPECT_EQ(combined(newer, older).f32, newer.f32) << "the tiles confirm this one";
  older.assumed = {"f32"};
  EXPECT_EQ(combined(older, newer).f32, newer.f32);
  EXPECT_EQ(combined(newer, older).f32, newer.f32);
}

TEST(Scaled, WhatFollowsTheClockDoes) {
  const CpuRates half = scaled(quiet_machine(), 0.5);
  EXPECT_EQ(half.f32, 177.9 / 2);
  EXPECT_EQ(half.l1.one, 170);
  EXPECT_EQ(half.dram.one, 30);
  EXPECT_EQ(problem(half), "");
}

}  // namespace
}  // namespace tilewright::hw
