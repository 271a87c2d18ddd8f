#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/search/network.h"
#include "tilewright/search/q_learner.h"
#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

using ::testing::ElementsAre;

std::vector<double> raw(const Decision& decision, int value) {
  return decision.values[static_cast<size_t>(value)].features;
}

int value_of(const Decision& decision, const std::vector<double>& parts) {
  for (size_t v = 0; v < decision.values.size(); ++v)
    if (decision.values[v].features == parts) return static_cast<int>(v);
  return -1;
}

/// Product over all splits of a node's loops, and 8 ways to unroll: FlexTensor's.
double cpu_node(const std::vector<std::pair<int64_t, int>>& loops) {
  std::vector<Decision> decisions;
  for (const auto& [extent, parts] : loops)
    decisions.push_back(split_decision(std::to_string(decisions.size()), extent, parts));
  decisions.push_back(choice_decision("unroll", {"0", "1", "2", "3", "4", "5", "6", "7"}));
  return Space(decisions).size();
}

TEST(Splits, CountOrderedFactorisations) {
  EXPECT_EQ(split_decision("s", 64, 4).values.size(), 84u);
  EXPECT_EQ(split_decision("s", 56, 4).values.size(), 80u);
  EXPECT_EQ(split_decision("s", 3, 3).values.size(), 3u);
  EXPECT_EQ(split_decision("s", 1024, 3).values.size(), 66u);
  EXPECT_EQ(split_decision("s", 1024, 4).values.size(), 286u);
}

TEST(Splits, SpacesOfYoloLayersHaveTheKnownSizes) {
  // batch, filters, height, width; channels, kernel, kernel: each in four parts.
  EXPECT_EQ(cpu_node({{1, 4}, {512, 4}, {28, 4}, {28, 4}, {512, 4}, {1, 4}, {1, 4}}), 619520000.0);
  EXPECT_EQ(cpu_node({{1, 4}, {1024, 4}, {7, 4}, {7, 4}, {1024, 4}, {3, 4}, {3, 4}}), 167518208.0);
  EXPECT_EQ(cpu_node({{512, 4}, {512, 4}, {512, 4}}), 85184000.0);
}

TEST(Splits, MovesGoToTheNextDivisor) {
  const Decision three = split_decision("s", 3, 4);
  auto moved = [](const Decision& d, const std::vector<double>& from, size_t direction) {
    return raw(d, d.moves[direction][static_cast<size_t>(value_of(d, from))]);
  };
  // Directions are numbered (0,1) (0,2) (0,3) (1,0) ...
  EXPECT_THAT(moved(three, {1, 3, 1, 1}, 0), ElementsAre(3, 1, 1, 1));
  EXPECT_THAT(moved(three, {1, 3, 1, 1}, 3), ElementsAre(1, 3, 1, 1));
  const Decision sixty_four = split_decision("s", 64, 4);
  EXPECT_THAT(moved(sixty_four, {4, 2, 8, 1}, 6), ElementsAre(2, 2, 16, 1));
  EXPECT_EQ(three.moves.size(), 12u);
}

Space conditional() {
  Decision algorithm = choice_decision("algorithm", {"direct", "winograd"});
  Decision tile = ordered_decision("tile", {{"2", {2}}, {"4", {4}}, {"6", {6}}});
  tile.parent = 0, tile.when = {1};
  Decision split = split_decision("k", 12, 2);
  split.parent = 0, split.when = {0};
  Decision deep = choice_decision("deep", {"a", "b"});
  deep.parent = 1, deep.when = {2};
  return Space({algorithm, tile, split, deep});
}

TEST(Space, DecisionsAreAskedUnderTheirParentsOnly) {
  const Space space = conditional();
  // direct: 6 splits; winograd: tiles 2 and 4 once, 6 twice.
  EXPECT_EQ(space.size(), 6 + 4);
  std::set<Point> all;
  for (int64_t i = 0; i < 10; ++i) all.insert(space.at(i));
  EXPECT_EQ(all.size(), 10u);
  Rng rng(1);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(all.contains(space.random(rng)));
  for (const Point& point : all) {
    EXPECT_EQ(space.canonical(point), point);
    for (const Point& next : space.neighbours(point)) EXPECT_TRUE(all.contains(next));
  }
  EXPECT_EQ(space.text(space.at(0)), "algorithm=direct k=1x12");
}

TEST(Searchers, AListIsTriedInItsOrderAndEnds) {
  const Space space({choice_decision("a", {"0", "1", "2", "3"})});
  const auto searcher = list_searcher(space, {{2}, {0}, {3}});
  EXPECT_THAT(searcher->propose(2), ElementsAre(Point{2}, Point{0}));
  EXPECT_THAT(searcher->propose(2), ElementsAre(Point{3}));
  EXPECT_TRUE(searcher->propose(2).empty());
}

