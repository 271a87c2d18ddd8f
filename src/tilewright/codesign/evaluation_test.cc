// Evaluations and problems: sums over layers, and what is known of a design before it is mapped.
#include "tilewright/codesign/evaluation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/codesign/problem.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::codesign {
namespace {

Workload small_network() {
  zoo::Options options;
  options.size = 32;
  return *workload_of(*zoo::build("resnet18", options));
}

/// A mapping with nothing but its choice.
std::string text_of_choice(const cost::SpatialLayer& layer, const cost::SpatialChoice& choice) {
  cost::SpatialMapping mapping;
  mapping.choice = choice;
  const std::string text = cost::to_string(layer, mapping);
  return text.substr(0, text.find(" tile="));
}

/// Legal points of a space, drawn evenly.
std::vector<search::Point> drawn(const DesignSpace& space, int count) {
  std::vector<search::Point> points;
  Rng rng(5);
  while (static_cast<int>(points.size()) < count) {
    search::Point point = space.points().random(rng);
    if (space.legal(point)) points.push_back(std::move(point));
  }
  return points;
}

// One layer, by hand: 3 runs of a product on the default design, and 100 bytes on the host.
TEST(Evaluation, AddsRunsAndTheHost) {
  Workload workload;
  workload.layers.push_back({cost::matmul(64, 64, 64), 3, {"a", "b", "c"}});
  workload.host.push_back({"pool", "MaxPool", "no unit computes it", 100, 50});
  spatial::Design design;
  design.host = {2, 4};
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  const DesignResult result = evaluator.evaluate(design);
  ASSERT_EQ(result.layers.size(), 1u);
  const auto best = cost::best_mapping(design, workload.layers[0].layer);
  EXPECT_EQ(result.layers[0].mapping, best->mapping);
  EXPECT_DOUBLE_EQ(result.accelerator_cycles, 3 * best->cost.cycles);
  EXPECT_DOUBLE_EQ(result.host_cycles, 100 / 4.0 + 50 / 2.0);
  EXPECT_DOUBLE_EQ(result.seconds, result.cycles() / 200e6);
  EXPECT_GE(result.layers[0].cycles, result.layers[0].bound);
}

// Energy of one layer from its counts, written out.
TEST(Evaluation, EnergyIsEveryAccessTimesItsCost) {
  Workload workload;
  workload.layers.push_back({cost::matmul(32, 48, 80), 1, {"a"}});
  const spatial::Design design;
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  const LayerResult layer = evaluator.evaluate(design).layers[0];
  const Energies e = energies(design, *load_technology("asic45"));
  const cost::SpatialCost& c = layer.cost;
  const double in = static_cast<double>(c.dram[0].bytes + c.dram[1].bytes);
  const double zeros = static_cast<double>(c.dram[0].padding + c.dram[1].padding);
  const double out = static_cast<double>(c.dram[2].bytes);
  EXPECT_DOUBLE_EQ(layer.energy.dram, (in + out) * e.dram_byte);
  const double steps = static_cast<double>(c.steps);
  const double sums = 4 * (2 * steps * static_cast<double>(spatial::sum_parts(design)) + out);
  EXPECT_NEAR(
      layer.energy.chip(),
      256 * steps * e.mac +
          (static_cast<double>(c.spad_reads[0] + c.spad_reads[1]) + in + zeros) * e.spad_byte +
          sums * e.local_byte + (in + out) * e.dma_byte +
          static_cast<double>(c.instructions) * e.command,
      1e-6 * layer.energy.chip());
}

TEST(Evaluation, AsksTheMapperThatItIsGiven) {
  Workload workload;
  workload.layers.push_back({cost::matmul(64, 64, 64), 1, {"a"}});
  workload.layers.push_back({cost::matmul(64, 64, 32), 1, {"b"}});
  const auto half = [](const spatial::Design& design, const cost::SpatialLayer& layer) {
    if (layer.loops[2].extent == 32) return std::optional<cost::SpatialBest>();
    auto best = cost::best_mapping(design, layer);
    best->mapping.copies = {1, 1, 1};
    best->cost = cost::evaluate(design, layer, best->mapping);
    return best;
  };
  DesignEvaluator evaluator(workload, *load_technology("asic45"), half);
  const DesignResult result = evaluator.evaluate({});
  EXPECT_EQ(result.layers[0].mapping.copies, (std::array<int, 3>{1, 1, 1}));
  EXPECT_FALSE(result.layers[0].on_host);
  EXPECT_TRUE(result.layers[1].on_host);
}

// Whoever searches for mappings may find another one where memories are smaller.
TEST(Evaluation, AsksAMapperAgainForEveryOtherDesign) {
  Workload workload;
  workload.layers.push_back({cost::matmul(64, 64, 64), 1, {"a"}});
  int asked = 0;
  const auto counts = [&](const spatial::Design& design, const cost::SpatialLayer& layer) {
    ++asked;
    return cost::best_mapping(design, layer);
  };
  DesignEvaluator evaluator(workload, *load_technology("asic45"), counts);
  spatial::Design small;
  small.spad_kb /= 2;
  for (const spatial::Design& design : {spatial::Design(), small, small, spatial::Design()})
    evaluator.evaluate(design);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(evaluator.mapped(), 2);
  EXPECT_EQ(evaluator.reused(), 2);
}

// 3x8 and 4x6 units of a Dot or Gemv are one row of 24; a Gemm of another shape is another array.
TEST(Evaluation, ShapesThatWorkAsOneRowShareTheirMappings) {
  Workload workload;
  workload.layers.push_back({cost::matmul(50, 70, 90), 1, {"a"}});
  const Technology technology = *load_technology("asic45");
  for (const spatial::Unit unit : {spatial::Unit::Dot, spatial::Unit::Gemv, spatial::Unit::Gemm}) {
    DesignEvaluator shared(workload, technology);
    for (const auto& [rows, cols] : {std::pair(3, 8), std::pair(4, 6), std::pair(24, 1)}) {
      spatial::Design design;
      design.unit = unit;
      design.links = spatial::usual_links(unit);
      design.rows = rows;
      design.cols = cols;
      const DesignResult a = shared.evaluate(design);
      const DesignResult b = DesignEvaluator(workload, technology).evaluate(design);
      EXPECT_EQ(a.seconds, b.seconds);
      EXPECT_EQ(a.layers[0].mapping, b.layers[0].mapping);
      EXPECT_EQ(a.layers[0].energy.chip(), b.layers[0].energy.chip());
    }
    EXPECT_EQ(shared.mapped(), unit == spatial::Unit::Gemm ? 3 : 1) << spatial::name(unit);
  }
}

// Lanes of a Dot beyond the longest loop that is summed over change nothing but the tree's height.
TEST(EvaluationSlow, DotsWiderThanALayerShareTheirMappings) {
  cost::CaseDraw draw(31);
  const Technology technology = *load_technology("asic45");
  int pairs = 0;
  while (pairs < 60) {
    spatial::Design design = draw.design();
    design.unit = spatial::Unit::Dot;
    design.links = spatial::Links::Full;
    design.rows = 1;
    Workload workload;
    workload.layers.push_back({draw.layer(8, design), 1, {"a"}});
    int64_t longest = 1;
    for (const cost::SpatialLoop& loop : workload.layers[0].layer.loops)
      if (loop.reduces) longest = std::max(longest, loop.extent);
    DesignEvaluator shared(workload, technology);
    bool same_tree = false;
    // A little narrower than the layer, as wide, wider with the same tree, and with a higher one.
    const auto tree = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(longest)));
    const auto wide = static_cast<int>(longest);
    for (const int units : {std::max(1, wide - 1), wide, tree, 4 * tree}) {
      design.cols = units;
      if (!spatial::problems(design).empty()) continue;
      const DesignResult a = shared.evaluate(design);
      const DesignResult b = DesignEvaluator(workload, technology).evaluate(design);
      EXPECT_EQ(a.seconds, b.seconds);
      EXPECT_EQ(a.layers[0].mapping, b.layers[0].mapping);
      EXPECT_EQ(a.consumption.energy_pj, b.consumption.energy_pj);
      same_tree = same_tree || (units == tree && shared.reused() > 0);
    }
    pairs += same_tree;
  }
}

