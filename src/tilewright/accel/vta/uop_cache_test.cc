#include "tilewright/accel/vta/uop_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

std::vector<Uop> kernel(uint32_t id, uint32_t size) {
  std::vector<Uop> uops(size);
  for (uint32_t i = 0; i < size; ++i) uops[i] = {id, i, 0};
  return uops;
}

/// LRU said naively: every cell knows its kernel, every kernel the time of its last use.
struct NaiveCache {
  std::vector<int> cells;                     // -1: free
  std::vector<std::pair<int, int>> last_use;  // (time, kernel), resident ones only

  std::optional<uint32_t> gap(uint32_t size) const {
    for (uint32_t at = 0; at + size <= cells.size(); ++at)
      if (std::all_of(cells.begin() + at, cells.begin() + at + size,
                      [](int cell) { return cell < 0; }))
        return at;
    return std::nullopt;
  }
  UopCache::Place use(int id, uint32_t size, int time) {
    const auto same = [&](const auto& entry) { return entry.second == id; };
    const auto found = std::find_if(last_use.begin(), last_use.end(), same);
    UopCache::Place place;
    place.load = found == last_use.end();
    if (!place.load) last_use.erase(found);
    while (place.load && !gap(size)) {
      const auto oldest = std::min_element(last_use.begin(), last_use.end());
      std::replace(cells.begin(), cells.end(), oldest->second, -1);
      last_use.erase(oldest);
    }
    if (place.load) std::fill_n(cells.begin() + *gap(size), size, id);
    last_use.emplace_back(time, id);
    place.begin = static_cast<uint32_t>(std::find(cells.begin(), cells.end(), id) - cells.begin());
    place.end = place.begin + size;
    return place;
  }
};

TEST(UopCache, IsLeastRecentlyUsedOverKernelsOfAnySize) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const auto depth = static_cast<uint32_t>(rng.between(20, 64));
    std::vector<uint32_t> sizes;
    for (int i = 0; i < 12; ++i) sizes.push_back(static_cast<uint32_t>(rng.between(1, depth / 2)));
    UopCache cache(depth);
    NaiveCache naive{std::vector<int>(depth, -1), {}};
    for (int time = 0; time < 300; ++time) {
      const auto id = static_cast<uint32_t>(rng.below(12));
      const auto place = cache.use(kernel(id, sizes[id]));
      ASSERT_TRUE(place);
      const UopCache::Place want = naive.use(static_cast<int>(id), sizes[id], time);
      ASSERT_EQ(place->load, want.load) << "seed " << seed << " time " << time;
      ASSERT_EQ(place->begin, want.begin);
      ASSERT_EQ(place->end, want.end);
      EXPECT_EQ(cache.kernels()[place->kernel], kernel(id, sizes[id]));
    }
  }
}

TEST(UopCache, SharesEqualKernels) {
  UopCache cache(100);
  const auto first = cache.use(kernel(1, 60)), other = cache.use(kernel(2, 50));
  ASSERT_TRUE(first && other);
  EXPECT_TRUE(other->load);
  const auto again = cache.use(kernel(1, 60));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->load) << "the second kernel took its room";
  EXPECT_EQ(again->kernel, first->kernel);
  EXPECT_EQ(cache.kernels().size(), 2u);
  EXPECT_EQ(cache.dram_uops(), 110u);
  EXPECT_FALSE(cache.use(kernel(1, 60))->load);
  cache.forget_resident();
  const auto later = cache.use(kernel(1, 60));
  EXPECT_TRUE(later->load);
  EXPECT_EQ(later->kernel, first->kernel);
}

TEST(UopCache, KernelsAreEncodedWordByWord) {
  const Config config;
  const std::vector<Uop> uops = kernel(7, 17);
  const std::string bytes = encode_kernel(config, uops);
  ASSERT_EQ(bytes.size(), 17u * 4);
  for (size_t i = 0; i < uops.size(); ++i) {
    uint32_t word = 0;
    for (size_t byte = 0; byte < 4; ++byte)
      word |= uint32_t{static_cast<uint8_t>(bytes[i * 4 + byte])} << (8 * byte);
    EXPECT_EQ(decode_uop(config, word), uops[i]);
  }
}

TEST(UopCache, RefusesWhatCannotFit) {
  UopCache cache(16);
  EXPECT_TRUE(cache.use(kernel(0, 16)));
  const auto large = cache.use(kernel(1, 17));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, ErrorKind::Capacity);
  EXPECT_NE(large.error().why.find("17 micro-ops, the memory has 16"), std::string::npos);
  EXPECT_EQ(cache.use({}).error().kind, ErrorKind::Invalid);
}

}  // namespace
}  // namespace tilewright::vta
