#include "tilewright/cost/fpga/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/accel/fpga/block_ram.h"
#include "tilewright/base/integers.h"
#include "tilewright/base/rng.h"
#include "tilewright/cost/fpga/search.h"
#include "tilewright/cost/fpga/testing/layers.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::cost {
namespace {

using ::testing::ElementsAre;

FpgaModel model_of(const SpatialLayer& layer, const char* device = "vu9p",
                   const FpgaOptions& options = {}) {
  Result<FpgaModel> model = FpgaModel::create(*hw::load_fpga_device(device), layer, options);
  EXPECT_TRUE(model) << to_string(model.error());
  return *std::move(model);
}

TEST(FpgaModel, BlocksOfMemory) {
  EXPECT_EQ(fpga::bram18_of(512, 32), 1);
  EXPECT_EQ(fpga::bram18_of(513, 32), 2);
  EXPECT_EQ(fpga::bram18_of(2048, 8), 1);
  EXPECT_EQ(fpga::bram18_of(16384, 1), 1);
  EXPECT_EQ(fpga::bram18_of(1024, 37), 3);
}

TEST(FpgaModel, RolesOfLoops) {
  const FpgaModel conv =
      model_of(conv2d({.inputs = 8, .outputs = 4, .height = 9, .width = 9, .kernel = 3, .pad = 1}));
  EXPECT_EQ(conv.extent(conv.roles().outputs), 4);
  EXPECT_EQ(conv.extent(conv.roles().inputs), 8);
  EXPECT_EQ(conv.taps(), 9);
  const FpgaModel gemm = model_of(matmul(5, 6, 7));
  EXPECT_EQ(gemm.extent(gemm.roles().pixels), 5);
  EXPECT_EQ(gemm.extent(gemm.roles().outputs), 6);
  EXPECT_EQ(gemm.extent(gemm.roles().inputs), 7);
  EXPECT_EQ(gemm.roles().rows, -1);
  EXPECT_EQ(gemm.macs(), 5 * 6 * 7);
}

// The cycles that Zhang et al. publish for one design, <64, 7>, in five layers of AlexNet. The 20,
// and that the first layer has none, were inferred from these cycles: this checks arithmetic.
TEST(FpgaModel, ZhangsAlexNet) {
  const double cycles[] = {366025, 255430, 171051, 129444, 86296};
  const std::vector<SpatialLayer> layers = alexnet_halves();
  for (size_t i = 0; i < layers.size(); ++i) {
    const FpgaModel model = model_of(layers[i], "vc707", {.depth = i == 0 ? 0.0 : 20.0});
    FpgaDesign design{.uo = 64, .ui = 7, .us = 1, .to = 64, .tc = 7};
    design.th = design.tw = model.extent(model.roles().rows);
    EXPECT_EQ(model.time(design).compute, cycles[i]) << i;
  }
}

TEST(FpgaModel, UniformDesignComputes) {
  for (const SpatialLayer& layer : yolo_layers()) {
    const FpgaModel model = model_of(layer);
    const auto up = [](int64_t a, int64_t b) { return static_cast<double>(ceil_div(a, b)); };
    const double pixels =
        static_cast<double>(model.extent(model.roles().rows) * model.extent(model.roles().pixels));
    EXPECT_EQ(model.bound(64, 16, 1), up(model.extent(model.roles().outputs), 64) *
                                          up(model.extent(model.roles().inputs), 16) *
                                          static_cast<double>(model.taps()) * pixels);
  }
}

TEST(FpgaModel, SaysWhatTheDeviceLacks) {
  const FpgaModel model = model_of(yolo_layers()[12], "zcu104");
  FpgaDesign design{.uo = 16, .ui = 16, .us = 1, .to = 16, .tc = 16, .th = 14, .tw = 14};
  EXPECT_EQ(model.problem(design), "");
  design.us = 14;
  EXPECT_EQ(model.problem(design), "DSP 17 920 of 1 555");
  design.us = 1;
  design.to = design.tc = 1024;
  EXPECT_EQ(model.problem(design).substr(0, 8), "BRAM18 3") << model.problem(design);
  design.to = design.tc = 16;
  design.pipelines = 2;
  EXPECT_EQ(model.problem(design), "DSP 2 560 of 1 555");
}

TEST(FpgaModel, TwoProductsOfI8ShareAMultiplier) {
  const auto dsps = [](const char* device, hw::FpgaPath path, int64_t uo, int64_t us) {
    const FpgaModel model = model_of(yolo_layers()[12], device, {.dtype = DType::I8, .path = path});
    return model.cells({.uo = uo, .ui = 2, .us = us, .to = 64, .tc = 16, .th = 14, .tw = 14}).dsps;
  };
  using hw::FpgaPath;
  EXPECT_EQ(dsps("vu9p", FpgaPath::Hls, 3, 2), 8);  // of two output channels
  EXPECT_EQ(dsps("vu9p", FpgaPath::Rtl, 3, 2), 6);  // of any
  EXPECT_EQ(dsps("vu9p", FpgaPath::Rtl, 3, 1), 4);
  EXPECT_EQ(dsps("zynq7020", FpgaPath::Hls, 4, 1), 8);
  EXPECT_EQ(dsps("zynq7020", FpgaPath::Rtl, 4, 1), 4);
}

// source: what Yosys 0.23 makes of fpga_bank for the 7 series.
TEST(FpgaModel, MemoriesOfTheVerilog) {
  const auto image = [](int64_t words, int slots) {  // of 8 bits, one bank
    const SpatialLayer layer =
        conv2d({.inputs = words, .outputs = 4, .height = 4, .width = 4, .kernel = 1, .pad = 0});
    const FpgaModel model =
        model_of(layer, "zynq7020", {.dtype = DType::I8, .path = hw::FpgaPath::Rtl});
    const FpgaDesign design{.to = 1, .tc = words, .th = 1, .tw = 1, .image_slots = slots};
    FpgaRams buffers = model.buffers(design), others = buffers;
    others[0].banks = 0;
    hw::FpgaCells cells = model.cells(design, buffers), rest = model.cells(design, others);
    cells.luts -= rest.luts;
    cells.bram18 -= rest.bram18;
    return cells;
  };
  EXPECT_EQ(image(16, 2).luts, 8);    // 2 RAM32M
  EXPECT_EQ(image(64, 1).luts, 12);   // 3 RAM64M
  EXPECT_EQ(image(128, 1).luts, 32);  // 6, and what chooses
  EXPECT_EQ(image(128, 2).luts, 56);
  EXPECT_EQ(image(129, 2).bram18, 1);  // 512 words, as the slot is the upper part of an address
  EXPECT_EQ(image(1200, 2).bram18, 2);
}

// Section 5's recurrence of full and empty blocks is what the closed form abbreviates.
TEST(FpgaModel, ClosedFormAgainstBoundedChannels) {
  Rng rng(7);
  std::vector<double> errors;
  for (int n = 0; n < 300; ++n) {
    const int64_t channels = 32 << rng.below(3), size = 14 << rng.below(2);
    const FpgaModel model = model_of(conv2d({.inputs = channels,
                                             .outputs = 128,
                                             .height = size,
                                             .width = size,
                                             .kernel = 3,
                                             .pad = 1}));
    FpgaDesign design{.uo = 16,
                      .ui = 4,
                      .us = 7,
                      .to = 16 << rng.below(3),
                      .tc = 8 << rng.below(2),
                      .th = 7,
                      .tw = 14};
    const FpgaModel whole = model_of(conv2d({.inputs = design.tc,
                                             .outputs = design.to,
                                             .height = design.th,
                                             .width = design.tw,
                                             .kernel = 3,
                                             .pad = 1}));
    const FpgaTime one = whole.time(design);
    const int64_t groups = (128 / design.to) * (size / 7) * (size / 14);
    std::vector<FpgaTileTimes> tiles;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t c = 0; c < channels; c += design.tc)
        tiles.push_back(
            {one.image, one.weights, one.compute, one.result, c + design.tc >= channels});
    const double exact = run_tiles(tiles, 2, 2, 2);
    errors.push_back(std::abs(model.time(design).cycles - model.options().start - exact) / exact);
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], 0.02);
  EXPECT_LE(errors[errors.size() * 95 / 100], 0.10);
}

