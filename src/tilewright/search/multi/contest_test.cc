#include "tilewright/search/multi/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/statistics.h"
#include "tilewright/search/multi/testing/problems.h"

namespace tilewright::search {
namespace {

using ::testing::ElementsAre;
using namespace testing;

double median_share(const ContestTable& table, const std::string& method, int evaluations,
                    const MultiOptions& options = {}, size_t seeds = 3) {
  std::vector<uint64_t> all;
  for (uint64_t seed = 0; seed < seeds; ++seed) all.push_back(seed);
  const auto runs = contest(table, method, options, all, evaluations);
  EXPECT_TRUE(runs);
  return runs ? median(shares_after(*runs, static_cast<size_t>(evaluations))) : 0;
}

TEST(Contest, TrueFrontsAreTheKnownOnes) {
  const ContestTable first = zdt1(4, 6);
  const auto front = true_front(first);
  ASSERT_TRUE(front);
  for (size_t i : front->front()) {
    const Point& p = first.points[i];
    EXPECT_EQ(p[1] + p[2] + p[3], 0);
  }
  EXPECT_EQ(front->front().size(), 6u);
  const ContestTable second = dtlz2(4, 5);
  const auto sphere = true_front(second);
  ASSERT_TRUE(sphere);
  EXPECT_GE(sphere->front().size(), 21u);  // more where sines are rounded
  for (size_t i : sphere->front()) {
    double squares = 0;
    for (double f : second.outcomes[i].objectives) squares += (f - kAboveZero) * (f - kAboveZero);
    EXPECT_NEAR(squares, 1, 1e-12);
  }
}

TEST(Contest, SharesCountEveryEvaluation) {
  ContestTable table = zdt1(2, 3);
  table.outcomes[4] = {{}, {}, "fails"};
  const auto runs = contest(table, "random", {}, {5, 6}, 50);
  ASSERT_TRUE(runs);
  for (const ContestRun& run : *runs) {
    ASSERT_EQ(run.shares.size(), 9u);
    EXPECT_TRUE(std::is_sorted(run.shares.begin(), run.shares.end()));
    EXPECT_NEAR(run.shares.back(), 1, 1e-12);
  }
  EXPECT_NE(runs->at(0).trials[0].point, runs->at(1).trials[0].point);
  EXPECT_NEAR(feasible_share(*runs, 0), 8.0 / 9, 1e-12);
  EXPECT_EQ(feasible_share(*runs, 9), 1);
}

TEST(Contest, MediansAreOverRuns) {
  std::vector<ContestRun> runs(3);
  runs[0].shares = {0.1, 0.5, 0.9};
  runs[1].shares = {0.2, 0.3};
  runs[2].shares = {0.0, 0.4, 0.8};
  EXPECT_THAT(shares_after(runs, 3), ElementsAre(0.9, 0.3, 0.8));
  EXPECT_EQ(evaluations_to(runs, 0.4), 2u);
  EXPECT_EQ(evaluations_to(runs, 0.8), 3u);
  EXPECT_EQ(evaluations_to(runs, 0.85), std::nullopt);
}

TEST(Contest, NothingFeasibleIsAnError) {
  ContestTable table = zdt1(2, 3);
  for (MultiOutcome& outcome : table.outcomes) outcome.violations = {1};
  table.problem.limits = 1;
  const auto runs = contest(table, "random", {}, {0}, 5);
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().kind, ErrorKind::Capacity);
}

TEST(Contest, EvolutionFindsKnownFronts) {
  MultiOptions options;
  options.population = 20, options.initial = 20;
  EXPECT_GT(median_share(zdt1(4, 7), "nsga2", 500, options), 0.97);
  EXPECT_LT(median_share(zdt1(4, 7), "random", 500, options), 0.9);
  EXPECT_GT(median_share(dtlz2(4, 9), "nsga2", 500, options), 0.95);
  // The population of the paper.
  EXPECT_GT(median_share(zdt1(4, 7), "nsga2", 200, {}), 0.9);
}

TEST(ContestSlow, ModelsFindKnownFrontsInFewEvaluations) {
  for (Acquisition acquisition : {Acquisition::Hvpi, Acquisition::Ehvi}) {
    MultiOptions options;
    options.acquisition = acquisition;
    EXPECT_GT(median_share(zdt1(4, 6), "mobo", 40, options), 0.9);
    EXPECT_GT(median_share(dtlz2(3, 9), "mobo", 40, options), 0.85);
  }
  EXPECT_LT(median_share(zdt1(4, 6), "nsga2", 40), 0.9);
  EXPECT_LT(median_share(dtlz2(3, 9), "nsga2", 40), 0.8);
}

TEST(Contest, OursCorrectsItsPrior) {
  const ContestTable table = accelerators();
  const double ceiling = true_front(table)->ceiling(20).back();
  const double ours = median_share(table, "ours", 20, {}, 1);
  EXPECT_GT(ours, 0.98 * ceiling);
  EXPECT_LT(median_share(table, "mobo", 20), ours);
  // Never told how far off the prior is, the same number of points reaches less.
  ContestTable stubborn = table;
  stubborn.problem.prior.known_objectives = {true, true, true};
  EXPECT_LT(median_share(stubborn, "ours", 20, {}, 1), ours - 0.02);
}

TEST(Contest, G5_OursMeetsLimits) {
  for (const auto& [most_power, least_share] : {std::pair{400.0, 0.97}, std::pair{300.0, 0.8}}) {
    const auto runs = contest(accelerators(most_power), "ours", {}, {0, 1}, 20);
    ASSERT_TRUE(runs);
    EXPECT_GE(feasible_share(*runs, 0), 0.95) << most_power;
    EXPECT_GE(median(shares_after(*runs, 20)), least_share) << most_power;
  }
}

}  // namespace
}  // namespace tilewright::search
