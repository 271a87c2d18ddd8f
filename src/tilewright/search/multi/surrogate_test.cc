#include "tilewright/search/multi/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/search/multi/improvement.h"
#include "tilewright/search/multi/testing/problems.h"

namespace tilewright::search {
namespace {

using namespace testing;

std::vector<MultiTrial> trials_of(const ContestTable& table, size_t count) {
  std::vector<MultiTrial> trials;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * 37 % table.points.size();
    trials.push_back({table.points[at], table.outcomes[at], 0});
  }
  return trials;
}

TEST(Surrogate, BeliefsFollowFromTheTrialsAlone) {
  // Past 64 trials parameters are not fitted to all of them, but to the same ones each time.
  const ContestTable table = dtlz2(3, 9);
  Surrogate often(table.problem, {}), once(table.problem, {});
  const PointViews views = often.view(table.points);
  const std::vector<MultiTrial> all = trials_of(table, 73);
  Beliefs beliefs;
  for (size_t count : {20, 65, 66, 71, 73})
    beliefs = often.believe({all.begin(), all.begin() + static_cast<long>(count)}, views);
  const Beliefs fresh = once.believe(all, views);
  EXPECT_EQ(beliefs.mean, fresh.mean);
  EXPECT_EQ(beliefs.deviation, fresh.deviation);
}

TEST(Surrogate, KnowsWhatItWasToldAndIsLessSureOfTheRest) {
  const ContestTable table = dtlz2(3, 9);
  Surrogate surrogate(table.problem, {});
  const std::vector<MultiTrial> trials = trials_of(table, 30);
  std::vector<Point> told;
  for (const MultiTrial& trial : trials) told.push_back(trial.point);
  const Beliefs known = surrogate.believe(trials, surrogate.view(told));
  for (size_t i = 0; i < trials.size(); ++i)
    for (size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(known.mean(static_cast<long>(i), static_cast<long>(j)),
                  std::log10(trials[i].outcome.objectives[j]), 0.02);
  const Beliefs rest = surrogate.believe(trials, surrogate.view(table.points));
  EXPECT_GT(rest.deviation.mean(), 3 * known.deviation.mean());
  EXPECT_EQ(rest.feasible.minCoeff(), 1);
}

TEST(Surrogate, TellsWhatMeetsALimitThoughTrialsOnlySayZero) {
  ContestTable table = dtlz2(3, 9);
  table.problem.limits = 1;
  for (size_t i = 0; i < table.points.size(); ++i)
    table.outcomes[i].violations = {std::max(0.0, 4.0 - table.points[i][0])};
  Surrogate surrogate(table.problem, {});
  const std::vector<MultiTrial> trials = trials_of(table, 40);
  const Beliefs beliefs = surrogate.believe(trials, surrogate.view(table.points));
  size_t right = 0;
  for (size_t i = 0; i < table.points.size(); ++i) {
    const double met = beliefs.feasible[static_cast<Eigen::Index>(i)];
    right += (feasible(table.outcomes[i]) ? met > 0.8 : met < 0.2) ? 1 : 0;
  }
  EXPECT_GT(right, table.points.size() * 9 / 10);
}

class MoboAfter : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Trials, MoboAfter, ::testing::Values(6, 10, 15, 20, 30));

TEST_P(MoboAfter, ProposesWhatPromisesMostOfAllPoints) {
  ContestTable table = dtlz2(3, 9);
  table.problem.limits = 1;
  for (size_t i = 0; i < table.points.size(); ++i)
    table.outcomes[i].violations = {0.3 - 0.1 * table.points[i][0]};
  const std::vector<MultiTrial> trials = trials_of(table, GetParam());
  Surrogate surrogate(table.problem, {});
  const Beliefs beliefs = surrogate.believe(trials, surrogate.view(table.points));
  std::vector<Objectives> results, front;
  for (const MultiTrial& trial : trials)
    if (feasible(trial.outcome)) results.push_back(trial.outcome.objectives);
  const ObjectiveScale scale = ObjectiveScale::of(results);
  for (const Objectives& result : results) front.push_back(scale(result));
  const Improvement improvement(front, {kReference, kReference, kReference});
  for (Acquisition acquisition : {Acquisition::Hvpi, Acquisition::Ehvi}) {
    MultiOptions options;
    options.initial = 2;
    options.acquisition = acquisition;
    const auto searcher = multi_searcher("mobo", table.problem, options);
    ASSERT_TRUE(searcher);
    (*searcher)->tell(trials);
    const std::vector<Point> proposed = (*searcher)->propose(1);
    double best = 0;
    Point expected;
    for (size_t i = 0; i < table.points.size(); ++i) {
      if ((*searcher)->tried(table.points[i])) continue;
      double mean[3], deviation[3];
      for (size_t j = 0; j < 3; ++j) {
        const auto row = static_cast<Eigen::Index>(i), column = static_cast<Eigen::Index>(j);
        mean[j] = (beliefs.mean(row, column) - scale.low[j]) / (scale.high[j] - scale.low[j]);
        deviation[j] = beliefs.deviation(row, column) / (scale.high[j] - scale.low[j]);
      }
      const double value =
          beliefs.feasible[static_cast<Eigen::Index>(i)] *
          (acquisition == Acquisition::Ehvi
               ? improvement.expected(mean, deviation)
               : improvement.added(mean) * improvement.probability(mean, deviation));
      if (value > best) best = value, expected = table.points[i];
    }
    ASSERT_EQ(proposed.size(), 1u);
    EXPECT_EQ(proposed[0], expected);
  }
}

TEST(Surrogate, ScalesTheSpacesFeaturesToTheUnitCube) {
  const ContestTable table = accelerators();
  const PointViews views = Surrogate(table.problem, {}).view(table.points);
  EXPECT_EQ(views.inputs.cols(), 8);  // six sizes and two kinds
  for (Eigen::Index j = 0; j < views.inputs.cols(); ++j) {
    EXPECT_EQ(views.inputs.col(j).minCoeff(), 0);
    EXPECT_EQ(views.inputs.col(j).maxCoeff(), 1);
  }
  // side 8, 16, 32: equal steps of its logarithm.
  EXPECT_EQ(Surrogate(table.problem, {}).view({{1, 0, 0, 0, 0, 0, 0}}).inputs(0, 0), 0.5);
}

TEST(Surrogate, WithoutTrialsThePriorIsAllThereIs) {
  ContestTable table = accelerators(400);
  table.problem.prior.spread = 0.2;
  SurrogateOptions options;
  options.use_prior = true;
  Surrogate surrogate(table.problem, options);
  const Beliefs beliefs = surrogate.believe({}, surrogate.view(table.points));
  for (size_t i = 0; i < table.points.size(); i += 100) {
    const PriorValue prior = table.problem.prior.at(table.points[i]);
    const auto row = static_cast<Eigen::Index>(i);
    for (long j = 0; j < 3; ++j) {
      EXPECT_EQ(beliefs.mean(row, j), prior.log_objectives[static_cast<size_t>(j)]);
      EXPECT_EQ(beliefs.deviation(row, j), j < 2 ? 0.2 : 0);  // the area is known
    }
    // At most 400: the violation is normal with deviation 0.2.
    const double met = 0.5 * std::erfc(prior.violations[0] / 0.2 / std::sqrt(2.0));
    EXPECT_NEAR(beliefs.feasible[row], met, 1e-12);
  }
}

}  // namespace
}  // namespace tilewright::search
