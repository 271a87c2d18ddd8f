// Readings by clocks that err as those of virtual machines and of busy ones do.
#include "tilewright/measure/bursts.h"

#include <gtest/gtest.h>

namespace tilewright::measure {
namespace {

constexpr double kBurst = 43e-6, kLost = 30e-6;

/// A machine whose bursts take kBurst.
struct FakeMachine {
  double wall_now = 100, own_now = 1;
  int64_t bursts = 0;
  int lose_every = 0;       ///< the thread's clock loses kLost in one of so many bursts
  int interrupt_every = 0;  ///< another program has the core for a slice in one of so many

  Clocks clocks() {
    return {[this] { return wall_now; }, [this] { return own_now; }};
  }
  void run() {
    ++bursts;
    wall_now += kBurst, own_now += kBurst;
    if (lose_every > 0 && bursts % lose_every == 0) own_now -= kLost;
    if (interrupt_every > 0 && bursts % interrupt_every == 0) wall_now += 3e-3;
  }
  BurstReading read(double seconds = 0.2) {
    const Clocks mine = clocks();
    return read_bursts(mine, 1e9 * kBurst, seconds, [&] { return timed(mine, [&] { run(); }); });
  }
};

TEST(Bursts, AClockThatLosesTimeNowAndThenChangesNothing) {
  FakeMachine machine;
  machine.lose_every = 1000;
  for (int calibration = 0; calibration < 200; ++calibration) {
    const BurstReading reading = machine.read();
    ASSERT_NEAR(reading.rate, 1, 0.02);
    ASSERT_LT(reading.kept, reading.all);
  }
}

TEST(Bursts, InterruptedOnesDoNotCount) {
  FakeMachine machine;
  machine.interrupt_every = 3, machine.lose_every = 7;
  const BurstReading reading = machine.read();
  EXPECT_NEAR(reading.rate, 1, 1e-6);
  EXPECT_NEAR(reading.spread, 0, 1e-6);
  EXPECT_LT(reading.kept, reading.all * 2 / 3 + 1);
}

TEST(Bursts, ReadOnWhereFewAreUndisturbedAndThenSayBusy) {
  FakeMachine machine;
  machine.interrupt_every = 1;
  const double start = machine.wall_now;
  const BurstReading reading = machine.read(0.2);
  EXPECT_TRUE(reading.busy());
  EXPECT_EQ(reading.kept, 0);
  EXPECT_GT(machine.wall_now - start, 0.99);
  EXPECT_LT(machine.wall_now - start, 1.01);
}

TEST(Bursts, AFewSlowMomentsDoNotLowerTheRate) {
  FakeMachine machine;
  const Clocks clocks = machine.clocks();
  const BurstReading reading = read_bursts(clocks, 1e9 * kBurst, 0.2, [&] {
    return timed(clocks, [&] {
      for (int times = machine.bursts % 4 == 0 ? 2 : 1; times > 0; --times) machine.run();
    });
  });
  EXPECT_NEAR(reading.rate, 1, 1e-6);
}

TEST(Rounds, TwoThatAgreeAreEnough) {
  const auto never = [] {
    ADD_FAILURE() << "no third round is needed";
    return 0.0;
  };
  EXPECT_EQ(settled(100, 104, never), 104);
  EXPECT_EQ(settled(100, 130, [] { return 102.0; }), 102);
  EXPECT_EQ(settled(100, 400, [] { return 398.0; }), 398);
  EXPECT_EQ(settled(0, 0, [] { return 50.0; }), 50);
  EXPECT_EQ(settled(0, 0, [] { return 0.0; }), 0);
}

}  // namespace
}  // namespace tilewright::measure
