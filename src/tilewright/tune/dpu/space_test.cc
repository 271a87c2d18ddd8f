#include "tilewright/tune/dpu/space.h"

#include <gtest/gtest.h>

#include "tilewright/codegen/dpu/testing/networks.h"
#include "tilewright/search/searchers.h"

namespace tilewright::tune {
namespace {

dpu::Network branches() {
  dpu::NetBuilder net;
  const dpu::ValueId x = net.conv(net.input(16, 14, 14), 64, dpu::square(3, 1, 1));
  const dpu::ValueId a = net.conv(net.conv(x, 32, dpu::square(1)), 64, dpu::square(3, 1, 1));
  const dpu::ValueId b = net.max_pool(net.conv(x, 64, dpu::square(3, 1, 1)), dpu::square(3, 1, 1));
  const dpu::ValueId c = net.conv(net.concat({a, b}), 64, dpu::square(3, 2, 1));
  return net.finish({net.add(net.conv(c, 64, dpu::square(1)), c)});
}

TEST(DpuSpace, FirstPointIsTheRule) {
  const auto space = DpuSpace::create(branches(), dpu::Config());
  ASSERT_TRUE(space) << to_string(space.error());
  const search::Point first((*space)->space().decisions().size(), 0);
  EXPECT_EQ((*space)->way(first), dpu::Way());
}

TEST(DpuSpace, PointsAndWaysAreOneToOne) {
  const auto space = DpuSpace::create(branches(), dpu::Config());
  ASSERT_TRUE(space);
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const search::Point point = (*space)->space().random(rng);
    const dpu::Way way = (*space)->way(point);
    const auto back = (*space)->point(*dpu::parse_way(to_string(way)));
    ASSERT_TRUE(back) << to_string(way);
    EXPECT_EQ((*space)->space().canonical(*back), (*space)->space().canonical(point));
  }
  dpu::Way other;
  other.rows[1000] = 4;
  EXPECT_FALSE((*space)->point(other));
  other = {};
  other.pieces = 7;
  EXPECT_FALSE((*space)->point(other));
}

// Everything that is decided is among the decisions: order, fusion, passes, rows, homes.
TEST(DpuSpace, HasAllDecisions) {
  const auto space = DpuSpace::create(branches(), dpu::Config());
  ASSERT_TRUE(space);
  for (const char* name : {"form", "schedule", "fuse", "behind_pools", "passes", "homes",
                           "later.plain.", "apart.plain.", "passes.plain.", "rows.plain.",
                           "home.plain.", "later.strides-reordered."}) {
    bool found = false;
    for (const search::Decision& decision : (*space)->space().decisions())
      found = found || decision.name.starts_with(name);
    EXPECT_TRUE(found) << name;
  }
}

// All that the compiler tries is a point, which costs what the compiler says.
TEST(DpuSpace, HasWhatTheCompilerTries) {
  const dpu::Network network = branches();
  for (const char* hw : {"dpu", "dpu-paper"}) {
    const dpu::Config config = *dpu::load_config(hw);
    const auto compiled = dpu::compile(network, config);
    ASSERT_TRUE(compiled);
    for (const dpu::Attempt& attempt : compiled->attempts) {
      const auto of_strides = DpuSpace::create(network, config, attempt.way.plain_strides);
      ASSERT_TRUE(of_strides);
      const auto point = (*of_strides)->point(attempt.way);
      ASSERT_TRUE(point) << attempt.what;
      if (!attempt.why.empty()) continue;
      EXPECT_EQ((*of_strides)->judge(*point).cost, static_cast<double>(attempt.cycles));
    }
  }
}

// Searching on from the compiler's way finds a better one where there is one.
TEST(DpuSpace, SearchersFindBetterWays) {
  const dpu::Network network = branches();
  dpu::Config config;
  config.fm_depth = {256, 128, 64};
  config.pm_depth = 160;
  const auto space = DpuSpace::create(network, config);
  const auto compiled = dpu::compile(network, config);
  ASSERT_TRUE(space && compiled);
  search::Budget budget;
  budget.trials = 300;
  const auto searcher = search::evolution_searcher((*space)->space(), 1, {8, 0, 0.3});
  const auto result = search::run(*searcher,
                                  [&](const std::vector<search::Point>& points) {
                                    std::vector<search::Evaluation> outcomes;
                                    for (const search::Point& point : points)
                                      outcomes.push_back((*space)->judge(point));
                                    return outcomes;
                                  },
                                  budget, {*(*space)->point(compiled->way)});
  EXPECT_EQ(result.trials.size(), 300u);
  const search::Trial* best = searcher->history().best();
  ASSERT_NE(best, nullptr);
  EXPECT_LT(best->outcome.cost, result.trials[0].outcome.cost);
  dpu::CompileOptions options;
  options.way = (*space)->way(best->point);
  const auto again = dpu::compile(network, config, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(static_cast<double>(again->attempts[0].cycles), best->outcome.cost);
}

TEST(DpuSpace, KeysOfRecords) {
  dpu::Config config, other;
  other.name = "mine";
  EXPECT_EQ(dpu_target_key(config), dpu_target_key(other));
  other.pm_depth = 1024;
  EXPECT_NE(dpu_target_key(config), dpu_target_key(other));
}

}  // namespace
}  // namespace tilewright::tune