TEST(FpgaModel, OneSlotIsNeverFaster) {
  Rng rng(3);
  const FpgaModel model = model_of(yolo_layers()[7]);
  for (int n = 0; n < 200; ++n) {
    FpgaDesign design{.uo = 8,
                      .ui = 16,
                      .us = 7,
                      .to = 8 * (1 + rng.below(8)),
                      .tc = 16 * (1 + rng.below(16)),
                      .th = 1 + rng.below(28),
                      .tw = 7 * (1 + rng.below(4))};
    design.stays = static_cast<FpgaStays>(rng.below(3));
    const double two = model.time(design).cycles;
    design.image_slots = 1;
    const double one_image = model.time(design).cycles;
    design.weight_slots = design.result_slots = 1;
    const double one = model.time(design).cycles;
    design.overlap = false;
    EXPECT_LE(two, one_image + 1e-6) << to_string(design);
    EXPECT_LE(one_image, one + 1e-6) << to_string(design);
    EXPECT_LE(one, model.time(design).cycles * 1.02) << to_string(design);
  }
}

TEST(FpgaSearchTest, PartSizes) {
  EXPECT_THAT(part_sizes(7), ElementsAre(1, 2, 3, 4, 7));
  EXPECT_THAT(part_sizes(12, true), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(part_sizes(1), ElementsAre(1));
  FpgaSearch some;
  some.apart = 1.5;  // 10, 7, 5, 4, 3, 2, 1: 4 is less than 1.5 times 3, and so on; 5 divides
  EXPECT_THAT(part_sizes(10, some), ElementsAre(1, 2, 3, 5, 10));
}

/// The twelve best, slots of each buffer included, against all designs of tiles that divide.
TEST(FpgaSearchTest, TheBestOfAllInOrder) {
  const FpgaModel model =
      model_of(conv2d({.inputs = 6, .outputs = 8, .height = 8, .width = 4, .kernel = 3, .pad = 1}),
               "zynq7020", {.as_written = true});
  FpgaSearch search;
  search.divisors_only = search.fewer_slots = true;
  search.weight_ports = 1;
  search.blocks = {1};
  search.most_pixels = 1;
  std::vector<double> all;
  const auto sizes = [](int64_t extent) { return part_sizes(extent, true); };
  FpgaDesign d;
  for (const int64_t uo : sizes(8))
    for (const int64_t ui : sizes(6))
      for (const int64_t o : sizes(8 / uo))
        for (const int64_t c : sizes(6 / ui))
          for (const int64_t th : sizes(8))
            for (const int64_t tw : sizes(4))
              for (int slots = 0; slots < 8; ++slots)
                for (const FpgaStays stays : search.stays) {
                  if (stays != FpgaStays::Nothing && c * ui < 6) continue;
                  d.uo = uo, d.ui = ui, d.to = o * uo, d.tc = c * ui, d.th = th, d.tw = tw;
                  d.image_slots = 1 + slots % 2, d.weight_slots = 1 + slots / 2 % 2;
                  d.result_slots = 1 + slots / 4, d.stays = stays;
                  if (model.problem(d).empty()) all.push_back(model.time(d).cycles);
                }
  std::sort(all.begin(), all.end());
  const std::vector<FpgaBest> best = best_fpga_designs(model, search, 12);
  ASSERT_EQ(best.size(), 12u);
  for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].time.cycles, all[i]) << i;
  EXPECT_LT(best[0].looked_at, static_cast<int64_t>(all.size()));
}