TEST(Starts, AreDrawnByRelativePerformance) {
  EXPECT_NEAR(start_probability(0.5, 1, 0.5), 0.7788, 1e-4);
  EXPECT_EQ(start_probability(2, 2, 0.5), 1);
}

TEST(QNetwork, HasThePapersSize) {
  Rng rng(1);
  EXPECT_EQ(QLearner(31, 12, 64, rng).parameter_count(), 11148u);
}

TEST(Network, LearnsAFunction) {
  Rng rng(3);
  Network network({2, 32, 32, 1}, rng);
  auto error = [&](bool train) {
    Eigen::MatrixXd x(2, 64);
    std::vector<double> y;
    for (int i = 0; i < 64; ++i) {
      x(0, i) = 2 * rng.uniform() - 1, x(1, i) = 2 * rng.uniform() - 1;
      y.push_back(x(0, i) * x(1, i));
    }
    const std::vector<int> first(64, 0);
    return train ? network.train(x, first, y, 0.5) : Network(network).train(x, first, y, 0) / 64;
  };
  const double before = error(false);
  for (int i = 0; i < 4000; ++i) error(true);
  EXPECT_LT(error(false), before / 20);
}

/// A space of 74 million points with one best point; some fail.
struct Problem {
  Space space{[] {
    return std::vector<Decision>{split_decision("a", 4096, 4), split_decision("b", 1024, 4),
                                 choice_decision("c", {"x", "y"}), split_decision("d", 4096, 4)};
  }()};

  double cost(const Point& point) const {
    const std::vector<double> f = space.features(point);
    auto off = [](double v, double best) { return std::abs(std::log2(v / best)); };
    if (f[0] * f[4] > 1 << 14) return kInvalid;
    const std::vector<std::pair<size_t, double>> best = {
        {0, 8}, {1, 16}, {2, 8}, {4, 16}, {5, 1}, {6, 16}, {10, 4}, {11, 64}, {12, 2}};
    double far = f[8] == 1 ? 0 : 1;
    for (const auto& [feature, value] : best) far += off(f[feature], value);
    return std::exp(0.2 * far);
  }
  Evaluate evaluate() const {
    return [this](const std::vector<Point>& points) {
      std::vector<Evaluation> outcomes;
      for (const Point& point : points) {
        const double c = cost(point);
        outcomes.push_back({c, std::isfinite(c) ? "" : "too large"});
      }
      return outcomes;
    };
  }
};

/// Memorises costs of feature vectors by their nearest neighbours: enough to guide.
class Nearest final : public Model {
 public:
  void fit(const std::vector<std::vector<double>>& features,
           const std::vector<double>& costs) override {
    features_ = features, costs_ = costs;
  }
  std::vector<double> score(const std::vector<std::vector<double>>& features) const override {
    std::vector<double> out;
    for (const auto& f : features) {
      double least = kInvalid, value = 0;
      for (size_t i = 0; i < features_.size(); ++i) {
        double distance = 0;
        for (size_t k = 0; k < f.size(); ++k)
          distance += std::abs(std::log2((1 + f[k]) / (1 + features_[i][k])));
        if (distance >= least) continue;
        least = distance;
        value = std::isfinite(costs_[i]) ? -std::log(costs_[i]) : -10;
      }
      out.push_back(value);
    }
    return out;
  }

 private:
  std::vector<std::vector<double>> features_;
  std::vector<double> costs_;
};

using Make = std::unique_ptr<Searcher> (*)(const Problem&, uint64_t seed);
struct Row {
  const char* name;
  Make make;
  int trials = 300;  ///< in which it must beat chance
};
const Row kRows[] = {
    {"random", [](const Problem& p, uint64_t s) { return random_searcher(p.space, s); }},
    {"annealing", [](const Problem& p, uint64_t s) { return annealing_searcher(p.space, s); }},
    {"p", [](const Problem& p, uint64_t s) { return p_searcher(p.space, s); }, 800},
    {"q", [](const Problem& p, uint64_t s) { return q_searcher(p.space, s); }},
    {"q_released",
     [](const Problem& p, uint64_t s) {
       QMethodOptions options;
       options.form = QMethodOptions::Form::Released;
       options.planned_trials = 200;
       return q_searcher(p.space, s, options);
     }},
    {"q_cheapest",
     [](const Problem& p, uint64_t s) {
       QMethodOptions options;
       options.starts = 8, options.cheapest_starts = true, options.warm_up = 64;
       return q_searcher(p.space, s, options);
     }},
    {"evolution", [](const Problem& p, uint64_t s) { return evolution_searcher(p.space, s); }},
    {"model",
     [](const Problem& p, uint64_t s) {
       ModelGuidedOptions options;
       options.chains = 16, options.steps = 20;
       return model_searcher(p.space, s, std::make_unique<Nearest>(), options);
     }},
    {"prior",
     [](const Problem& p, uint64_t s) {
       PriorGuidedOptions options;
       // A prior that knows the first split only.
       options.prior = [&p](const Point& point) {
         const double f = p.space.features(point)[0];
         return std::exp(0.2 * std::abs(std::log2(f / 8)));
       };
       return prior_searcher(p.space, s, options);
     }},
};

