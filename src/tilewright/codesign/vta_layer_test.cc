// Layers on VTA: facts as the compiler reads them, accesses by hand, designs as evaluations see
// them.
#include "tilewright/codesign/vta_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codesign/evaluation.h"
#include "tilewright/rules/vta/schedule.h"

namespace tilewright::codesign {
namespace {

std::vector<cost::SpatialLayer> layers() {
  return {
      cost::conv2d(
          {.inputs = 64, .outputs = 128, .height = 28, .width = 28, .kernel = 3, .pad = 1}),
      cost::conv2d({.inputs = 24,
                    .outputs = 40,
                    .height = 30,
                    .width = 29,
                    .kernel = 3,
                    .kernel_width = 5,
                    .stride = 2,
                    .dilation = 2,
                    .pad = 3}),
      // The last row and column of the image are read by no window.
      cost::conv2d({.inputs = 64, .outputs = 32, .height = 14, .width = 14, .stride = 2}),
      cost::conv2d({.batch = 3, .inputs = 16, .outputs = 16, .height = 7, .width = 7}),
      cost::matmul(1, 1000, 512),
      cost::matmul(9, 40, 33),
  };
}

std::vector<vta::Config> configs() {
  vta::Config wide = *vta::builtin_config("vta-extended");
  wide.log_block_out = 5;
  return {vta::Config(), *vta::builtin_config("vta"), wide};
}

TEST(VtaLayerOfDesigns, FactsAreThoseThatTheCompilerReads) {
  for (const vta::Config& config : configs())
    for (const cost::SpatialLayer& layer : layers()) {
      const Result<Func> func = vta_func(layer, config);
      ASSERT_TRUE(func) << to_string(func.error());
      const auto prologue = rules::vta_prologue(*func);
      ASSERT_TRUE(prologue) << to_string(prologue.error());
      const auto read = rules::vta_layer(*schedule::replay(*func, *prologue));
      ASSERT_TRUE(read) << to_string(read.error());
      Result<rules::VtaLayer> mine = vta_layer(layer, config);
      ASSERT_TRUE(mine);
      mine->name = read->name;
      EXPECT_EQ(*mine, *read) << layer.name << " " << layer.macs();
    }
}

TEST(VtaLayerOfDesigns, SaysWhatHasNoForm) {
  cost::SpatialLayer batched = cost::matmul(8, 8, 8);
  batched.tensors[1].dims.push_back(batched.tensors[0].dims[0]);  // i moves both factors
  const Result<rules::VtaLayer> layer = vta_layer(batched, vta::Config());
  ASSERT_FALSE(layer);
  EXPECT_EQ(layer.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(layer.error().why.find("both factors"), std::string::npos) << layer.error().why;
}

// 4 x 16 pixels of 2 x 16 channels, 16 outputs: 128 steps of 256 products.
TEST(VtaLayerOfDesigns, EnergyIsEveryAccessTimesItsCost) {
  const vta::Config config;
  const auto run =
      vta_run(cost::conv2d({.inputs = 32, .outputs = 16, .height = 4, .width = 16}), config);
  ASSERT_TRUE(run);
  Energies only;
  only.spad_bytes = {0, 0, 0};
  const auto with = [&](double Energies::* member) {
    Energies e = only;
    e.*member = 1;
    return vta_energy(*run, config, e).chip();
  };
  EXPECT_EQ(with(&Energies::mac), 128 * 256);
  // Sums are reset (64 + 16), added to (2 x 64 + 16), biased, shifted and clipped; then stored.
  EXPECT_EQ(with(&Energies::local_byte), 64 * (64 + 16) + (128 + 4 * 64) * (128 + 16) + 64 * 16);
  const VtaBytes bytes = vta_bytes(*run, config);
  EXPECT_EQ(bytes.written, 64 * 16);
  EXPECT_GE(bytes.read, 2 * 64 * 16 + 2 * 256 + 64);
  EXPECT_EQ(with(&Energies::dma_byte), bytes.read + bytes.written);
  Energies weights = only;
  weights.spad_bytes[0] = 1;
  EXPECT_EQ(vta_energy(*run, config, weights).chip(), 128 * 256 + bytes.read / 2);
}

TEST(VtaLayerOfDesigns, ADesignHasItsPartsAndItsCosts) {
  const vta::Config config;
  const Parts parts(config);
  EXPECT_EQ(parts.units, 256);
  EXPECT_EQ(parts.scratchpads[0].kb, 256);
  EXPECT_EQ(parts.scratchpads[0].banks, 16);
  EXPECT_EQ(parts.scratchpads[1].kb, 32);
  EXPECT_EQ(parts.scratchpads[2].kb, 32);
  EXPECT_EQ(parts.local_kb, 128 + 32);
  vta::Config small = config;
  small.log_wgt_buff -= 2;
  for (const char* name : {"asic45", "hasco-fpga", "maestro28"}) {
    const Technology technology = *load_technology(name);
    EXPECT_GT(area(config, technology).total(), 0) << name;
    EXPECT_GE(peak_power(config, technology), leakage(config, technology)) << name;
    EXPECT_LE(area(small, technology).total(), area(config, technology).total()) << name;
  }
  Workload workload;
  workload.layers.push_back({layers()[0], 2, {"a", "b"}});
  DesignEvaluator evaluator(workload, *load_technology("asic45"));
  const DesignResult big = evaluator.evaluate(config), less = evaluator.evaluate(small);
  EXPECT_EQ(big.accelerator_cycles, 2 * big.layers[0].cycles);
  EXPECT_GE(big.layers[0].cycles, big.layers[0].bound);
  EXPECT_DOUBLE_EQ(big.seconds, big.cycles() / 100e6);
  EXPECT_LE(big.cycles(), less.cycles());
  EXPECT_GT(big.consumption.energy_pj, 0);
  EXPECT_THAT(mapping_text(workload.layers[0], big.layers[0]), testing::HasSubstr("order"));
}

}  // namespace
}  // namespace tilewright::codesign