// Of VTA, only an equal configuration has the same mapping.
TEST(Evaluation, VtaIsMappedOncePerConfiguration) {
  Workload workload;
  workload.layers.push_back({cost::matmul(64, 64, 64), 1, {"a"}});
  const Technology technology = *load_technology("asic45");
  DesignEvaluator shared(workload, technology);
  vta::Config small, named;
  small.log_wgt_buff -= 2;
  named.name = "another name";
  for (const vta::Config& config : {vta::Config(), small, named}) {
    DesignEvaluator alone(workload, technology);
    const DesignResult a = shared.evaluate(config), b = alone.evaluate(config);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.layers[0].energy.chip(), b.layers[0].energy.chip());
  }
  EXPECT_EQ(shared.mapped(), 2);
  EXPECT_EQ(shared.reused(), 1);
}

TEST(Evaluation, ALayerThatIsFasterOnTheHostRunsThere) {
  Workload workload;
  workload.layers.push_back({cost::matmul(1, 1, 4), 1, {"tiny"}});
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  const DesignResult result = evaluator.evaluate({});
  EXPECT_TRUE(result.layers[0].on_host);
  EXPECT_DOUBLE_EQ(result.host_cycles, 4);
  EXPECT_EQ(result.accelerator_cycles, 0);
}

