// The model against the cycle simulator: counts equal, cycles close.
#include "tilewright/cost/spatial/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tilewright/accel/spatial/sim/machine.h"
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

TEST(SpatialModelSlow, AgreesWithTheSimulator) {
  CaseDraw draw(std::getenv("TW_SEED") ? std::uint64_t(std::atoll(std::getenv("TW_SEED"))) : 1);
  std::vector<double> errors;
  int64_t cycles = 0;
  const int wanted = std::getenv("TW_CASES") ? std::atoi(std::getenv("TW_CASES")) : 150;
  while (int(errors.size()) < wanted) {
    const spatial::Design design = draw.design();
    SpatialLayer layer = draw.layer(16, design);
    layer.biased = layer.packed_tensor() >= 0 && draw.below(2);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    const SpatialCost model = evaluate(design, layer, mapping);
    const auto program = program_of(design, layer, mapping);
    const auto sim = spatial::simulate(design, program);
    ASSERT_TRUE(sim) << to_string(sim.error());
    expect_counts(model, sim->counters, mapping);
    EXPECT_LE(lower_bound(design, layer), 1.02 * double(sim->cycles));
    const double error = model.cycles / double(sim->cycles) - 1;
    errors.push_back(std::abs(error));
    cycles += int64_t(sim->cycles);
    if (std::abs(error) > (std::getenv("TW_SHOW") ? 0.08 : 0.25)) {
      std::string loops;
      for (const auto& l : layer.loops) loops += l.name + std::to_string(l.extent) + " ";
      ADD_FAILURE() << "unit " << int(design.unit) << " flow " << int(design.dataflow) << " links "
                    << int(design.links) << " " << design.rows << "x" << design.cols << " banks "
                    << design.banks << "x" << design.bank_bytes << " bus " << design.bus_bytes
                    << " burst " << design.burst_bytes << "\n"
                    << loops << "\n"
                    << to_string(layer, mapping) << "\nmodel " << model.cycles << " simulated "
                    << sim->cycles << " error " << error << " load " << model.load << " compute "
                    << model.compute << " store " << model.store << ", simulated load "
                    << sim->counters.load_busy << " compute " << sim->counters.compute_busy
                    << " store " << sim->counters.store_busy << " padding "
                    << sim->counters.zero_bytes << " of " << sim->counters.load_bytes;
    }
  }
  std::sort(errors.begin(), errors.end());
  std::printf("%zu cases, %lld cycles: median %.2f %%, 98 of 100 within %.2f %%, worst %.2f %%\n",
              errors.size(), static_cast<long long>(cycles), 100 * errors[errors.size() / 2],
              100 * errors[errors.size() * 98 / 100], 100 * errors.back());
  EXPECT_LE(errors[errors.size() / 2], 0.02);
  // Far off are arrays that wait for one narrow bank: rows that share accesses by their addresses.
  EXPECT_LE(errors[errors.size() * 95 / 100], 0.05);
  EXPECT_LE(errors.back(), 0.25);
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
  EXPECT_LE(errors[errors.size() / 2], 0.03);
  EXPECT_LE(errors.back(), 0.25);
}

}  // namespace
}  // namespace tilewright::cost
