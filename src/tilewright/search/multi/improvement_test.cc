#include "tilewright/search/multi/improvement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/rng.h"
#include "tilewright/search/multi/hypervolume.h"

namespace tilewright::search {
namespace {

Objectives random_draw(size_t objectives, double low, double high, Rng& rng) {
  Objectives point;
  for (size_t j = 0; j < objectives; ++j) point.push_back(low + (high - low) * rng.uniform());
  return point;
}

std::vector<Objectives> random_front(size_t count, size_t objectives, Rng& rng) {
  std::vector<Objectives> front;
  for (size_t i = 0; i < count; ++i) front.push_back(random_draw(objectives, 0, 1.15, rng));
  if (count > 3) front[3] = front[0], front[2][0] = front[1][0];
  return front;
}

bool outside(const std::vector<Objectives>& front, const Objectives& reference,
             const Objectives& point) {
  for (size_t j = 0; j < point.size(); ++j)
    if (point[j] >= reference[j]) return false;
  for (const Objectives& known : front) {
    bool covers = true;
    for (size_t j = 0; j < point.size(); ++j) covers &= known[j] <= point[j];
    if (covers) return false;
  }
  return true;
}

TEST(Boxes, HoldEachPointThatIsNotDominatedOnce) {
  Rng rng(6);
  for (size_t objectives = 1; objectives <= 4; ++objectives)
    for (size_t count : {0, 1, 5, 12}) {
      const std::vector<Objectives> front = random_front(count, objectives, rng);
      const Objectives reference(objectives, 1.1);
      const std::vector<ObjectiveBox> boxes = non_dominated_boxes(front, reference);
      for (int s = 0; s < 300; ++s) {
        const Objectives point = random_draw(objectives, -0.2, 1.2, rng);
        int holding = 0;
        for (const ObjectiveBox& box : boxes) {
          bool inside = true;
          for (size_t j = 0; j < objectives; ++j)
            inside &= box.low[j] <= point[j] && point[j] < box.high[j];
          holding += inside ? 1 : 0;
        }
        EXPECT_EQ(holding, outside(front, reference, point) ? 1 : 0);
      }
    }
}

TEST(Boxes, AreFewInThreeObjectives) {
  Rng rng(7);
  std::vector<Objectives> front;
  for (int i = 0; i < 60; ++i) {
    const double a = rng.uniform() * 1.57, b = rng.uniform() * 1.57;
    front.push_back(
        {1 - std::cos(a) * std::cos(b), 1 - std::cos(a) * std::sin(b), 1 - std::sin(a)});
  }
  EXPECT_LE(non_dominated_boxes(front, {1.1, 1.1, 1.1}).size(), 121u);
}

TEST(Improvement, AddedIsTheDifferenceOfVolumes) {
  Rng rng(8);
  for (size_t objectives = 1; objectives <= 4; ++objectives) {
    std::vector<Objectives> front = random_front(8, objectives, rng);
    const Objectives reference(objectives, 1.1);
    const Improvement improvement(front, reference);
    const double before = hypervolume(front, reference);
    for (int s = 0; s < 50; ++s) {
      const Objectives point = random_draw(objectives, -0.1, 1.2, rng);
      front.push_back(point);
      const double added = hypervolume(front, reference) - before;
      front.pop_back();
      EXPECT_NEAR(improvement.added(point.data()), added, 1e-12);
      EXPECT_EQ(improvement.hopeless(point.data()), !outside(front, reference, point));
    }
  }
}

TEST(Improvement, ProbabilityAndExpectationAgreeWithDraws) {
  Rng rng(9);
  constexpr int kDraws = 20000;
  for (size_t objectives = 1; objectives <= 4; ++objectives) {
    const std::vector<Objectives> front = random_front(6, objectives, rng);
    const Objectives reference(objectives, 1.1);
    const Improvement improvement(front, reference);
    for (int round = 0; round < 3; ++round) {
      const Objectives mean = random_draw(objectives, 0, 0.8, rng);
      Objectives deviation = random_draw(objectives, 0.05, 0.5, rng);
      if (round == 1) deviation[0] = 0;  // known
      double inside = 0, sum = 0, squares = 0;
      for (int s = 0; s < kDraws; ++s) {
        Objectives draw;
        for (size_t j = 0; j < objectives; ++j)
          draw.push_back(mean[j] + deviation[j] * rng.normal());
        inside += outside(front, reference, draw) ? 1 : 0;
        const double added = improvement.added(draw.data());
        sum += added, squares += added * added;
      }
      const double share = inside / kDraws, expected = sum / kDraws;
      EXPECT_NEAR(improvement.probability(mean.data(), deviation.data()), share,
                  4.5 * std::sqrt(share * (1 - share) / kDraws) + 3.0 / kDraws);
      EXPECT_NEAR(
          improvement.expected(mean.data(), deviation.data()), expected,
          4.5 * std::sqrt((squares / kDraws - expected * expected) / kDraws) + 3.0 / kDraws);
    }
  }
}

TEST(Improvement, IsRightByHandInOneObjective) {
  // Expected improvement on 0 by a standard normal number: its density at 0.
  const Improvement improvement({{0.0}}, {9.0});
  const double mean = 0, deviation = 1, zero = 0;
  EXPECT_NEAR(improvement.expected(&mean, &deviation), 0.3989422804014327, 1e-15);
  EXPECT_NEAR(improvement.probability(&mean, &deviation), 0.5, 1e-15);
  EXPECT_EQ(improvement.expected(&mean, &zero), 0);
  EXPECT_EQ(improvement.probability(&mean, &zero), 0);
}

}  // namespace
}  // namespace tilewright::search
