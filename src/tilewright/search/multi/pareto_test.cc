#include "tilewright/search/multi/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tilewright/base/rng.h"

namespace tilewright::search {
namespace {

using ::testing::ElementsAre;

/// Small whole numbers, so that many are equal; some outcomes break a limit, some have no result.
std::vector<MultiOutcome> random_outcomes(size_t count, size_t objectives, Rng& rng) {
  std::vector<MultiOutcome> outcomes(count);
  for (MultiOutcome& outcome : outcomes) {
    if (rng.chance(0.1)) continue;
    for (size_t j = 0; j < objectives; ++j)
      outcome.objectives.push_back(static_cast<double>(rng.between(1, 6)));
    outcome.violations = {rng.chance(0.7) ? -1.0 : static_cast<double>(rng.between(1, 3))};
  }
  return outcomes;
}

TEST(Pareto, DominationPutsResultsThenLimitsThenObjectivesFirst) {
  const MultiOutcome good{{1, 2}, {-1, 0}, ""}, equal{{1, 2}, {0, 0}, ""},
      worse{{1, 3}, {0, 0}, ""}, other{{2, 1}, {0, 0}, ""}, over{{1, 1}, {0.5, -9}, ""},
      further{{1, 1}, {0.25, 0.5}, ""}, none{{}, {}, "does not fit"};
  EXPECT_TRUE(dominates(good, worse));
  EXPECT_FALSE(dominates(worse, good));
  EXPECT_FALSE(dominates(good, equal) || dominates(equal, good));
  EXPECT_FALSE(dominates(good, other) || dominates(other, good));
  EXPECT_TRUE(dominates(worse, over));
  EXPECT_TRUE(dominates(over, further));  // one limit that is met does not pay for another
  EXPECT_TRUE(dominates(further, none));
  EXPECT_FALSE(dominates(none, none));
  EXPECT_TRUE(feasible(good));
  EXPECT_FALSE(feasible(over) || feasible(none));
  EXPECT_EQ(total_violation(over), 0.5);
  EXPECT_EQ(total_violation(further), 0.75);
}

TEST(Pareto, RanksAreWhatPeelingOffGives) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<size_t>(rng.between(1, 40));
    const auto objectives = static_cast<size_t>(rng.between(1, 4));
    const std::vector<MultiOutcome> outcomes = random_outcomes(count, objectives, rng);
    std::vector<size_t> left(count);
    for (size_t i = 0; i < count; ++i) left[i] = i;
    std::vector<std::vector<size_t>> ranks;
    while (!left.empty()) {
      std::vector<size_t> rank, rest;
      for (size_t i : left) {
        bool dominated = false;
        for (size_t k : left) dominated |= dominates(outcomes[k], outcomes[i]);
        (dominated ? rest : rank).push_back(i);
      }
      ranks.push_back(rank);
      left = rest;
    }
    EXPECT_EQ(non_dominated_sort(outcomes), ranks) << "round " << round;
  }
}

TEST(Pareto, CrowdingIsTheRoomBetweenNeighbours) {
  const std::vector<MultiOutcome> outcomes = {
      {{9, 9}, {}, ""}, {{1, 5}, {}, ""}, {{2, 4}, {}, ""}, {{4, 2}, {}, ""}, {{5, 1}, {}, ""}};
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(crowding_distances(outcomes, {1, 2, 3, 4}),
              ElementsAre(infinite, 3.0 / 4 + 3.0 / 4, 3.0 / 4 + 3.0 / 4, infinite));
  EXPECT_THAT(crowding_distances(outcomes, {4, 3, 1}), ElementsAre(infinite, 2.0, infinite));
  EXPECT_THAT(crowding_distances({{{1, 1}, {}, ""}, {{1, 1}, {}, ""}, {{1, 1}, {}, ""}}, {0, 1, 2}),
              ElementsAre(infinite, 0.0, infinite));
  EXPECT_THAT(crowding_distances({{}, {}}, {0, 1}), ElementsAre(0.0, 0.0));
}

TEST(Pareto, FrontIsWhatAllPairsSay) {
  Rng rng(2);
  for (int round = 0; round < 40; ++round) {
    std::vector<Objectives> points(static_cast<size_t>(rng.between(1, 300)));
    const auto objectives = static_cast<size_t>(rng.between(1, 4));
    for (Objectives& point : points)
      for (size_t j = 0; j < objectives; ++j)
        point.push_back(static_cast<double>(rng.between(1, 12)));
    std::vector<size_t> front;
    for (size_t i = 0; i < points.size(); ++i) {
      bool dominated = false;
      for (const Objectives& other : points) dominated |= dominates(other, points[i]);
      if (!dominated) front.push_back(i);
    }
    EXPECT_EQ(pareto_front(points), front) << "round " << round;
  }
}

}  // namespace
}  // namespace tilewright::search
