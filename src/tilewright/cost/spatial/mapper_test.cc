#include "tilewright/cost/spatial/mapper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/score.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::cost {
namespace {

TEST(SpatialMapperSlow, EqualsBruteForce) {
  CaseDraw draw(7);
  int pairs = 0;
  int64_t predicted = 0, all = 0;
  const int wanted = std::getenv("TW_CASES") ? std::atoi(std::getenv("TW_CASES")) : 300;
  while (pairs < wanted) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = draw.layer(2, design);
    if (layer.macs() > 3000) continue;
    const auto quick = best_mapping(design, layer);
    const auto slow = best_mapping(design, layer, {.brute_force = true});
    ASSERT_EQ(quick.has_value(), slow.has_value());
    if (!quick) continue;
    ++pairs;
    predicted += quick->predicted;
    all += slow->predicted;
    EXPECT_TRUE(quick->exact);
    // Of mappings that are as good, either may be found; what is reported may differ then.
    const auto score = [&](const SpatialMapping& mapping) {
      SpatialEvaluator evaluator(design, layer, mapping.choice);
      return evaluator.cycles(mapping) * energy_factor(evaluator.energy(mapping));
    };
    EXPECT_EQ(score(quick->mapping), score(slow->mapping))
        << to_string(layer, quick->mapping) << "\n"
        << to_string(layer, slow->mapping);
  }
  std::printf("%d pairs: %lld of %lld mappings predicted\n", pairs,
              static_cast<long long>(predicted), static_cast<long long>(all));
}

// 1 024 lanes for 600 outputs, of which a tile may have 512, by its biases: so tiles have half of
// them, and the mapper is not left with choices whose lanes lie along seven pixels.
TEST(SpatialMapper, LanesThatFitNoMemoryAreHalved) {
  spatial::Design design;
  design.unit = spatial::Unit::Gemv;
  design.rows = design.cols = 32;
  SpatialLayer layer = conv2d({.inputs = 96, .outputs = 600, .height = 7, .width = 7, .kernel = 1});
  layer.biased = true;
  const int k = layer.find("k");
  for (const SpatialChoice& choice : choices(design, layer)) {
    const SpatialEvaluator evaluator(design, layer, choice);
    if (evaluator.unit().lanes[k] < 1024) continue;
    EXPECT_EQ(tile_sizes(evaluator, k), (std::vector<int64_t>{300, 600}));
  }
  const auto best = best_mapping(design, layer);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->mapping.tile[k], 300);
  // With lanes along pixels it has a step for each output, row and input.
  EXPECT_LT(best->cost.cycles, 600.0 * 7 * 96 / 4);
}

// One bank of 16 bytes feeds 256 lanes: 16 cycles for a row of weights, 5 for one of 74 pixels, so
// choices with the one or the other take as long. The steps of the first one have all lanes at
// work.
TEST(SpatialMapper, OfMappingsThatTakeAboutAsLongTheOneWithLessEnergy) {
  spatial::Design design;
  design.unit = spatial::Unit::Gemv;
  design.links = spatial::Links::Full;
  design.rows = design.cols = 16;
  design.spad_kb = 128;
  design.local_kb = 64;
  design.banks = 1;
  design.bus_bytes = 8;
  design.burst_bytes = 64;
  const SpatialLayer layer =
      conv2d({.inputs = 128, .outputs = 256, .height = 74, .width = 74, .kernel = 1});
  const auto best = best_mapping(design, layer);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->mapping.choice.i, layer.find("k")) << to_string(layer, best->mapping);
  EXPECT_EQ(best->cost.steps, 128 * 74 * 74);
}

