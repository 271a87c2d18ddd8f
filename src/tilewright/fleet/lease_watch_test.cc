#include "tilewright/fleet/lease_watch.h"

#include <gtest/gtest.h>

#include <future>

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// Waits for a condition for at most 10 s.
template <class Condition>
bool becomes(const Condition& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

TEST(LeaseWatch, LivesAsLongAsItIsRenewed) {
  std::atomic<int> renewals = 0;
  LeaseWatch watch(
      [&]() -> Result<Json> {
        ++renewals;
        return Json{{"ok", true}};
      },
      boot_seconds(), .3);
  EXPECT_TRUE(becomes([&] { return renewals >= 5; }));  // longer than the lease alone
  EXPECT_FALSE(watch.lost());
}

TEST(LeaseWatch, IsLostWhenNobodyAnswers) {
  LeaseWatch watch([]() -> Result<Json> { return fail(ErrorKind::Unreachable, "gone"); },
                   boot_seconds(), .3);
  EXPECT_FALSE(watch.lost());
  EXPECT_TRUE(becomes([&] { return watch.lost(); }));
}

TEST(LeaseWatch, IsLostBeforeTheServerGivesItAway) {
  // The claim was sent 24 of 30 seconds ago and nothing was heard since.
  const auto renew = []() -> Result<Json> { return Json{{"ok", true}}; };
  EXPECT_TRUE(LeaseWatch(renew, boot_seconds() - 24.1, 30).lost());
  EXPECT_FALSE(LeaseWatch(renew, boot_seconds() - 23, 30).lost());
}

TEST(LeaseWatch, CountsFromTheSendingNotFromTheAnswer) {
  // The answer takes longer than the lease is used: it comes too late to help.
  LeaseWatch watch(
      []() -> Result<Json> {
        std::this_thread::sleep_for(std::chrono::milliseconds(350));
        return Json{{"ok", true}};
      },
      boot_seconds(), .3);
  EXPECT_TRUE(becomes([&] { return watch.lost(); }));
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
  LeaseWatch watch([]() -> Result<Json> { return Json{{"ok", true}}; }, boot_seconds(), 30);
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
