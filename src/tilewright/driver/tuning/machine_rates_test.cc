// When rates are measured, kept, doubted and measured again; with a machine and a clock made up.
#include "tilewright/driver/tuning/machine_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStart = 1800000000, kMinute = 60, kDay = 24 * 60 * kMinute;

hw::CpuRates sound() {
  hw::CpuRates rates;
  rates.measured = true;
  rates.f32 = 178, rates.ghz = 2.8;
  rates.l1 = {300, 600}, rates.l2 = {100, 200}, rates.l3 = {80, 160}, rates.dram = {20, 30};
  rates.tiles = {{DType::F32, 14, 2, 0.99, 176}};
  rates.about.when = kStart;
  return rates;
}

/// What was read by a machine that was too busy.
hw::CpuRates busy() {
  hw::CpuRates rates = sound();
  rates.assumed = {"f32", "l3"};
  rates.measured = false;
  rates.about.load = 4.2;
  return rates;
}

struct World {
  std::optional<hw::CpuRates> file;
  Error missing{ErrorKind::Io, "no such file", {}, {}, {}, {}};
  hw::CpuRates machine = sound();
  double peak = 178;
  int64_t time = kStart;
  int measured = 0, peaks = 0;
  std::string said;

  hw::CpuRates find() {
    RatesSource source;
    source.kept = [this]() -> Result<hw::CpuRates> {
      if (file) return *file;
      return tl::unexpected<Error>(missing);
    };
    source.measure = [this]() -> Result<hw::CpuRates> {
      ++measured;
      hw::CpuRates rates = machine;
      rates.about.when = time;
      return rates;
    };
    source.keep = [this](const hw::CpuRates& rates) {
      file = rates;
      return Status{};
    };
    source.peak = [this] { return ++peaks, peak; };
    source.now = [this] { return time; };
    source.say = [this](const std::string& text) { said += text + "\n"; };
    said.clear();
    return find_rates(source, hw::assumed_rates(64, 2));
  }
};

TEST(FindRates, AreMeasuredOnceAndKept) {
  World world;
  EXPECT_EQ(world.find().f32, 178);
  EXPECT_THAT(world.said, HasSubstr("measuring this machine once"));
  EXPECT_EQ(world.find().f32, 178);
  EXPECT_EQ(world.measured, 1);
  EXPECT_EQ(world.said, "");
}

TEST(FindRates, AFileThatCannotBeRightIsMeasuredAgain) {
  World world;
  world.missing = {
      ErrorKind::Package, "the kept measurement cannot be right", {}, "1.0 times", {}, {}};
  EXPECT_EQ(world.find().f32, 178);
  EXPECT_EQ(world.measured, 1);
  EXPECT_THAT(world.said, HasSubstr("cannot be right"));
}

TEST(FindRates, ABusyMachineIsNotMeasuredAgainForTenMinutes) {
  World world;
  world.machine = busy();
  EXPECT_FALSE(world.find().measured);
  EXPECT_THAT(world.said, HasSubstr("too busy to measure (load 4.2). Typical speeds are assumed"));
  world.time += 9 * kMinute;
  EXPECT_FALSE(world.find().measured);
  EXPECT_EQ(world.measured, 1);
  EXPECT_THAT(world.said, HasSubstr("too busy to measure"));
  world.time += 2 * kMinute;
  world.find();
  EXPECT_EQ(world.measured, 2);
  world.time += 11 * kMinute;  // by now it waits twice as long
  world.find();
  EXPECT_EQ(world.measured, 2);
  world.time += 10 * kMinute;
  world.machine = sound();
  EXPECT_TRUE(world.find().measured);
  EXPECT_EQ(world.measured, 3);
  EXPECT_EQ(world.said.find("too busy to measure"), std::string::npos);
}

TEST(FindRates, PartsThatWereMeasuredStay) {
  World world;
  world.machine.assumed = {"l3"};
  world.find();
  EXPECT_THAT(world.said, HasSubstr("too busy to measure l3"));
  world.time += 11 * kMinute;
  world.machine = busy();
  EXPECT_EQ(world.find().assumed, std::vector<std::string>{"l3"}) << "the peaks are of the first";
  EXPECT_TRUE(world.file->measured);
}

TEST(FindRates, DisturbedTilesAreMeasuredAgain) {
  hw::CpuRates rates = sound();
  rates.tiles[0].share = 0.78;
  EXPECT_EQ(why_again(rates, kStart + 9 * kMinute), std::nullopt);
  EXPECT_THAT(why_again(rates, kStart + 11 * kMinute).value_or(""), HasSubstr("78 %"));
  EXPECT_EQ(why_again(sound(), kStart + 100 * kDay), std::nullopt);
}

TEST(FindRates, OldOnesAreComparedWithThePeakOfTheMoment) {
  World world;
  world.file = sound();
  world.peak = 120;
  EXPECT_EQ(world.find().f32, 178);
  EXPECT_EQ(world.peaks, 0) << "not older than a day";
  world.time += 2 * kDay;
  EXPECT_EQ(world.find().f32, 120);
  EXPECT_EQ(world.peaks, 3);
  EXPECT_THAT(world.said, HasSubstr("not as it was measured (178 -> 120 Gop/s)"));
  EXPECT_EQ(world.measured, 0);
  world.peak = 170;
  EXPECT_EQ(world.find().f32, 178);
  EXPECT_EQ(world.peaks, 4) << "one that agrees is enough";
  EXPECT_EQ(world.said, "");
  world.peak = 0;  // busy
  EXPECT_EQ(world.find().f32, 178);
}

TEST(Rates, TheLabelNamesTheRatesAndNotTheMoment) {
  hw::CpuRates later = sound();
  later.about.when += kDay, later.about.load = 1;
  EXPECT_EQ(hw::rates_label(later), hw::rates_label(sound()));
  later.f32 = 179;
  EXPECT_NE(hw::rates_label(later), hw::rates_label(sound()));
  EXPECT_EQ(hw::rates_label(busy()), "assumed");
}

}  // namespace
}  // namespace tilewright::driver
