#include "tilewright/fleet/blob_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::fleet {
namespace {

TEST(BlobCache, FetchesOnceAndKeeps) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const BlobCache cache = *BlobCache::open(folder.file("kept"), 1 << 20);
  int fetches = 0;
  const auto fetch = [&]() -> Result<std::string> {
    ++fetches;
    return std::string("bytes");
  };
  bool fetched = false;
  EXPECT_EQ(*cache.get(sha256("bytes"), fetch, &fetched), "bytes");
  EXPECT_TRUE(fetched);
  EXPECT_EQ(*cache.get(sha256("bytes"), fetch, &fetched), "bytes");
  EXPECT_FALSE(fetched);
  EXPECT_EQ(fetches, 1);
}

TEST(BlobCache, AppendsToAFile) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const BlobCache cache = *BlobCache::open(folder.file("kept"), 1 << 20);
  int fetches = 0;
  const auto append = [&](const std::string& bytes) {
    return cache.append(sha256(bytes), folder.file("all"), [&]() -> Result<std::string> {
      ++fetches;
      return bytes;
    });
  };
  for (const char* bytes : {"first", "", "second", "first"}) ASSERT_TRUE(append(bytes));
  EXPECT_EQ(*read_file(folder.file("all")), "firstsecondfirst");
  EXPECT_EQ(fetches, 3);
  ASSERT_TRUE(write_file(folder.file("kept/" + sha256("first")), "other"));
  ASSERT_TRUE(append("first"));
  EXPECT_EQ(*read_file(folder.file("all")), "firstsecondfirstfirst");
  EXPECT_EQ(fetches, 4);
  EXPECT_EQ(cache.append(sha256("first"), folder.file("none/all"), {}).error().kind, ErrorKind::Io);
}

TEST(BlobCache, WhatWasChangedOnDiskIsFetchedAgain) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const BlobCache cache = *BlobCache::open(folder.path(), 1 << 20);
  const auto fetch = []() -> Result<std::string> { return std::string("bytes"); };
  ASSERT_TRUE(cache.get(sha256("bytes"), fetch));
  ASSERT_TRUE(write_file(folder.file(sha256("bytes")), "other"));
  bool fetched = false;
  EXPECT_EQ(*cache.get(sha256("bytes"), fetch, &fetched), "bytes");
  EXPECT_TRUE(fetched);
}

TEST(BlobCache, TheLeastRecentlyUsedGoes) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const BlobCache cache = *BlobCache::open(folder.path(), 250);
  const auto blob = [](char c) { return std::string(100, c); };
  const auto get = [&](char c) {
    bool fetched = false;
    EXPECT_TRUE(
        cache.get(sha256(blob(c)), [&]() -> Result<std::string> { return blob(c); }, &fetched));
    return fetched;
  };
  namespace fs = std::filesystem;
  const auto age = [&](char c, int hours) {
    fs::last_write_time(folder.file(sha256(blob(c))),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  get('a'), age('a', 3);
  get('b'), age('b', 2);
  EXPECT_FALSE(get('a'));  // used now
  EXPECT_TRUE(get('c'));   // b goes
  EXPECT_FALSE(get('a'));
  EXPECT_TRUE(get('b'));
  // What is larger than the cache is handed out and not kept.
  const std::string large(300, 'x');
  EXPECT_EQ(*cache.get(sha256(large), [&]() -> Result<std::string> { return large; }), large);
  EXPECT_FALSE(fs::exists(folder.file(sha256(large))));
}

TEST(BlobCache, AnErrorOfFetchingIsHandedOn) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const BlobCache cache = *BlobCache::open(folder.path(), 250);
  const auto got = cache.get(
      sha256("x"), []() -> Result<std::string> { return fail(ErrorKind::Unreachable, "gone"); });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::Unreachable);
}

}  // namespace
}  // namespace tilewright::fleet