// Mappings that other designs left behind save work and change nothing.
TEST(Evaluation, DoesNotDependOnWhatWasEvaluatedBefore) {
  Workload workload;
  workload.layers.push_back({cost::matmul(50, 70, 300), 1, {"a"}});
  workload.layers.push_back(
      {cost::conv2d({.inputs = 24, .outputs = 40, .height = 20, .width = 20, .kernel = 3}),
       2,
       {"b", "c"}});
  for (const char* name : {"hasco-gemm", "edge"}) {
    const Result<DesignSpace> space = load_space(name);
    ASSERT_TRUE(space);
    DesignEvaluator shared(workload, space->file().technology);
    std::vector<search::Point> points;
    // Other memories around the same array.
    for (const search::Point& point : drawn(*space, 2))
      for (search::Point& next : space->points().neighbours(point))
        if (space->legal(next)) points.push_back(std::move(next));
    for (const search::Point& point : points) {
      const spatial::Design design = space->design(point);
      DesignEvaluator alone(workload, space->file().technology);
      const DesignResult a = shared.evaluate(design), b = alone.evaluate(design);
      EXPECT_EQ(a.seconds, b.seconds);
      EXPECT_EQ(a.consumption.energy_pj, b.consumption.energy_pj);
      ASSERT_EQ(a.layers.size(), b.layers.size());
      for (size_t i = 0; i < a.layers.size(); ++i)
        EXPECT_EQ(a.layers[i].mapping, b.layers[i].mapping) << to_toml(design);
    }
    EXPECT_GT(shared.reused(), 0);
  }
}

// A CONV2D unit has nothing to do with a product: what is expected of it is what the host takes.
TEST(Problem, TheHostRunsWhatTheUnitCannot) {
  Workload workload;
  workload.layers.push_back(
      {cost::conv2d({.inputs = 8, .outputs = 8, .height = 8, .width = 8}), 1, {"conv"}});
  workload.layers.push_back({cost::matmul(64, 64, 64), 1, {"product"}});
  spatial::Design design;
  design.unit = spatial::Unit::Conv2d;
  design.links = spatial::usual_links(design.unit);
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  for (const DesignResult& result :
       {evaluator.evaluate(design), optimistic(evaluator, design), expected(evaluator, design)}) {
    EXPECT_FALSE(result.layers[0].on_host);
    EXPECT_TRUE(result.layers[1].on_host);
    EXPECT_EQ(result.host_cycles, 64 * 64 * 64);
  }
  EXPECT_EQ(evaluator.evaluate(design).layers[1].bound, 64 * 64 * 64);
}