// Choices are skipped by it.
TEST(SpatialMapper, NoMappingTakesLessThanTheLeastEnergy) {
  CaseDraw draw(17);
  for (int cases = 0; cases < 2000;) {
    const spatial::Design design = draw.design();
    SpatialLayer layer = draw.layer(8, design);
    layer.biased = layer.packed_tensor() >= 0 && draw.below(2);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    ++cases;
    SpatialEvaluator evaluator(design, layer, mapping.choice);
    ASSERT_GE(evaluator.energy(mapping) * (1 + 1e-12), evaluator.least_energy())
        << to_toml(design) << to_string(layer, mapping);
  }
}

// What is known of the layer on other designs changes how soon mappings are skipped, nothing else.
TEST(SpatialMapperSlow, KnownMappingsDoNotChangeTheResult) {
  CaseDraw draw(11);
  int pairs = 0;
  int64_t alone = 0, helped = 0;
  while (pairs < 100) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = draw.layer(6, design);
    const auto plain = best_mapping(design, layer);
    if (!plain) continue;
    SpatialMapperOptions options;
    for (const int banks : {1, 8}) {
      spatial::Design other = design;
      other.banks = banks;
      other.bus_bytes = banks == 1 ? 8 : 16;
      if (const auto found = best_mapping(other, layer)) options.known.push_back(found->mapping);
    }
    const auto quick = best_mapping(design, layer, options);
    ASSERT_TRUE(quick);
    EXPECT_EQ(quick->mapping, plain->mapping) << to_string(layer, quick->mapping) << "\n"
                                              << to_string(layer, plain->mapping);
    EXPECT_EQ(quick->cost.cycles, plain->cost.cycles);
    ++pairs;
    alone += plain->predicted;
    helped += quick->predicted;
  }
  EXPECT_LT(helped, alone);
}

// Orders and copies of one tile share what its instructions take.
TEST(SpatialMapper, PredictionsDoNotDependOnThoseBefore) {
  CaseDraw draw(12);
  for (int cases = 0; cases < 200; ++cases) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = draw.layer(12, design);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    SpatialEvaluator shared(design, layer, mapping.choice);
    const auto moving = std::count_if(layer.loops.begin(), layer.loops.end(),
                                      [](const SpatialLoop& loop) { return !loop.reduces; });
    std::sort(mapping.order.begin(), mapping.order.begin() + moving);
    do {
      for (const int copies : {2, 1}) {
        mapping.copies = {copies, copies, copies};
        SpatialEvaluator alone(design, layer, mapping.choice);
        EXPECT_EQ(shared.cycles(mapping), alone.cycles(mapping)) << to_string(layer, mapping);
      }
    } while (std::next_permutation(mapping.order.begin(), mapping.order.begin() + moving));
  }
}

/// Inputs, outputs, size of the image, kernel, stride of ResNet-50's distinct convolutions.
constexpr int kResNet[][5] = {
    {3, 64, 224, 7, 2},    {64, 256, 56, 1, 1},   {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},
    {256, 64, 56, 1, 1},   {256, 512, 56, 1, 2},  {256, 128, 56, 1, 2},  {128, 128, 28, 3, 1},
    {128, 512, 28, 1, 1},  {512, 128, 28, 1, 1},  {512, 1024, 28, 1, 2}, {512, 256, 28, 1, 2},
    {256, 256, 14, 3, 1},  {256, 1024, 14, 1, 1}, {1024, 256, 14, 1, 1}, {1024, 2048, 14, 1, 2},
    {1024, 512, 14, 1, 2}, {512, 512, 7, 3, 1},   {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1}};

