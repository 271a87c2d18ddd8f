#include "tilewright/base/rank_correlation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright {
namespace {

TEST(RankCorrelation, IsThatOfRanks) {
  EXPECT_EQ(rank_correlation({1, 2, 3}, {10, 20, 1e9}), 1);
  EXPECT_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
  // 1 - 6 sum d^2 / (n (n^2 - 1)), d = 1, 1, 2, 1, 1
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 5, 3, 4}), 1 - 6.0 * 8 / 120);
  // Ranks 0.5 0.5 2 3 against 0 1 2 3: covariance 4.5, variances 4.5 and 5.
  EXPECT_DOUBLE_EQ(rank_correlation({7, 7, 8, 9}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_TRUE(std::isnan(rank_correlation({1, 1}, {1, 2})));
  EXPECT_TRUE(std::isnan(rank_correlation({}, {})));
}

}  // namespace
}  // namespace tilewright
