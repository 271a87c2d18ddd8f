// Mappings as points: they are those that the mapper knows, records name them, and every searcher
// walks among them.
#include "tilewright/tune/spatial/space.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/cost/spatial/testing/program.h"
#include "tilewright/tune/spatial/methods.h"

namespace tilewright::tune {
namespace {

std::unique_ptr<SpatialSpace> space_of(const spatial::Design& design,
                                       const cost::SpatialLayer& layer,
                                       const SpatialSpaceOptions& options = {}) {
  auto space = SpatialSpace::create(design, layer, options);
  EXPECT_TRUE(space) << to_string(space.error());
  return *std::move(space);
}

const cost::SpatialLayer kLayer =
    cost::conv2d({.inputs = 32, .outputs = 48, .height = 14, .width = 14, .kernel = 3, .pad = 1});

/// What the mapper compares mappings by.
double mean_cycles(const spatial::Design& design, const cost::SpatialLayer& layer,
                   const cost::SpatialMapping& mapping) {
  return cost::SpatialEvaluator(design, layer, mapping.choice).cycles(mapping);
}

// Exactly the mappings that fit have a cost: the cost model's mean, and about that of the
// simulator, as what is reported of a mapping.
TEST(SpatialSpaceSlow, PointsThatFitRunOthersSayWhy) {
  cost::CaseDraw draw(11);
  Rng rng(4);
  int fitting = 0, others = 0;
  double worst = 0, worst_reported = 0;
  while (fitting < 200) {
    const spatial::Design design = draw.design();
    const cost::SpatialLayer layer = draw.layer(12, design);
    if (cost::choices(design, layer).empty()) continue;
    const auto space = space_of(design, layer, {.layouts = draw.below(2) == 0});
    SpatialJudge judge(*space);
    for (int i = 0; i < 8; ++i) {
      const search::Point point = space->space().random(rng);
      const cost::SpatialLayer& ordered = space->layouts()[space->layout(point)].layer;
      const cost::SpatialMapping mapping = space->mapping(point);
      ASSERT_TRUE(parse_mapping(ordered, to_string(ordered, mapping)));
      const auto misfits = cost::misfits(design, ordered, mapping);
      const search::Evaluation outcome = judge.judge(point);
      EXPECT_EQ(std::isfinite(outcome.cost), misfits.empty()) << space->schedule(point);
      EXPECT_EQ(outcome.reason.empty(), misfits.empty());
      misfits.empty() ? ++fitting : ++others;
      if (!misfits.empty()) continue;
      EXPECT_DOUBLE_EQ(outcome.cost, mean_cycles(design, ordered, mapping));
      EXPECT_LE(judge.bound(point), outcome.cost * 1.02);
      const auto sim = spatial::simulate(design, program_of(design, ordered, mapping));
      ASSERT_TRUE(sim) << to_string(sim.error());
      const auto error = [&](double cycles) {
        return std::abs(cycles / static_cast<double>(sim->cycles) - 1);
      };
      worst = std::max(worst, error(outcome.cost));
      worst_reported =
          std::max(worst_reported, error(cost::evaluate(design, ordered, mapping).cycles));
    }
  }
  std::printf("worst %.2f %%, of what is reported %.2f %%\n", 100 * worst, 100 * worst_reported);
  EXPECT_LT(worst, 0.15);
  EXPECT_LT(worst_reported, 0.15);
  EXPECT_GT(others, 0);
}

TEST(SpatialSpace, SchedulesNamePoints) {
  cost::CaseDraw draw(5);
  Rng rng(9);
  for (int i = 0; i < 60; ++i) {
    const spatial::Design design = draw.design();
    const cost::SpatialLayer layer = draw.layer(12, design);
    if (cost::choices(design, layer).empty()) continue;
    for (const SpatialForm form : {SpatialForm::All, SpatialForm::Factors, SpatialForm::Template}) {
      const auto space = space_of(design, layer, {.form = form, .layouts = draw.below(2) == 0});
      const search::Point point = space->space().random(rng);
      EXPECT_EQ(space->find(space->schedule(point)), point) << space->schedule(point);
      EXPECT_EQ(space->space().find(space->space().text(point)), point)
          << space->space().text(point);
    }
  }
  const auto space = space_of({}, kLayer);
  EXPECT_EQ(space->find("tile=k5"), std::nullopt);
  EXPECT_EQ(space->find("no mapping"), std::nullopt);
}

// All points of a space together: the best of them is what the mapper's brute force finds.
TEST(SpatialSpaceSlow, ExhaustiveSearchEqualsTheMapper) {
  cost::CaseDraw draw(21);
  int spaces = 0;
  while (spaces < 40) {
    const spatial::Design design = draw.design();
    const cost::SpatialLayer layer = draw.layer(2, design);
    if (cost::choices(design, layer).empty()) continue;
    const auto space = space_of(design, layer);
    if (space->space().size() > 20000) continue;
    ++spaces;
    SpatialJudge judge(*space);
    double least = search::kInvalid;
    for (int64_t i = 0; i < static_cast<int64_t>(space->space().size()); ++i)
      least = std::min(least, judge.judge(space->space().at(i)).cost);
    const auto best = cost::best_mapping(design, layer, {.brute_force = true});
    ASSERT_EQ(best.has_value(), std::isfinite(least));
    if (!best) continue;
    EXPECT_EQ(mean_cycles(design, layer, best->mapping), least) << to_string(layer, best->mapping);
    EXPECT_EQ(best->cost.cycles, cost::evaluate(design, layer, best->mapping).cycles);
    const auto ours = cost::best_mapping(design, layer);
    EXPECT_TRUE(space->point(ours->mapping)) << to_string(layer, ours->mapping);
  }
}

TEST(SpatialSpace, FormsDecideLess) {
  const spatial::Design design;
  const auto all = space_of(design, kLayer),
             factors = space_of(design, kLayer, {SpatialForm::Factors}),
             calls = space_of(design, kLayer, {.form = SpatialForm::Factors, .calls_only = true}),
             form = space_of(design, kLayer, {SpatialForm::Template});
  EXPECT_GT(all->space().size(), factors->space().size());
  EXPECT_GT(factors->space().size(), calls->space().size());
  // Divisors of 48, 14, 14, 32, 3, 3.
  EXPECT_EQ(form->space().size(), 10 * 4 * 4 * 6 * 2 * 2);
  Rng rng(2);
  for (int i = 0; i < 50; ++i) {
    const cost::SpatialMapping mapping = form->mapping(form->space().random(rng));
    EXPECT_EQ(mapping.choice, (cost::SpatialChoice{0, 2, 0, 3}));  // x, k and c, as HASCO's
    EXPECT_EQ(mapping.copies, (std::array<int, 3>{2, 2, 2}));
    for (size_t loop = 0; loop < kLayer.loops.size(); ++loop)
      EXPECT_EQ(kLayer.loops[loop].extent % mapping.tile[loop], 0);
    const cost::SpatialMapping call = calls->mapping(calls->space().random(rng));
    for (int loop = 0; loop < 6; ++loop)
      if (loop != call.choice.i && loop != call.choice.j && loop != call.choice.k) {
        EXPECT_EQ(call.tile[loop], 1);
      }
  }
}

TEST(Layouts, ChannelsStandFirstOrLast) {
  for (const int64_t batch : {1, 2}) {
    cost::SpatialConv conv{.batch = batch, .inputs = 3, .outputs = 4, .height = 5, .width = 6};
    const auto variants = layout_variants(cost::conv2d(conv));
    ASSERT_EQ(variants.size(), 4u);
    EXPECT_EQ(variants[0].name, "first,first");
    EXPECT_EQ(variants[3].name, "last,last");
    conv.input = conv.output = cost::ImageLayout::ChannelsLast;
    const cost::SpatialLayer last = cost::conv2d(conv);
    for (const int tensor : {0, 2}) {
      const auto &dims = variants[3].layer.tensors[tensor].dims,
                 &wanted = last.tensors[tensor].dims;
      ASSERT_EQ(dims.size(), wanted.size());
      for (size_t d = 0; d < dims.size(); ++d) EXPECT_EQ(dims[d].extent, wanted[d].extent);
    }
    // And back.
    const auto back = layout_variants(last);
    EXPECT_EQ(back[3].name, "first,first");
    EXPECT_EQ(back[3].layer.tensors[0].dims[0].extent, batch == 1 ? 3 : 2);
  }
  EXPECT_EQ(layout_variants(cost::matmul(4, 5, 6)).size(), 1u);
}

TEST(SpatialMethodsSlow, EverySearcherFindsAMapping) {
  const spatial::Design design;
  const double ours = cost::best_mapping(design, kLayer)->cost.cycles;
  const auto found = [&](const std::string& method, int trials) {
    return find_mapping(design, kLayer, {.method = method, .trials = trials, .seed = 3});
  };
  for (const MappingMethod& method : mapping_methods()) {
    const auto best = found(method.name, 200);
    if (!best && best.error().kind == ErrorKind::Unsupported) continue;  // no XGBoost
    ASSERT_TRUE(best) << to_string(best.error());
    ASSERT_TRUE(*best) << method.name;
    EXPECT_TRUE(misfits(design, kLayer, (*best)->mapping).empty());
    EXPECT_DOUBLE_EQ((*best)->cost.cycles, cost::evaluate(design, kLayer, (*best)->mapping).cycles);
    EXPECT_GE((*best)->cost.cycles, 0.99 * ours) << method.name;
    EXPECT_LE((*best)->predicted, *method.searcher == 0 ? 1000000 : 200);
    EXPECT_EQ((*found(method.name, 200))->mapping, (*best)->mapping) << method.name;
  }
  const auto wrong = found("hascoo", 10);
  ASSERT_FALSE(wrong);
  EXPECT_NE(to_string(wrong.error()).find("hasco"), std::string::npos);
}

TEST(SpatialMethods, OneChoiceIsHascos) {
  const spatial::Design design;
  for (const char* method : {"ours", "hasco"}) {
    const auto best = find_mapping(design, kLayer, {.method = method, .choices = "one"});
    ASSERT_TRUE(best && *best);
    EXPECT_EQ((*best)->mapping.choice, (cost::SpatialChoice{0, 2, 0, 3})) << method;
  }
}

TEST(SpatialTarget, KeysDifferWhereProgramsOrTimesDo) {
  spatial::Design design, other;
  other.name = "other", other.clock_mhz = 100, other.host.macs_per_cycle = 7;
  EXPECT_EQ(spatial_target_key(design), spatial_target_key(other));
  other.timing.read_latency += 1;
  EXPECT_NE(spatial_target_key(design), spatial_target_key(other));
}

}  // namespace
}  // namespace tilewright::tune
