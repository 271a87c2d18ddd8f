// Evaluations and problems: sums over layers, and what is known of a design before it is mapped.
#include "tilewright/codesign/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/spatial/needs.h"
#include "tilewright/codesign/problem.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::codesign {
namespace {

Workload small_network() {
  zoo::Options options;
  options.size = 32;
  return *workload_of(*zoo::build("resnet18", options));
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
  EXPECT_DOUBLE_EQ(layer.dram_pj, (in + out) * e.dram_byte);
  const double steps = static_cast<double>(c.steps);
  const double sums = 4 * (2 * steps * static_cast<double>(spatial::sum_parts(design)) + out);
  EXPECT_NEAR(
      layer.chip_pj,
      256 * steps * e.mac +
          (static_cast<double>(c.spad_reads[0] + c.spad_reads[1]) + in + zeros) * e.spad_byte +
          sums * e.local_byte + (in + out) * e.dma_byte +
          static_cast<double>(c.instructions) * e.command,
      1e-6 * layer.chip_pj);
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

TEST(Evaluation, ALayerThatIsFasterOnTheHostRunsThere) {
  Workload workload;
  workload.layers.push_back({cost::matmul(1, 1, 4), 1, {"tiny"}});
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  const DesignResult result = evaluator.evaluate({});
  EXPECT_TRUE(result.layers[0].on_host);
  EXPECT_DOUBLE_EQ(result.host_cycles, 4);
  EXPECT_EQ(result.accelerator_cycles, 0);
}

// What the prior calls exact is, and what it calls a bound is one.
TEST(Problem, OptimisticIsABoundAndKnownIsExact) {
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
      const search::PriorValue prior = problem.prior.at(point);
      for (size_t j = 0; j < goals.objectives.size(); ++j) {
        const double log = std::log10(outcome.objectives[j]);
        EXPECT_LE(prior.log_objectives[j], log + 1e-9) << name << " objective " << j;
        if (problem.prior.known_objectives[j]) {
          EXPECT_NEAR(prior.log_objectives[j], log, 1e-9);
        }
      }
    }
  }
}

// The front with bounds that skip designs is the front without.
TEST(Problem, EnumerationWithBoundsFindsTheSameFront) {
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

}  // namespace
}  // namespace tilewright::codesign
