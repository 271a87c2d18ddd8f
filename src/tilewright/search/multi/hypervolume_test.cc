#include "tilewright/search/multi/hypervolume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/rng.h"

namespace tilewright::search {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::vector<Objectives> random_points(size_t count, size_t objectives, double up_to, Rng& rng) {
  std::vector<Objectives> points(count);
  for (Objectives& point : points)
    for (size_t j = 0; j < objectives; ++j) point.push_back(up_to * rng.uniform());
  return points;
}

/// Volume of the union of boxes from the points to the reference, by all intersections.
double by_inclusion_exclusion(const std::vector<Objectives>& points, const Objectives& reference) {
  double total = 0;
  for (size_t set = 1; set < (size_t{1} << points.size()); ++set) {
    double volume = -1;
    for (size_t i = 0; i < points.size(); ++i)
      if ((set >> i & 1) != 0) volume = -volume;
    const double sign = volume;
    volume = 1;
    for (size_t j = 0; j < reference.size(); ++j) {
      double corner = -1e9;
      for (size_t i = 0; i < points.size(); ++i)
        if ((set >> i & 1) != 0) corner = std::max(corner, points[i][j]);
      volume *= std::max(0.0, reference[j] - corner);
    }
    total += sign * volume;
  }
  return total;
}

TEST(Hypervolume, IsRightByHand) {
  EXPECT_EQ(hypervolume({}, {1, 1}), 0);
  EXPECT_EQ(hypervolume({{0.25}, {0.5}}, {1}), 0.75);
  EXPECT_EQ(hypervolume({{0, 2}, {1, 1}, {2, 0}}, {3, 3}), 3 + 2 + 1);
  EXPECT_EQ(hypervolume({{0, 0}, {3, -9}}, {3, 3}), 9);  // not below the reference
  EXPECT_EQ(hypervolume({{0, 0, 1}, {0, 1, 0}, {1, 0, 0}}, {2, 2, 2}), 7);
  EXPECT_EQ(hypervolume({{1, 1, 1, 1}, {1, 1, 1, 1}, {0, 1, 1, 1}}, {2, 2, 2, 2}), 2);
}

TEST(Hypervolume, AgreesWithInclusionAndExclusion) {
  Rng rng(3);
  for (size_t objectives = 1; objectives <= 5; ++objectives)
    for (int round = 0; round < 30; ++round) {
      // Some beyond the reference, some equal to others in one objective or in all.
      const auto count = static_cast<size_t>(rng.between(0, 8));
      std::vector<Objectives> points = random_points(count, objectives, 1.2, rng);
      for (size_t i = 1; i < count; i += 3) points[i][0] = points[i - 1][0];
      if (count > 4) points[4] = points[0];
      const Objectives reference(objectives, 1.0);
      EXPECT_NEAR(hypervolume(points, reference), by_inclusion_exclusion(points, reference), 1e-12)
          << objectives << " objectives, round " << round;
    }
}

TEST(Hypervolume, AgreesWithMonteCarloOnLargeSets) {
  Rng rng(4);
  for (size_t objectives = 2; objectives <= 5; ++objectives) {
    const std::vector<Objectives> points = random_points(150, objectives, 1.0, rng);
    constexpr int kSamples = 40000;
    int inside = 0;
    for (int s = 0; s < kSamples; ++s) {
      const Objectives sample = random_points(1, objectives, 1.1, rng)[0];
      bool dominated = false;
      for (size_t i = 0; i < points.size() && !dominated; ++i) {
        dominated = true;
        for (size_t j = 0; j < objectives; ++j) dominated &= points[i][j] <= sample[j];
      }
      inside += dominated ? 1 : 0;
    }
    const double box = std::pow(1.1, objectives), share = static_cast<double>(inside) / kSamples;
    const double error = 4 * std::sqrt(share * (1 - share) / kSamples) * box;
    EXPECT_NEAR(hypervolume(points, Objectives(objectives, 1.1)), share * box, error + 1e-9)
        << objectives;
  }
}

TEST(ObjectiveScale, MapsLogarithmsToTheUnitCube) {
  const ObjectiveScale scale = ObjectiveScale::of({{1, 7, 5}, {100, 7, 50}, {10, 7, 0.5}});
  EXPECT_THAT(scale({10, 7, 0.5}), ElementsAre(DoubleNear(0.5, 1e-12), 0.0, DoubleNear(0, 1e-12)));
  EXPECT_THAT(scale({1000, 9, 50}), ElementsAre(DoubleNear(1.5, 1e-12), 0.0, DoubleNear(1, 1e-12)));
  EXPECT_NEAR(scale.unit(0), 0.5, 1e-12);
  EXPECT_EQ(scale.unit(1), 0);
}

TEST(FrontScore, SharesAreOfTheTrueFront) {
  const std::vector<Objectives> points = {{1, 100}, {10, 10}, {100, 1}, {100, 100}};
  const FrontScore score(points);
  EXPECT_THAT(score.front(), ElementsAre(0, 1, 2));
  // Scaled: (0, 1), (0.5, 0.5), (1, 0), below 1.1.
  const double whole = 0.36 + 2 * 0.5 * 0.1;
  EXPECT_NEAR(score.whole(), whole, 1e-12);
  EXPECT_NEAR(score.share(points), 1, 1e-12);
  EXPECT_NEAR(score.share({{100, 100}}), 0.01 / whole, 1e-12);
  EXPECT_EQ(score.share({}), 0);
  EXPECT_THAT(score.ceiling(9), ElementsAre(DoubleNear(0.36 / whole, 1e-12),
                                            DoubleNear(0.41 / whole, 1e-12), DoubleNear(1, 1e-12)));
}

TEST(FrontScore, CeilingIsWhatPickingTheBestEachTimeGives) {
  Rng rng(5);
  std::vector<Objectives> points;
  for (int i = 0; i < 1500; ++i) {
    Objectives point;
    for (int j = 0; j < 3; ++j) point.push_back(std::pow(10, rng.uniform()));
    points.push_back(point);
  }
  const FrontScore score(points);
  ASSERT_GT(score.front().size(), 12u);
  std::vector<Objectives> chosen;
  std::vector<double> shares;
  for (int n = 0; n < 12; ++n) {
    double best = 0;
    Objectives added;
    for (size_t i : score.front()) {
      std::vector<Objectives> with = chosen;
      with.push_back(points[i]);
      const double share = score.share(with);
      if (share > best) best = share, added = points[i];
    }
    chosen.push_back(added);
    shares.push_back(best);
  }
  EXPECT_THAT(score.ceiling(12), ::testing::Pointwise(DoubleNear(1e-9), shares));
  EXPECT_NEAR(score.ceiling(1000).back(), 1, 1e-9);
}

}  // namespace
}  // namespace tilewright::search
