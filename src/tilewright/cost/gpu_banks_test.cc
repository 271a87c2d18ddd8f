#include "tilewright/cost/gpu_banks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/rng.h"

namespace tilewright::cost {
namespace {

std::vector<int64_t> strided(int64_t step) {
  std::vector<int64_t> offsets;
  for (int64_t lane = 0; lane < 32; ++lane) offsets.push_back(lane * step);
  return offsets;
}

TEST(GpuBanks, KnownPatterns) {
  EXPECT_EQ(bank_passes(strided(4), 4), 1);
  EXPECT_EQ(bank_passes(strided(0), 4), 1);  // all lanes the same word
  EXPECT_EQ(bank_passes(strided(8), 4), 2);
  EXPECT_EQ(bank_passes(strided(12), 4), 1);
  EXPECT_EQ(bank_passes(strided(128), 4), 32);
  EXPECT_EQ(bank_passes(strided(132), 4), 1);  // a row of 32 and one more
  EXPECT_EQ(bank_passes(strided(2), 2), 1);    // two lanes to a word
  EXPECT_EQ(bank_passes(strided(8), 8), 2);
  EXPECT_EQ(bank_passes(strided(16), 16), 4);
  EXPECT_EQ(bank_passes(strided(128), 16), 32);
  EXPECT_EQ(bank_passes(strided(144), 16), 4);  // rows of 64 halves and 8 more
}

/// Passes by serving lanes one by one: a pass takes a lane's words as long as each bank has one.
int64_t by_hand(const std::vector<int64_t>& offsets, int64_t width) {
  const int64_t lanes = 128 / std::max<int64_t>(width, 4);
  int64_t passes = 0;
  for (size_t first = 0; first < offsets.size(); first += static_cast<size_t>(lanes)) {
    std::vector<int64_t> left;
    for (size_t l = first; l < std::min(offsets.size(), first + static_cast<size_t>(lanes)); ++l)
      for (int64_t byte = 0; byte < width; ++byte) left.push_back((offsets[l] + byte) / 4);
    while (!left.empty()) {
      int64_t served[32];
      std::fill(std::begin(served), std::end(served), -1);
      for (const int64_t word : left)
        if (served[word % 32] < 0) served[word % 32] = word;
      std::erase_if(left, [&](int64_t word) { return served[word % 32] == word; });
      ++passes;
    }
  }
  return passes;
}

TEST(GpuBanks, AgreeWithServingLaneByLane) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const int64_t width = int64_t{1} << rng.between(0, 4);
    std::vector<int64_t> offsets;
    for (int64_t lane = 0; lane < rng.between(1, 32); ++lane)
      offsets.push_back(rng.below(rng.chance(0.5) ? 40 : 1000) * width);
    ASSERT_EQ(bank_passes(offsets, width), by_hand(offsets, width)) << i;
  }
}

TEST(GpuBanks, PaddingRows) {
  // Lanes down a column of 32 words: one more word spreads them.
  const RowAccess column = lane_box(1, 0, 1, 1), row = lane_box(32, 1, 0, 1);
  EXPECT_EQ(row_passes({column, row}, 32, 4), 33);
  EXPECT_EQ(best_row_pad({column, row}, 32, 4, 1), 1);
  EXPECT_EQ(row_passes({column, row}, 33, 4), 2);
  // Eight rows of 16 bytes a time, rows of 64 halves.
  EXPECT_EQ(best_row_pad({lane_box(1, 0, 1, 8)}, 64, 2, 8), 8);
  // Nothing to gain: nothing is left free.
  EXPECT_EQ(best_row_pad({row}, 32, 4, 1), 0);
  // The weight decides between accesses that want different rows.
  RowAccess often = lane_box(8, 1, 1, 1);  // 4 rows of 8
  often.weight = 100;
  const int64_t pad = best_row_pad({often, column}, 32, 4, 1);
  EXPECT_EQ(row_passes({often}, 32 + pad, 4), 100);
  for (int64_t other = 0; other < 32; ++other)
    EXPECT_LE(row_passes({often, column}, 32 + pad, 4), row_passes({often, column}, 32 + other, 4));
}

}  // namespace
}  // namespace tilewright::cost
