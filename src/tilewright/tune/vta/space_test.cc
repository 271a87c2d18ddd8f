// Mappings as points: what the simulator says of them, and how records name them.
#include "tilewright/tune/vta/space.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/rules/vta/testing/layers.h"
#include "tilewright/search/searchers.h"

namespace tilewright::tune {
namespace {

const rules::TestLayer kLayer = {.in = 4, .out = 8, .h = 14, .w = 14, .kernel = 3, .pad = 1};

std::unique_ptr<VtaSpace> make_space(const rules::TestLayer& layer, const vta::Config& config) {
  auto space = VtaSpace::create(rules::make_layer(layer, config), config);
  EXPECT_TRUE(space) << to_string(space.error());
  return *std::move(space);
}

/// Points whose mappings fit, drawn evenly.
std::vector<search::Point> fitting(const VtaSpace& space, int count) {
  Rng rng(7);
  std::vector<search::Point> points;
  for (int i = 0; i < 20000 && points.size() < static_cast<size_t>(count); ++i)
    if (search::Point point = space.space().random(rng); std::isfinite(space.prior(point)))
      points.push_back(std::move(point));
  EXPECT_EQ(points.size(), static_cast<size_t>(count));
  return points;
}

TEST(VtaSpace, PointsRunAboutAsLongAsTheModelSays) {
  const vta::Config config;
  const auto space = make_space(kLayer, config);
  const auto judge =
      cycles_evaluator(rules::make_layer(kLayer, config), config, space->mappings().copies());
  for (const search::Point& point : fitting(*space, 12)) {
    const auto trace = space->trace(point);
    ASSERT_TRUE(trace) << to_string(trace.error());
    const measure::Reading reading = judge->evaluate({{point, *trace}}).at(0);
    ASSERT_EQ(reading.kind, measure::OutcomeKind::Ok) << reading.reason;
    EXPECT_NEAR(space->prior(point) / reading.cost, 1, 0.1)
        << to_string(space->mappings().mapping(point));
    EXPECT_EQ(space->terms(point).size(), 3u);
  }
}

TEST(VtaSpace, D4_PointsKeepTheMeaningOfTheLayer) {
  vta::Config config;
  config.log_block_in = config.log_block_out = 2;
  const rules::TestLayer layer = {.in = 2, .out = 3, .h = 5, .w = 4, .kernel = 3, .pad = 1};
  const auto space = make_space(layer, config);
  const Func func = rules::make_layer(layer, config);
  for (const search::Point& point : fitting(*space, 6)) {
    const auto trace = space->trace(point);
    ASSERT_TRUE(trace) << to_string(trace.error());
    const auto scheduled = schedule::replay(func, *trace);
    ASSERT_TRUE(scheduled) << to_string(scheduled.error());
    const interp::Arguments arguments = rules::random_arguments(func, 6);
    const auto want = interp::run(func, arguments), got = interp::run(*scheduled, arguments);
    ASSERT_TRUE(want && got);
    EXPECT_TRUE(identical(got->outputs.at("y"), want->outputs.at("y")))
        << to_string(space->mappings().mapping(point));
  }
}

TEST(VtaSpace, D4_WhatDoesNotFitIsNoSchedule) {
  vta::Config config;
  config.log_inp_buff = 10, config.log_acc_buff = 12;
  const auto space = make_space(kLayer, config);
  search::Point all(space->space().decisions().size(), 0);
  for (size_t i = 0; i < all.size(); ++i)
    if (space->space().decisions()[i].name.starts_with("tile_"))
      all[i] = static_cast<int>(space->space().decisions()[i].values.size()) - 1;
  EXPECT_TRUE(std::isinf(space->prior(all)));
  const auto trace = space->trace(all);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::NotApplicable);
  EXPECT_FALSE(space->mappings().recorded("vta: " + space->space().text(all)));
}

TEST(VtaSpace, RecordsNameMappings) {
  const vta::Config config;
  const auto space = make_space(kLayer, config);
  for (const search::Point& point : fitting(*space, 5)) {
    const auto mapping = space->mappings().recorded("vta: " + space->space().text(point));
    ASSERT_TRUE(mapping) << space->space().text(point);
    EXPECT_EQ(*mapping, space->mappings().mapping(point));
  }
  EXPECT_FALSE(space->mappings().recorded("constructive: rows=4"));
  EXPECT_FALSE(space->mappings().recorded("vta: tile_n=77"));
  EXPECT_FALSE(space->mappings().recorded(""));
}

TEST(VtaSpace, BrokenSchedulesAreOutcomes) {
  const vta::Config config;
  const auto judge = cycles_evaluator(rules::make_layer(kLayer, config), config, 2);
  const auto readings = judge->evaluate({{{}, {schedule::Split{"gone", 2}}}, {{}, {}}});
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].kind, measure::OutcomeKind::Invalid);
  EXPECT_NE(readings[0].reason.find("gone"), std::string::npos) << readings[0].reason;
  EXPECT_EQ(readings[1].kind, measure::OutcomeKind::Invalid)
      << "the layer as written is no VTA program";
}

TEST(VtaSpace, SearchFindsWhatTheModelFinds) {
  // With costs by the model itself: the best mapping there is, or one almost as good.
  const vta::Config config;
  const auto space = make_space(kLayer, config);
  const auto searcher = search::evolution_searcher(space->space(), 3);
  search::Budget budget;
  budget.trials = 1500;
  double least = search::kInvalid;
  search::run(
      *searcher,
      [&](const std::vector<search::Point>& points) {
        std::vector<search::Evaluation> outcomes;
        for (const search::Point& point : points) {
          outcomes.push_back({space->prior(point), ""});
          least = std::min(least, outcomes.back().cost);
        }
        return outcomes;
      },
      budget);
  const auto best = static_cast<double>(
      predict(space->mappings().layer(), space->mappings().best(), config).cycles);
  EXPECT_LT(least, 1.1 * best);
}

TEST(VtaSpace, KeysFollowWhatTimesDependOn) {
  const vta::Config config;
  vta::Config named = config, slower = config, smaller = config;
  named.name = "mine";
  slower.timing.read_latency += 8;
  smaller.log_inp_buff -= 1;
  EXPECT_EQ(vta_target_key(named), vta_target_key(config));
  EXPECT_NE(vta_target_key(slower), vta_target_key(config));
  EXPECT_NE(vta_target_key(smaller), vta_target_key(config));
}

}  // namespace
}  // namespace tilewright::tune
