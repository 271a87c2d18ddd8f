#include "tilewright/driver/report/bench_compare.h"

#include <gtest/gtest.h>

#include "tilewright/base/rng.h"

namespace tilewright::driver {
namespace {

TEST(BenchCompare, A8_OneDisturbedRoundChangesNothing) {
  std::vector<double> ratios(20, 0.9);
  ratios[3] = 40;
  const Comparison c = compare_rounds(ratios);
  EXPECT_TRUE(c.faster());
  EXPECT_EQ(c.ratio, 0.9);
  EXPECT_EQ(sentence(c), "faster: 0.900 of its time (95 %: 0.900 to 0.900)");
}

TEST(BenchCompare, TheIntervalIsThatOfTheSignTest) {
  std::vector<double> ratios;
  for (int i = 1; i <= 20; ++i) ratios.push_back(i);
  const Comparison c = compare_rounds(ratios);  // ranks 6 and 15 of 20 hold 95.9 %
  EXPECT_EQ(c.low, 6);
  EXPECT_EQ(c.high, 15);
  EXPECT_EQ(c.ratio, 10.5);
  EXPECT_TRUE(c.slower());
  EXPECT_EQ(compare_rounds({1, 2, 3, 4, 5, 6}).low, 1);
}

TEST(BenchCompare, EqualSidesSeldomDiffer) {
  Rng rng(5);
  int differ = 0;
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> ratios;
    for (int i = 0; i < 20; ++i) ratios.push_back(1 + 0.01 * rng.normal());
    const Comparison c = compare_rounds(ratios);
    differ += c.faster() || c.slower();
  }
  EXPECT_LT(differ, 70);  // 41 are expected
  EXPECT_GT(differ, 15);
}

}  // namespace
}  // namespace tilewright::driver
