// The cycle simulator against the model on designs of VTA.
#include "tilewright/codesign/tsim/tsim.h"

#include <gtest/gtest.h>

namespace tilewright::codesign {
namespace {

Workload two_layers() {
  Workload workload;
  workload.layers.push_back(
      {cost::conv2d(
           {.inputs = 32, .outputs = 64, .height = 14, .width = 14, .kernel = 3, .pad = 1}),
       3,
       {"a"}});
  workload.layers.push_back(
      {cost::conv2d({.inputs = 128, .outputs = 64, .height = 28, .width = 28, .stride = 2}),
       1,
       {"b"}});
  workload.layers.push_back({cost::matmul(1, 1, 4), 1, {"the host's"}});
  return workload;
}

TEST(Tsim, IsCloseToTheModelOfVta) {
  DesignEvaluator evaluator(two_layers(), *load_technology("asic45"));
  for (const char* name : {"vta", "vta-extended"}) {
    const vta::Config config = *vta::builtin_config(name);
    const DesignResult model = evaluator.evaluate(config);
    const Result<DesignResult> tsim = at_level(tsim_level(), evaluator, config, model);
    ASSERT_TRUE(tsim) << to_string(tsim.error());
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NE(tsim->layers[i].cycles, 0);
      EXPECT_NEAR(tsim->layers[i].cycles / model.layers[i].cycles, 1, 0.03) << name << " " << i;
      EXPECT_EQ(tsim->layers[i].energy.chip(), model.layers[i].energy.chip());
    }
    EXPECT_TRUE(tsim->layers[2].on_host);
    EXPECT_EQ(tsim->layers[2].cycles, 4);
    EXPECT_EQ(tsim->accelerator_cycles, 3 * tsim->layers[0].cycles + tsim->layers[1].cycles);
    EXPECT_EQ(tsim->area.total(), model.area.total());
  }
}

// A level that needs twice the time: mean power falls, but for leakage, and energy rises by it.
TEST(Tsim, CyclesOfALevelGoIntoEverythingThatDependsOnTime) {
  DesignEvaluator evaluator(two_layers(), *load_technology("asic45"));
  const vta::Config config;
  const DesignResult model = evaluator.evaluate(config);
  const Level slow = {"slow",
                      [](const Hardware&, const WorkloadLayer&, const LayerResult& layer) {
                        return Result<double>(2 * layer.cycles);
                      },
                      {},
                      {}};
  const Result<DesignResult> result = at_level(slow, evaluator, config, model);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->accelerator_cycles, 2 * model.accelerator_cycles);
  EXPECT_EQ(result->host_cycles, model.host_cycles);
  EXPECT_LT(result->consumption.power_mw, model.consumption.power_mw);
  const double leaked = leakage(config, evaluator.technology()) * 1e9;
  EXPECT_NEAR(result->consumption.energy_pj - model.consumption.energy_pj,
              leaked * (result->seconds - model.seconds), 1e-6 * model.consumption.energy_pj);
}

TEST(Tsim, SpatialArraysAreNearTheModel) {
  DesignEvaluator evaluator(two_layers(), *load_technology("asic45"));
  const spatial::Design design;
  const DesignResult model = evaluator.evaluate(design);
  EXPECT_TRUE(tsim_level().accepts(evaluator.technology()));
  // The cycles are simulated, whatever the model said.
  DesignResult off = model;
  for (LayerResult& layer : off.layers) layer.cycles *= 2;
  const auto result = at_level(tsim_level(), evaluator, design, off);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_NEAR(result->accelerator_cycles / model.accelerator_cycles, 1, 0.01);
}

}  // namespace
}  // namespace tilewright::codesign
