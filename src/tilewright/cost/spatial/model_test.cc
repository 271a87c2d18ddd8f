// The model against the cycle simulator: counts equal, cycles close.
#include "tilewright/cost/spatial/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/mapper.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::cost {
namespace {

void expect_counts(const SpatialCost& model, const spatial::Counters& sim,
                   const SpatialMapping& m) {
  const auto same = [](int64_t of_model, uint64_t of_sim) {
    EXPECT_EQ(of_model, static_cast<int64_t>(of_sim));
  };
  same(model.steps, sim.steps);
  same(model.computes, sim.computes);
  same(model.instructions, sim.insns);
  same(model.spad_reads[m.choice.first], sim.first_bytes);
  same(model.spad_reads[m.choice.second()], sim.second_bytes);
  const SpatialTraffic &a = model.dram[0], &b = model.dram[1], &out = model.dram[2];
  same(a.transfers + b.transfers, sim.loads);
  same(a.bytes + b.bytes, sim.load_bytes);
  same(a.bursts + b.bursts, sim.load_bursts);
  same(a.padding + b.padding, sim.zero_bytes);
  same(out.transfers, sim.stores);
  same(out.bytes, sim.store_bytes);
  same(out.bursts, sim.store_bursts);
}

std::string text_of(const spatial::Design& design, const SpatialLayer& layer,
                    const SpatialMapping& mapping, const SpatialCost& model,
                    const spatial::LaunchReport& sim) {
  std::string loops;
  for (const auto& l : layer.loops) loops += l.name + std::to_string(l.extent) + " ";
  std::ostringstream text;
  const spatial::Counters& c = sim.counters;
  text << spatial::to_toml(design) << loops << "\n"
       << to_string(layer, mapping) << "\ncycles " << model.cycles << ", simulated " << sim.cycles
       << "; load " << model.load << ", " << c.load_busy << "; compute " << model.compute << ", "
       << c.compute_busy << "; store " << model.store << ", " << c.store_busy << "; zeros "
       << c.zero_bytes << " of " << c.load_bytes;
  return text.str();
}

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

/// Model and simulator on random designs and layers, mapped at random or as well as possible; off
/// by `worst` at most. Returns the errors, ascending.
std::vector<double> errors_of_cases(int cases, uint64_t seed, bool best, double worst) {
  CaseDraw draw(seed);
  std::vector<double> errors, quick;
  int64_t cycles = 0;
  while (int(errors.size()) < cases) {
    const spatial::Design design = draw.design();
    SpatialLayer layer = draw.layer(16, design);
    layer.biased = layer.packed_tensor() >= 0 && draw.below(2);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    if (best) mapping = best_mapping(design, layer, {.tiles = 300})->mapping;
    const SpatialCost model = evaluate(design, layer, mapping);
    const auto sim = spatial::simulate(design, program_of(design, layer, mapping));
    EXPECT_TRUE(sim) << to_string(sim.error());
    if (!sim) break;
    expect_counts(model, sim->counters, mapping);
    EXPECT_LE(lower_bound(design, layer), 1.02 * double(sim->cycles));
    errors.push_back(std::abs(model.cycles / double(sim->cycles) - 1));
    cycles += int64_t(sim->cycles);
    SpatialEvaluator evaluator(design, layer, mapping.choice);
    quick.push_back(std::log(evaluator.cycles(mapping) / model.cycles));
    if (errors.back() > (std::getenv("TW_SHOW") ? 0.01 : worst))
      ADD_FAILURE() << text_of(design, layer, mapping, model, *sim);
  }
  std::sort(errors.begin(), errors.end());
  std::printf("%zu cases, %lld cycles: median %.2f %%, 98 of 100 within %.2f %%, worst %.2f %%\n",
              errors.size(), static_cast<long long>(cycles), 100 * errors[errors.size() / 2],
              100 * errors[errors.size() * 98 / 100], 100 * errors.back());
  std::sort(quick.begin(), quick.end());
  const double sum = std::accumulate(quick.begin(), quick.end(), 0.0,
                                     [](double all, double one) { return all + std::abs(one); });
  std::printf("the quick prediction: %.1f %% in the mean, one of 20 is below %+.1f %%\n",
              100 * sum / double(quick.size()), 100 * quick[quick.size() / 20]);
  return errors;
}

// Limits are a little above the worst of 400 cases of each seed in bench/results/codesign.md.
TEST(SpatialModelSlow, AgreesWithTheSimulator) {
  const auto errors = errors_of_cases(from_environment("TW_CASES", 150),
                                      uint64_t(from_environment("TW_SEED", 1)), false, 0.02);
  EXPECT_LE(errors[errors.size() / 2], 0.0002);
  EXPECT_LE(errors[errors.size() * 98 / 100], 0.002);
}

// A mapper goes where the model is too low.
TEST(SpatialModelSlow, AgreesWhereTheMapperGoes) {
  const auto errors = errors_of_cases(from_environment("TW_CASES", 60),
                                      uint64_t(from_environment("TW_SEED", 1)), true, 0.03);
  EXPECT_LE(errors[errors.size() / 2], 0.0002);
  EXPECT_LE(errors[errors.size() * 98 / 100], 0.002);
}

/// Loops that both factors and the result share: a stack of products, groups, channels.
SpatialLayer with_shared_loop(CaseDraw& draw) {
  SpatialLayer layer;
  const int64_t shared = draw.between(2, 9);
  if (draw.below(2)) {
    layer = matmul(draw.between(1, 40), draw.between(1, 40), draw.between(1, 40), draw.below(2));
  } else {
    SpatialConv conv;
    conv.inputs = draw.between(1, 12);
    conv.outputs = draw.between(1, 12);
    conv.height = conv.width = draw.between(4, 12);
    conv.kernel = draw.one_of({1, 3});
    conv.stride = draw.one_of({1, 2});
    conv.pad = conv.kernel == 1 ? 0 : 1;
    layer = conv2d(conv);
  }
  for (SpatialTensor& tensor : layer.tensors) {
    for (SpatialDim& dim : tensor.dims)
      for (SpatialTerm& term : dim.terms) ++term.loop;
    tensor.dims.insert(tensor.dims.begin(), SpatialDim{{{0, 1}}, shared});
  }
  layer.loops.insert(layer.loops.begin(), {"g", shared, false});
  return layer;
}

TEST(SpatialModel, CountsLoopsThatAllTensorsShare) {
  CaseDraw draw(5);
  std::vector<double> errors;
  int inside = 0;
  while (errors.size() < 60) {
    const spatial::Design design = draw.design();
    const SpatialLayer layer = with_shared_loop(draw);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    const SpatialCost model = evaluate(design, layer, mapping);
    const auto sim = spatial::simulate(design, program_of(design, layer, mapping));
    ASSERT_TRUE(sim) << to_string(sim.error());
    expect_counts(model, sim->counters, mapping);
    EXPECT_LE(lower_bound(design, layer), 1.02 * double(sim->cycles));
    errors.push_back(std::abs(model.cycles / double(sim->cycles) - 1));
    inside += mapping.tile[0] > 1;
  }
  std::sort(errors.begin(), errors.end());
  std::printf("shared loops: median %.2f %%, worst %.2f %%\n", 100 * errors[errors.size() / 2],
              100 * errors.back());
  EXPECT_GT(inside, 10);  // several iterations in one COMPUTE
  EXPECT_LE(errors[errors.size() / 2], 0.002);
  EXPECT_LE(errors.back(), 0.08);
}

}  // namespace
}  // namespace tilewright::cost