/// The layers on one design, channels last; `TW_SHOW` prints them.
TEST(SpatialMapperSlow, ResNet) {
  spatial::Design design;
  if (const char* bus = std::getenv("TW_BUS")) design.bus_bytes = std::atoi(bus);
  if (std::getenv("TW_OS")) design.dataflow = spatial::Dataflow::OutputStationary;
  const bool last = !std::getenv("TW_NCHW");
  double total = 0, bounds = 0, repeated = 0, mapping_seconds = 0, simulated = 0, worst = 0,
         mean = 0;
  int64_t predicted = 0;
  for (const auto& [inputs, outputs, size, kernel, stride] : kResNet) {
    SpatialConv conv{.inputs = inputs,
                     .outputs = outputs,
                     .height = size,
                     .width = size,
                     .kernel = kernel,
                     .stride = stride,
                     .pad = kernel / 2};
    if (last) conv.input = conv.output = ImageLayout::ChannelsLast;
    const SpatialLayer layer = conv2d(conv);
    const std::clock_t start = std::clock();
    const auto best = best_mapping(design, layer);
    mapping_seconds += double(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(best);
    EXPECT_TRUE(misfits(design, layer, best->mapping).empty());
    const double bound = lower_bound(design, layer);
    const auto sim = spatial::simulate(design, program_of(design, layer, best->mapping));
    ASSERT_TRUE(sim) << to_string(sim.error());
    const auto cycles = static_cast<double>(sim->cycles);
    EXPECT_LE(bound, cycles);
    EXPECT_NEAR(best->cost.cycles / cycles, 1, 0.1) << to_string(layer, best->mapping);
    simulated += cycles;
    worst = std::max(worst, cycles / bound);
    mean += std::log(cycles / bound) / double(std::size(kResNet));
    total += best->cost.cycles;
    bounds += bound;
    predicted += best->predicted;
    SpatialEvaluator evaluator(design, layer, best->mapping.choice);
    const std::clock_t again = std::clock();
    for (int times = 0; times < 500; ++times) evaluator.cycles(best->mapping);
    repeated += double(std::clock() - again) / CLOCKS_PER_SEC;
    if (std::getenv("TW_SHOW"))
      std::printf("%5.3f of the bound, %9.0f cycles, %s, %6lld predicted: %s\n",
                  best->cost.cycles / bound, best->cost.cycles,
                  std::string(name(best->cost.binds)).c_str(),
                  static_cast<long long>(best->predicted), to_string(layer, best->mapping).c_str());
  }
  std::printf(
      "%.3f s, %lld predicted, %.0f best mappings a second; %.0f cycles, simulated %.0f: "
      "geomean %.3f of the bound, worst %.3f\n",
      mapping_seconds, static_cast<long long>(predicted), 500 * 20 / repeated, total, simulated,
      std::exp(mean), worst);
  if (last && !std::getenv("TW_BUS")) {
    EXPECT_LE(std::exp(mean), 1.05);
    EXPECT_LE(worst, 1.15);
    EXPECT_LE(total, 1.1 * bounds);
  }
}

// As the mapper predicts: every order and number of copies of a tile, then the next tile.
TEST(SpatialMapper, PredictsQuickly) {
  CaseDraw draw(3);
  spatial::Design design;
  int64_t predicted = 0;
  double seconds = 0, sum = 0;
  for (const auto& [inputs, outputs, size, kernel, stride] : kResNet) {
    const SpatialLayer layer = conv2d({.inputs = inputs,
                                       .outputs = outputs,
                                       .height = size,
                                       .width = size,
                                       .kernel = kernel,
                                       .stride = stride,
                                       .pad = kernel / 2});
    for (int i = 0; i < 20; ++i) {
      SpatialMapping mapping;
      if (!draw.mapping(design, layer, mapping)) continue;
      SpatialEvaluator evaluator(design, layer, mapping.choice);
      const auto end = mapping.order.begin() + 3;  // k, y, x
      std::sort(mapping.order.begin(), end);
      const std::clock_t start = std::clock();
      do {
        for (int copies : {1, 2}) {
          mapping.copies[kSpatialResult] = copies;
          sum += evaluator.cycles(mapping);
          ++predicted;
        }
      } while (std::next_permutation(mapping.order.begin(), end));
      seconds += double(std::clock() - start) / CLOCKS_PER_SEC;
    }
  }
  std::printf("%.0f mappings a second, mean %.0f cycles\n", double(predicted) / seconds,
              sum / double(predicted));
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace tilewright::cost