// What the prior calls exact is, and what it calls a bound is one.
TEST(ProblemSlow, OptimisticIsABoundAndKnownIsExact) {
  for (const char* name : {"edge", "hasco-gemv", "hasco-dot"}) {
    const Result<DesignSpace> space = load_space(name);
    ASSERT_TRUE(space);
    DesignEvaluator evaluator(small_network(), space->file().technology);
    const Goals goals{{Objective::Latency, Objective::Area, Objective::PeakPower}, {}};
    const search::MultiProblem problem = make_problem(*space, evaluator, goals);
    ASSERT_TRUE(problem.bounds) << name;
    for (const search::Point& point : drawn(*space, 6)) {
      const auto outcome = codesign::outcome(evaluator.evaluate(space->design(point)),
                                             goals.objectives, goals.limits);
      const search::PriorValue prior = problem.prior.at(point), bound = problem.bounds(point);
      for (size_t j = 0; j < goals.objectives.size(); ++j) {
        const double log = std::log10(outcome.objectives[j]);
        EXPECT_LE(bound.log_objectives[j], log + 1e-9) << name << " objective " << j;
        // Nor is the opinion far off.
        EXPECT_NEAR(prior.log_objectives[j], log, problem.prior.known_objectives[j] ? 1e-9 : 0.3);
      }
    }
  }
}

// The front with bounds that skip designs is the front without.
TEST(ProblemSlow, EnumerationWithBoundsFindsTheSameFront) {
  const Result<DesignSpace> space = read_space(R"(kind = "space"
name = "few"
technology = "hasco-fpga"
[parameters]
rows = [4, 8, 12, 16]
banks = [1, 2, 4, 8]
spad_kb = [64, 1024]
[fixed]
intrinsic = "gemm"
dataflow = "ws"
cols = "rows"
local_kb = 32
bus_bytes = 8
burst_bytes = 2048
)",
                                               "few.toml");
  ASSERT_TRUE(space) << to_string(space.error());
  DesignEvaluator evaluator(small_network(), space->file().technology);
  const Goals goals;
  std::vector<std::vector<search::Objectives>> fronts;
  size_t skipped = 0;
  for (const bool bounds : {false, true}) {
    search::MultiProblem problem = make_problem(*space, evaluator, goals);
    ASSERT_TRUE(problem.bounds);
    if (!bounds) problem.bounds = {};
    const auto searcher = search::multi_searcher("enumerate", std::move(problem), {});
    ASSERT_TRUE(searcher);
    search::MultiBudget budget;
    budget.evaluations = 1000;
    std::vector<search::Objectives> all;
    run(
        **searcher,
        [&](const std::vector<search::Point>& points) {
          std::vector<search::MultiOutcome> outcomes;
          for (const search::Point& point : points) {
            outcomes.push_back(codesign::outcome(evaluator.evaluate(space->design(point)),
                                                 goals.objectives, goals.limits));
            all.push_back(outcomes.back().objectives);
          }
          return outcomes;
        },
        budget);
    skipped = (*searcher)->skipped();
    std::vector<search::Objectives> front;
    for (const size_t i : search::pareto_front(all)) front.push_back(all[i]);
    std::sort(front.begin(), front.end());
    fronts.push_back(std::move(front));
  }
  EXPECT_EQ(fronts[0], fronts[1]);
  EXPECT_GT(skipped, 0u);
}

// What an evaluation prints, given back, is that evaluation: on arrays of all units and on VTA.
TEST(EvaluationSlow, MappingsReadBackAreJudgedTheSame) {
  const Technology technology = *load_technology("asic45");
  std::vector<Hardware> designs = {vta::Config(), *vta::builtin_config("vta-extended")};
  for (const auto unit :
       {spatial::Unit::Gemm, spatial::Unit::Gemv, spatial::Unit::Dot, spatial::Unit::Conv2d}) {
    spatial::Design design;
    design.unit = unit;
    design.links = spatial::usual_links(unit);
    designs.emplace_back(design);
  }
  DesignEvaluator evaluator(small_network(), technology);
  int judged = 0;
  for (const Hardware& design : designs) {
    const DesignResult result = evaluator.evaluate(design);
    for (size_t i = 0; i < result.layers.size(); ++i) {
      const WorkloadLayer& layer = evaluator.workload().layers[i];
      const LayerResult& one = result.layers[i];
      if (one.on_host) continue;
      const std::string text = mapping_text(layer, one);
      const Result<LayerResult> again = judge(design, layer, technology, text);
      ASSERT_TRUE(again) << text << " " << to_string(again.error());
      EXPECT_EQ(again->cycles, one.cycles) << text;
      EXPECT_EQ(again->bound, one.bound) << text;
      EXPECT_EQ(again->energy.chip(), one.energy.chip()) << text;
      EXPECT_EQ(again->energy.dram, one.energy.dram) << text;
      EXPECT_EQ(again->dram_bytes, one.dram_bytes) << text;
      EXPECT_EQ(mapping_text(layer, *again), text);
      ++judged;
    }
  }
  EXPECT_GT(judged, 40);
}

