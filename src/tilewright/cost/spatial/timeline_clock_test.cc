// Moments that go on alike: what is compared, what does not matter any more, what is carried on.
#include "tilewright/cost/spatial/timeline_clock.h"

#include <gtest/gtest.h>

namespace tilewright::cost {
namespace {

constexpr double kLater = 5000;
constexpr SpatialPassage::Rules kRules = {
    .latency = 2, .fetch = 8, .first = 10, .free_since = {1, 0}};

/// Two LOADs, two COMPUTEs and a STORE that began at 1000.
SpatialPassage passage() {
  SpatialClock before;
  before.load_free = 990;
  before.compute_free = 1000;
  before.store_free = 400;
  before.instructions = 20;
  before.loaded = {900, 990};
  before.used = {{{1000, 950}, {1000, 300}}};
  before.stored = {400, 200};
  before.reading[0] = {.begin = 900, .end = 950, .key = 3};
  before.reading[1] = {.begin = 955, .end = 998, .key = 3};
  SpatialClock after = before;
  after.load_free = 1150;
  after.compute_free = 1200;
  after.store_free = 1260;
  after.instructions = 25;
  after.load = 160;
  after.compute = 190;
  after.store = 60;
  after.loaded = {1080, 1150};
  after.used = {{{1200, 1000}, {1200, 1000}}};
  after.stored = {1260, 400};
  after.reading[0] = {.begin = 1005, .end = 1090, .key = 3};
  after.reading[1] = {.begin = 1105, .end = 1198, .key = 3, .store_begin = 1202, .stored = 1260};
  return {before, after};
}

/// The moment at which it began, later.
SpatialClock later() {
  SpatialClock clock = passage().before;
  clock.shift(kLater, {}, {});
  clock.compute = 700;
  return clock;
}

TEST(SpatialPassage, TheSameLaterGoesOnAsBefore) {
  const SpatialPassage known = passage();
  ASSERT_TRUE(known.fits(later(), kRules));
  const SpatialClock next = known.from(later());
  EXPECT_EQ(next.load_free, 1150 + kLater);
  EXPECT_EQ(next.compute_free, 1200 + kLater);
  EXPECT_EQ(next.store_free, 1260 + kLater);
  EXPECT_EQ(next.loaded[0], 1080 + kLater);
  EXPECT_EQ(next.used[1][1], 1000 + kLater);
  EXPECT_EQ(next.stored[0], 1260 + kLater);
  EXPECT_EQ(next.reading[1].end, 1198 + kLater);
  EXPECT_EQ(next.reading[1].stored, 1260 + kLater);
  EXPECT_EQ(next.instructions, 25);
  EXPECT_EQ(next.compute, 700 + 190);
}

TEST(SpatialPassage, WhatIsLongPastDoesNotMatter) {
  SpatialClock clock = later();
  clock.stored = {4000, 3000};  // no COMPUTE waits for these
  clock.store_free = 4000;
  clock.used[1][1] = 3;  // its LOAD waits for the latest use
  clock.loaded[0] = 5100;
  clock.reading[0].key = 4;  // it had ended when the first LOAD began
  EXPECT_TRUE(passage().fits(clock, kRules));
}

TEST(SpatialPassage, WhatMayBeWaitedForMatters) {
  const auto fits = [](auto change) {
    SpatialClock clock = later();
    change(clock);
    return passage().fits(clock, kRules);
  };
  EXPECT_FALSE(fits([](SpatialClock& c) { c.load_free += 20; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.loaded[1] = c.compute_free + 30; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.stored[1] = c.compute_free + 5; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.store_free = c.compute_free + 50; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.reading[1].key = 4; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.reading[1].end += 1; }));
  EXPECT_FALSE(fits([](SpatialClock& c) { c.instructions = 800; })) << "fetching is late";
}

// Instructions without a LOAD do not see when LOADs are done.
TEST(SpatialPassage, QueuesThatRestDoNotMatter) {
  SpatialPassage known = passage();
  known.after.load_free = known.before.load_free;
  known.after.loaded = known.before.loaded;
  known.after.store_free = known.before.store_free;
  known.after.stored = known.before.stored;
  SpatialClock clock = later();
  clock.load_free = 4321;
  clock.store_free = 5900;
  ASSERT_TRUE(known.fits(clock, kRules));
  EXPECT_EQ(known.from(clock).load_free, 4321);
  EXPECT_EQ(known.from(clock).store_free, 5900);
}

}  // namespace
}  // namespace tilewright::cost