/// What other spaces have taught counts from the first batch on, in whatever unit it was measured.
TEST(ModelSearcher, KnownSamplesGuideTheFirstBatch) {
  const Problem problem;
  const auto first = [&](double unit) {
    ModelGuidedOptions options;
    options.chains = 16, options.steps = 20, options.random_share = 0;
    Rng rng(5);
    KnownSamples known;
    for (int i = 0; unit > 0 && i < 200; ++i) {
      const Point point = problem.space.random(rng);
      known.features.push_back(problem.space.features(point));
      known.costs.push_back(unit * problem.cost(point));
    }
    options.known = {known, {}};
    const auto searcher = model_searcher(problem.space, 3, std::make_unique<Nearest>(), options);
    std::vector<double> costs;
    for (const Point& point : searcher->propose(16)) costs.push_back(problem.cost(point));
    std::sort(costs.begin(), costs.end());
    return costs[8];
  };
  const double untaught = first(0), taught = first(1);
  EXPECT_LT(taught, 0.7 * untaught);
  EXPECT_EQ(first(1e9), taught);
}

class EverySearcher : public testing::TestWithParam<Row> {};

TEST_P(EverySearcher, NeverRepeatsAndIsDeterministic) {
  const Problem problem;
  Budget budget;
  budget.trials = 150;
  std::vector<std::vector<Point>> runs;
  for (int i = 0; i < 2; ++i) {
    const auto searcher = GetParam().make(problem, 7);
    const RunResult result = run(*searcher, problem.evaluate(), budget);
    std::vector<Point> points;
    for (const Trial& trial : result.trials) points.push_back(trial.point);
    EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 150u);
    runs.push_back(points);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_P(EverySearcher, TriesEveryPointOfASmallSpace) {
  const Space space = conditional();
  Problem problem;
  problem.space = space;
  const auto searcher =
      std::string(GetParam().name) == "prior"
          ? prior_searcher(problem.space, 1, {.prior = [](const Point&) { return 1.0; }})
          : GetParam().make(problem, 1);
  const Evaluate flat = [](const std::vector<Point>& points) {
    std::vector<Evaluation> outcomes;
    for (const Point& p : points) outcomes.push_back({1.0 + p[0], ""});
    return outcomes;
  };
  const RunResult result = run(*searcher, flat, {});
  EXPECT_EQ(result.stop, Stop::Exhausted);
  EXPECT_EQ(result.trials.size(), 10u);
}

/// Batches that are evaluated at the same time, and told in any order.
class Flights {
 public:
  Flights(const Problem& problem, Searcher& searcher) : problem_(problem), searcher_(searcher) {}

  void begin() {
    std::vector<Point> batch = searcher_.propose(8);
    for (const Point& point : batch)
      EXPECT_TRUE(proposed_.insert(point).second) << problem_.space.text(point);
    if (!batch.empty()) out_.push_back(std::move(batch));
  }
  std::vector<Point> take(size_t which) {
    std::vector<Point> batch = std::move(out_[which]);
    out_.erase(out_.begin() + static_cast<long>(which));
    return batch;
  }
  void tell(size_t which) {
    std::vector<Trial> trials;
    for (const Point& point : take(which)) trials.push_back({point, {problem_.cost(point), ""}, 0});
    searcher_.tell(trials);
  }
  void give_up(size_t which) {
    const std::vector<Point> batch = take(which);
    searcher_.give_up(batch);
    for (const Point& point : batch) proposed_.erase(point);
  }
  size_t out() const { return out_.size(); }
  size_t proposed() const { return proposed_.size(); }

 private:
  const Problem& problem_;
  Searcher& searcher_;
  std::set<Point> proposed_;
  std::vector<std::vector<Point>> out_;
};

TEST_P(EverySearcher, ProposesNothingTwiceWhileBatchesAreOut) {
  const Problem problem;
  const auto searcher = GetParam().make(problem, 1);
  Flights flights(problem, *searcher);
  Rng rng(1);
  while (flights.proposed() < 250) {
    if (flights.out() == 0 || (flights.out() < 16 && rng.chance(0.6)))
      flights.begin();
    else
      flights.tell(static_cast<size_t>(rng.below(static_cast<int64_t>(flights.out()))));
  }
  EXPECT_EQ(searcher->out().size(), 8 * flights.out());
  while (flights.out() > 0) flights.tell(flights.out() - 1);
  EXPECT_TRUE(searcher->out().empty());
  EXPECT_EQ(searcher->history().trials().size(), flights.proposed());
}

TEST_P(EverySearcher, ProposesAgainWhatWasGivenUp) {
  Problem problem;
  problem.space = conditional();
  const auto searcher =
      std::string(GetParam().name) == "prior"
          ? prior_searcher(problem.space, 1, {.prior = [](const Point&) { return 1.0; }})
          : GetParam().make(problem, 1);
  Flights flights(problem, *searcher);
  searcher->expect({problem.space.at(0)});
  for (int i = 0; i < 3; ++i) flights.begin();
  EXPECT_EQ(flights.proposed(), 9u);  // all are out
  EXPECT_EQ(flights.out(), 2u);
  flights.give_up(0);
  EXPECT_EQ(flights.proposed(), 1u);
  searcher->give_up({problem.space.at(0)});
  for (int i = 0; i < 3; ++i) flights.begin();
  EXPECT_EQ(flights.proposed(), 10u);
}

/// A prior that says nothing, over one choice and a wide split: what is alike is seen by the split.
TEST(PriorGuided, LooksElsewhereThanOtherBatchesDo) {
  const Space space({choice_decision("c", {"a", "b", "c", "d"}),
                     ordered_decision("o", {{"0", {0}}, {"1", {1}}, {"7", {7}}, {"63", {63}}})});
  PriorGuidedOptions options;
  options.prior = [](const Point&) { return 1.0; };
  const auto searcher = prior_searcher(space, 1, options);
  const Point first = searcher->propose(1).at(0), second = searcher->propose(1).at(0);
  // One by one or together: what is out counts as what is in the batch.
  const auto together = prior_searcher(space, 1, options)->propose(2);
  EXPECT_EQ((std::vector<Point>{first, second}), together);
  const auto blind = prior_searcher(space, 1, options);
  blind->tell({{first, {kInvalid, "no cost, nothing learnt"}, 0}});
  EXPECT_NE(blind->propose(1).at(0), second);
}

TEST_P(EverySearcher, FindsBetterPointsThanChance) {
  if (std::string(GetParam().name) == "random") GTEST_SKIP() << "is chance itself";
  const Problem problem;
  Budget budget;
  budget.trials = GetParam().trials;
  double ours = 0, chance = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto searcher = GetParam().make(problem, seed);
    const auto random = random_searcher(problem.space, seed);
    run(*searcher, problem.evaluate(), budget);
    run(*random, problem.evaluate(), budget);
    ours += std::log(searcher->history().best()->outcome.cost);
    chance += std::log(random->history().best()->outcome.cost);
  }
  EXPECT_LT(ours, chance);
}

