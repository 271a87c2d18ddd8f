#include "tilewright/fleet/lease_watch.h"

#include <gtest/gtest.h>

#include <atomic>

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

Result<Json> granted() { return Json{{"ok", true}}; }

/// Waits for a condition for at most 60 s.
template <class Condition>
bool becomes(const Condition& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

TEST(LeaseWatch, LivesAsLongAsItIsRenewed) {
  std::atomic<int> renewals = 0;
  std::atomic<double> now = 100;
  LeaseWatch watch(
      [&] {
        ++renewals;
        return granted();
      },
      now, .1, [&] { return now.load(); });
  for (int i = 0; i < 4; ++i) {
    now = now + .07;
    EXPECT_FALSE(watch.lost()) << i;
    // The second from here is asked for when the first was granted.
    const int before = renewals;
    EXPECT_TRUE(becomes([&] { return renewals >= before + 2; }));
  }
}

TEST(LeaseWatch, IsLostWhenNobodyAnswers) {
  std::atomic<int> renewals = 0;
  std::atomic<double> now = 100;
  LeaseWatch watch(
      [&]() -> Result<Json> {
        ++renewals;
        return fail(ErrorKind::Unreachable, "gone");
      },
      now, .1, [&] { return now.load(); });
  now = 100.07;
  EXPECT_TRUE(becomes([&] { return renewals >= 2; }));
  EXPECT_FALSE(watch.lost());
  now = 100.081;
  EXPECT_TRUE(watch.lost());
}

TEST(LeaseWatch, AsksAgainSoonWhereNobodyAnswers) {
  // At the pace of renewals that are granted, five attempts would take four thirds of the lease.
  std::atomic<int> attempts = 0;
  std::atomic<double> first = 0, fifth = 0;
  const LeaseWatch watch(
      [&]() -> Result<Json> {
        const int attempt = ++attempts;
        if (attempt == 1) first = boot_seconds();
        if (attempt == 5) fifth = boot_seconds();
        return fail(ErrorKind::Unreachable, "gone");
      },
      boot_seconds(), 3);
  EXPECT_TRUE(becomes([&] { return fifth > 0; }));
  EXPECT_LT(fifth - first, 3);  // .4 s on a quiet machine
}

TEST(LeaseWatch, TimeGoesOnByItself) {
  const auto gone = []() -> Result<Json> { return fail(ErrorKind::Unreachable, "gone"); };
  const LeaseWatch watch(gone, boot_seconds(), .1);
  EXPECT_TRUE(becomes([&] { return watch.lost(); }));
}

TEST(LeaseWatch, IsLostBeforeTheServerGivesItAway) {
  // The claim was sent 24 of 30 seconds ago and nothing was heard since.
  const auto now = [] { return 100.; };
  EXPECT_TRUE(LeaseWatch(granted, 100 - 24.1, 30, now).lost());
  EXPECT_FALSE(LeaseWatch(granted, 100 - 23.9, 30, now).lost());
}

TEST(LeaseWatch, CountsFromTheSendingNotFromTheAnswer) {
  // The answer takes longer than the lease is used: it comes too late to help.
  std::atomic<int> renewals = 0;
  std::atomic<double> now = 100;
  const LeaseWatch watch(
      [&] {
        now = now + .085;
        ++renewals;
        return granted();
      },
      now, .1, [&] { return now.load(); });
  EXPECT_TRUE(becomes([&] { return renewals >= 2; }));
  EXPECT_TRUE(watch.lost());
}

TEST(LeaseWatch, AStaleAnswerEndsItAtOnce) {
  std::atomic<int> renewals = 0;
  LeaseWatch watch(
      [&]() -> Result<Json> {
        ++renewals;
        return Json{{"ok", false}};
      },
      boot_seconds(), 1);
  EXPECT_TRUE(becomes([&] { return watch.lost(); }));
  EXPECT_EQ(renewals, 1);
}

TEST(LeaseWatch, HearsWhatIsCancelledAndWhoHasToLeave) {
  LeaseWatch watch(granted, boot_seconds(), 30);
  watch.hear({{"cancel", {"a", "b"}}, {"drain", true}, {"yield", false}});
  EXPECT_TRUE(watch.cancelled("a"));
  EXPECT_FALSE(watch.cancelled("c"));
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.yield());
  watch.hear(Json());  // what is no object says nothing
  watch.hear({{"cancel", "a"}, {"drain", 3}});
  EXPECT_TRUE(watch.drain());
}

}  // namespace
}  // namespace tilewright::fleet
