#include "tilewright/accel/vta/runtime/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

TEST(DramPool, BlocksAreAlignedDisjointAndComeBack) {
  constexpr uint64_t kPages = 64;
  DramPool pool(4096, (kPages + 1) * 4096);
  Rng rng(1);
  std::vector<int> owner(kPages + 1, -1);
  std::vector<std::pair<int, Buffer>> live;
  for (int step = 0; step < 3000; ++step) {
    if (!live.empty() && rng.chance(0.5)) {
      const auto at = rng.below(std::ssize(live));
      ASSERT_TRUE(pool.free(live[static_cast<size_t>(at)].second));
      std::replace(owner.begin(), owner.end(), live[static_cast<size_t>(at)].first, -1);
      live.erase(live.begin() + at);
      continue;
    }
    const auto bytes = static_cast<uint64_t>(rng.between(1, 8 * 4096));
    const uint64_t pages = (bytes + 4095) / 4096;
    // The smallest gap that is large enough, counted page by page.
    uint64_t best = kPages + 1;
    for (uint64_t page = 1; page <= kPages;) {
      uint64_t end = page;
      while (end <= kPages && owner[end] < 0) ++end;
      if (end - page >= pages) best = std::min(best, end - page);
      page = end + 1;
    }
    const Result<Buffer> buffer = pool.alloc(bytes);
    ASSERT_EQ(buffer.has_value(), best <= kPages);
    if (!buffer) {
      EXPECT_EQ(buffer.error().kind, ErrorKind::Capacity);
      continue;
    }
    EXPECT_EQ(buffer->address % 4096, 0u);
    const uint64_t first = buffer->address / 4096;
    for (uint64_t page = first; page < first + pages; ++page) {
      ASSERT_GE(page, 1u);
      ASSERT_LE(page, kPages);
      ASSERT_EQ(owner[page], -1);
    }
    uint64_t left = first, right = first;
    while (left > 1 && owner[left - 1] < 0) --left;
    while (right <= kPages && owner[right] < 0) ++right;
    EXPECT_EQ(right - left, best) << "not the smallest gap";
    std::fill_n(owner.begin() + static_cast<int64_t>(first), pages, step);
    live.emplace_back(step, *buffer);
  }
  for (const auto& entry : live) ASSERT_TRUE(pool.free(entry.second));
  EXPECT_EQ(pool.free_bytes(), kPages * 4096);
  EXPECT_TRUE(pool.alloc(kPages * 4096)) << "free blocks are merged";
}

TEST(DramPool, MisuseIsAnError) {
  DramPool pool(0, 16 * 4096);
  const Buffer buffer = pool.alloc(100).value();
  EXPECT_EQ(pool.locate(buffer, 90, 10).value(), buffer.address + 90);
  EXPECT_EQ(pool.locate(buffer, 90, 11).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.locate(buffer, 101, 0).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.locate(buffer, ~uint64_t{0}, 2).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.free({buffer.address, 99}).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.free({buffer.address + 4096, 100}).error().kind, ErrorKind::Invalid);
  EXPECT_TRUE(pool.free(buffer));
  EXPECT_EQ(pool.free(buffer).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.locate(buffer, 0, 1).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(pool.alloc(0).error().kind, ErrorKind::Invalid);
  const Result<Buffer> large = pool.alloc(17 * 4096);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().why.find("65536 free"), std::string::npos) << large.error().why;
}

}  // namespace
}  // namespace tilewright::vta