INSTANTIATE_TEST_SUITE_P(Searchers, EverySearcher, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(QMethod, FollowsTheCheapestTrials) {
  const Problem problem;
  QMethodOptions options;
  options.starts = 3, options.cheapest_starts = true, options.warm_up = 40;
  const auto searcher = q_searcher(problem.space, 3, options);
  Budget budget;
  budget.trials = 40;
  run(*searcher, problem.evaluate(), budget);
  const std::vector<Point> proposed = searcher->propose(3);
  ASSERT_EQ(proposed.size(), 3u);
  const std::vector<size_t> cheapest = searcher->history().cheapest(3);
  for (size_t i = 0; i < 3; ++i) {
    const Point& from = searcher->history().trials()[cheapest[i]].point;
    EXPECT_THAT(problem.space.neighbours(from), ::testing::Contains(proposed[i]));
  }
}

TEST(Run, StopsWhenNothingIsGainedOrTold) {
  const Problem problem;
  const auto searcher = random_searcher(problem.space, 1);
  Budget budget;
  budget.stall_trials = 20;
  const Evaluate same = [](const std::vector<Point>& points) {
    return std::vector<Evaluation>(points.size(), Evaluation{1.0, ""});
  };
  EXPECT_EQ(run(*searcher, same, budget).stop, Stop::Stall);
  budget.interrupted = [] { return true; };
  EXPECT_EQ(run(*searcher, same, budget).trials.size(), 0u);
}

}  // namespace
}  // namespace tilewright::search
