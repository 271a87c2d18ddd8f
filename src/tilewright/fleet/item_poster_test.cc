#include "tilewright/fleet/item_poster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

/// What a store gets, and what it answers.
class FakeStore {
 public:
  struct Posted {
    int from;
    std::vector<std::string> outcomes;
    std::string failed;
    bool operator==(const Posted&) const = default;
  };

  ItemPoster::Post post() {
    return [this](int from, const Json& results,
                  const std::optional<std::string>& failed) -> Result<Json> {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++calls;
      changed_.notify_all();
      if (away-- > 0) return fail(ErrorKind::Unreachable, "away");
      Posted got{from, {}, failed.value_or("")};
      for (const Json& result : results) got.outcomes.push_back(result.at("outcome"));
      posted.push_back(got);
      if (refusing) return fail(ErrorKind::Usage, "refused");
      return Json{{"answer", answer}};
    };
  }
  void wait_for_calls(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return calls >= count; });
  }

  std::string answer = "ok";
  bool refusing = false;
  int away = 0;  ///< for so many calls
  int calls = 0;
  std::vector<Posted> posted;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

ItemResult item(int index, const std::string& outcome = "ok") {
  return {.item = index, .outcome = outcome, .cost = 1};
}

const auto kNever = [] { return false; };

TEST(ItemPoster, ItemsFollowEachOther) {
  FakeStore store;
  ItemPoster poster(3, store.post());
  for (const int index : {5, 3, 4, 7}) poster.add(item(index, index == 4 ? "crash" : "ok"));
  ASSERT_TRUE(poster.finish(std::nullopt, kNever));
  EXPECT_THAT(store.posted, testing::ElementsAre(FakeStore::Posted{3, {"ok", "crash", "ok"}, ""}));
  EXPECT_EQ(poster.next(), 6);  // 6 is missing, so 7 waits
  EXPECT_EQ(poster.good(), 2);
  EXPECT_FALSE(poster.over());
}

TEST(ItemPosterSlow, WhatComesIsPostedSoon) {
  FakeStore store;
  ItemPoster poster(0, store.post());
  poster.add(item(0));
  poster.add(item(1));
  store.wait_for_calls(1);
  poster.add(item(2));
  store.wait_for_calls(2);
  ASSERT_TRUE(poster.finish("enough", kNever));
  EXPECT_THAT(store.posted, testing::ElementsAre(FakeStore::Posted{0, {"ok", "ok"}, ""},
                                                 FakeStore::Posted{2, {"ok"}, ""},
                                                 FakeStore::Posted{3, {}, "enough"}));
}

TEST(ItemPosterSlow, AsksWhetherItIsStillWanted) {
  FakeStore store;
  ItemPoster poster(0, store.post());
  poster.keep_asking();
  store.wait_for_calls(2);
  store.answer = "stale";
  store.wait_for_calls(3);
  while (!poster.over()) std::this_thread::yield();
  poster.add(item(0));
  ASSERT_TRUE(poster.finish(std::nullopt, kNever));
  EXPECT_EQ(store.calls, 3);  // nothing more is posted then
}

TEST(ItemPoster, WaitsForAStoreThatIsAway) {
  FakeStore store;
  store.away = 2;
  ItemPoster poster(0, store.post());
  poster.add(item(0));
  ASSERT_TRUE(poster.finish(std::nullopt, kNever));
  EXPECT_EQ(store.calls, 3);
  EXPECT_EQ(poster.next(), 1);
  FakeStore gone;
  gone.away = 1000;
  ItemPoster other(0, gone.post());
  other.add(item(0));
  const auto answer = other.finish(std::nullopt, [] { return true; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::Unreachable);
  EXPECT_EQ(other.next(), 0);
}

TEST(ItemPoster, ARefusalIsTheEnd) {
  FakeStore store;
  store.refusing = true;
  ItemPoster poster(0, store.post());
  poster.add(item(0));
  const auto answer = poster.finish(std::nullopt, kNever);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::Usage);
  EXPECT_TRUE(poster.over());
}

}  // namespace
}  // namespace tilewright::fleet
