#include "tilewright/cost/fpga/common.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/cost/fpga/testing/layers.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::cost {
namespace {

std::vector<FpgaModel> models_of(const std::vector<SpatialConv>& convs,
                                 const hw::FpgaDevice& device) {
  std::vector<FpgaModel> models;
  for (const SpatialConv& conv : convs)
    models.push_back(*FpgaModel::create(device, conv2d(conv), {.dtype = DType::I8}));
  return models;
}

std::vector<FpgaLayerUse> uses_of(const std::vector<FpgaModel>& models,
                                  const std::vector<double>& times) {
  std::vector<FpgaLayerUse> uses;
  for (size_t i = 0; i < models.size(); ++i) uses.push_back({&models[i], times[i]});
  return uses;
}

/// A zynq7020 with room for little.
hw::FpgaDevice small_device(double luts, int64_t bram18) {
  hw::FpgaDevice device = *hw::load_fpga_device("zynq7020");
  device.cells.dsps = 4;
  device.cells.luts = luts;
  device.cells.bram18 = bram18;
  return device;
}

/// Everything that is the same for all layers, by brute force: all sizes, all tiles.
class BruteForce {
 public:
  BruteForce(const std::vector<FpgaLayerUse>& layers, int64_t most)
      : layers_(layers), most_(most) {}

  double least() {
    for (int64_t uo = 1; uo <= most_; ++uo)
      for (int64_t ui = 1; ui <= most_; ++ui)
        for (int64_t us = 1; us <= most_; ++us)
          if (uo * ui * us <= layers_[0].model->most_products())
            for (const FpgaStays order : {FpgaStays::Image, FpgaStays::Weights})
              array(uo, ui, us, order);
    return least_;
  }

 private:
  struct Option {
    double cycles = 0;
    FpgaDesign design;
    FpgaRams buffers;
  };

  void array(int64_t uo, int64_t ui, int64_t us, FpgaStays order) {
    std::vector<std::vector<Option>> options;
    for (const FpgaLayerUse& layer : layers_) {
      const FpgaModel& m = *layer.model;
      std::vector<Option>& mine = options.emplace_back();
      FpgaDesign d{.uo = uo, .ui = ui, .us = us};
      d.row_banks = common_row_banks(layers_, us);
      for (d.to = uo; d.to < m.extent(m.roles().outputs) + uo; d.to += uo)
        for (d.tc = ui; d.tc < m.extent(m.roles().inputs) + ui; d.tc += ui)
          for (d.th = 1; d.th <= m.extent(m.roles().rows); ++d.th)
            for (d.tw = us; d.tw < m.extent(m.roles().pixels) + us; d.tw += us)
              for (const FpgaStays stays : {FpgaStays::Nothing, order}) {
                d.stays = stays;
                if (m.problem(d).empty()) mine.push_back({m.time(d).cycles, d, m.buffers(d)});
              }
    }
    for (std::vector<Option>& mine : options)
      std::sort(mine.begin(), mine.end(),
                [](const Option& a, const Option& b) { return a.cycles < b.cycles; });
    put_together(options, 0, 0, {FpgaRam{}, {}, {}});
  }

  /// In the order of cycles, only to end sooner.
  void put_together(const std::vector<std::vector<Option>>& options, size_t layer, double cycles,
                    const FpgaRams& buffers) {
    if (layer == options.size()) {
      least_ = cycles;
      return;
    }
    for (const Option& one : options[layer]) {
      if (cycles + layers_[layer].times * one.cycles >= least_) return;
      FpgaRams all = one.buffers;
      for (size_t i = 0; i < 3; ++i) {
        all[i].words = std::max(all[i].words, buffers[i].words);
        all[i].banks = std::max(all[i].banks, buffers[i].banks);
      }
      if (layers_[0].model->problem(one.design, all).empty())
        put_together(options, layer + 1, cycles + layers_[layer].times * one.cycles, all);
    }
  }

  const std::vector<FpgaLayerUse>& layers_;
  int64_t most_;
  double least_ = std::numeric_limits<double>::infinity();
};

const std::vector<SpatialConv> kSmall = {
    {.inputs = 2, .outputs = 3, .height = 15, .width = 9, .kernel = 3, .stride = 2, .pad = 1},
    {.inputs = 6, .outputs = 8, .height = 3, .width = 4, .kernel = 3, .pad = 1}};

TEST(FpgaCommon, EqualsBruteForce) {
  // Memory for everything, for some things, and for hardly anything.
  for (const auto& [luts, bram18] : {std::pair{6000.0, 0}, {6000.0, 4}, {6000.0, 9}, {400.0, 5}}) {
    const auto models = models_of(kSmall, small_device(luts, bram18));
    const auto layers = uses_of(models, {1, 3});
    const FpgaSearch search{.weight_ports = 1, .blocks = {1}};
    const auto common = best_common_fpga_design(layers, search);
    const double least = BruteForce(layers, 6).least();
    ASSERT_TRUE(common) << luts << " " << bram18;
    EXPECT_DOUBLE_EQ(common->cycles, least) << luts << " " << bram18;
    double sum = 0, alone = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      const FpgaDesign& d = common->layers[i].design;
      EXPECT_EQ(d.uo, common->structure.uo);
      EXPECT_EQ(d.ui, common->structure.ui);
      EXPECT_EQ(d.us, common->structure.us);
      EXPECT_TRUE(d.stays == FpgaStays::Nothing || d.stays == common->structure.stays);
      sum += layers[i].times * models[i].time(d).cycles;
      alone += layers[i].times * best_fpga_design(models[i], search)->time.cycles;
    }
    EXPECT_EQ(models[0].problem(common->structure, common->buffers), "");
    EXPECT_DOUBLE_EQ(sum, common->cycles);
    EXPECT_LE(alone, common->cycles * 1.0001);
  }
}

TEST(FpgaCommon, NothingFits) {
  const auto poor = models_of(kSmall, small_device(10, 0));
  EXPECT_FALSE(best_common_fpga_design(uses_of(poor, {1, 1})));
  EXPECT_FALSE(best_common_fpga_design({}));
}

// 14 pixels that are 4 apart lie in 56 banks, which neighbours reach, too; 7 such in 7.
TEST(FpgaCommon, BanksForAllStrides) {
  const auto models =
      models_of({{.inputs = 3, .outputs = 4, .height = 59, .width = 59, .kernel = 3},
                 {.inputs = 3, .outputs = 4, .height = 59, .width = 59, .kernel = 3, .stride = 4}},
                *hw::load_fpga_device("zynq7020"));
  const auto layers = uses_of(models, {1, 1});
  EXPECT_EQ(common_row_banks(layers, 1), 1);
  EXPECT_EQ(common_row_banks(layers, 7), 7);
  EXPECT_EQ(common_row_banks(layers, 14), 56);
}

}  // namespace
}  // namespace tilewright::cost