// Mappings that nobody would choose: judged, or refused with a reason; never less than the bound.
TEST(Evaluation, AnyMappingOfVtaIsJudgedOrRefused) {
  const Technology technology = *load_technology("asic45");
  const WorkloadLayer layer{
      cost::conv2d(
          {.inputs = 128, .outputs = 120, .height = 24, .width = 23, .kernel = 3, .pad = 1}),
      1,
      {}};
  const rules::VtaLayer tiled = *vta_layer(layer.layer, vta::Config());
  const auto word = [](rules::TileAxis axis) { return "nohwcrs"[static_cast<size_t>(axis)]; };
  Rng rng(3);
  int fitting = 0, refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::string tiles, order;
    std::vector<char> cut;
    for (size_t a = 0; a < rules::kTileAxes; ++a) {
      const auto axis = static_cast<rules::TileAxis>(a);
      const auto size =
          1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(tiled.extent[axis])));
      tiles += fmt::format("{}{} ", word(axis), size);
      if (size < tiled.extent[axis])
        cut.insert(cut.begin() + static_cast<long>(rng.below(cut.size() + 1)), word(axis));
    }
    for (const char c : cut) order += fmt::format(" {}", c);
    const std::string text =
        fmt::format("{}, order{}, input@{} weights@{}, tail {}, copies {} {}", tiles, order,
                    rng.below(cut.size() + 1), rng.below(cut.size() + 1), 1 + rng.below(3),
                    1 + rng.below(2), 1 + rng.below(2));
    const Result<LayerResult> judged = judge(vta::Config(), layer, technology, text);
    if (!judged) {
      EXPECT_EQ(judged.error().kind, ErrorKind::Capacity) << text << to_string(judged.error());
      EXPECT_THAT(judged.error().why, testing::HasSubstr("KiB")) << text;
      ++refused;
      continue;
    }
    ++fitting;
    EXPECT_GE(judged->cycles, judged->bound) << text;
  }
  EXPECT_GT(fitting, 20);
  EXPECT_GT(refused, 5);
}

TEST(Evaluation, SaysWhereAMappingIsWrong) {
  const Technology technology = *load_technology("asic45");
  const WorkloadLayer layer{cost::matmul(700, 130, 190), 1, {}};
  const auto error = [&](const Hardware& hardware, const std::string& text) {
    const Result<LayerResult> judged = judge(hardware, layer, technology, text);
    return judged ? Error() : judged.error();
  };
  const spatial::Design design;
  const std::string choice = text_of_choice(layer.layer, cost::choices(design, layer.layer)[0]);
  EXPECT_EQ(error(design, choice + " tiles=3").kind, ErrorKind::Parse);
  EXPECT_EQ(error(design, choice + " tiles=3").place, std::to_string(choice.size() + 2));
  EXPECT_EQ(error(design, choice + " tile=i701").kind, ErrorKind::Usage);
  EXPECT_EQ(error(design, choice).kind, ErrorKind::Capacity);
  EXPECT_THAT(error(design, choice).why, testing::HasSubstr("scratchpad: "));
  EXPECT_EQ(error(design, "first=a").kind, ErrorKind::Usage);  // plays nothing
  EXPECT_THAT(error(design, "first=a").why, testing::HasSubstr(choice));
  EXPECT_EQ(error(vta::Config(), "n700 o9, copy 2").place, "10");
  EXPECT_EQ(error(vta::Config(), "n700 o9 c12, order n").kind, ErrorKind::Usage);
  EXPECT_THAT(error(vta::Config(), "n700").why, testing::HasSubstr("accumulators: result"));
}

}  // namespace
}  // namespace tilewright::codesign