// Bounds leave out no design: every one of a small layer, looked at.
TEST(FpgaSearchTestSlow, FindsTheOptimum) {
  const FpgaModel model =
      model_of(conv2d({.inputs = 6, .outputs = 10, .height = 9, .width = 9, .kernel = 3, .pad = 1}),
               "zynq7020");
  const std::optional<FpgaBest> best = best_fpga_design(model);
  ASSERT_TRUE(best);
  double least = 1e30;
  FpgaDesign d;
  for (d.uo = 1; d.uo <= 10; ++d.uo)
    for (d.ui = 1; d.ui <= 6; ++d.ui)
      for (d.us = 1; d.us <= 9; ++d.us) {
        if (d.uo * d.ui * d.us > model.most_products()) continue;
        for (d.to = d.uo; d.to < 10 + d.uo; d.to += d.uo)
          for (d.tc = d.ui; d.tc < 6 + d.ui; d.tc += d.ui)
            for (d.th = 1; d.th <= 9; ++d.th)
              for (d.tw = d.us; d.tw < 9 + d.us; d.tw += d.us)
                for (const FpgaStays stays :
                     {FpgaStays::Nothing, FpgaStays::Image, FpgaStays::Weights})
                  for (d.weight_ports = 1; d.weight_ports <= 2; ++d.weight_ports)
                    for (const int64_t block : {1, 4, 16}) {
                      d.stays = stays;
                      d.block = block;
                      if (model.problem(d).empty()) least = std::min(least, model.time(d).cycles);
                    }
      }
  // Tiles of other sizes than those of equal parts may be a little better.
  EXPECT_GE(best->time.cycles, least);
  EXPECT_LE(best->time.cycles, 1.01 * least);
}

}  // namespace
}  // namespace tilewright::cost
