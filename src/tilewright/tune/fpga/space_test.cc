#include "tilewright/tune/fpga/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::tune {
namespace {

cost::SpatialLayer layer() {
  return cost::conv2d(
      {.inputs = 32, .outputs = 64, .height = 28, .width = 28, .kernel = 3, .pad = 1});
}

std::unique_ptr<FpgaSpace> space_on(const char* device, const FpgaSpaceOptions& options = {}) {
  auto space = FpgaSpace::create(*hw::load_fpga_device(device), layer(), options);
  EXPECT_TRUE(space) << to_string(space.error());
  return *std::move(space);
}

TEST(FpgaSpace, PointsAndDesignsMeanTheSame) {
  const auto space = space_on("vu9p");
  Rng rng(5);
  int legal = 0;
  for (int n = 0; n < 2000; ++n) {
    const search::Point point = space->space().random(rng);
    const cost::FpgaDesign design = space->design(point);
    EXPECT_EQ(design.to % design.uo, 0);
    EXPECT_EQ(design.tc % design.ui, 0);
    EXPECT_EQ(design.tw % design.us, 0);
    const auto again = space->point(design);
    if (again) {
      EXPECT_EQ(space->design(*again), design);
    }
    const search::Evaluation outcome = space->judge(point);
    EXPECT_EQ(outcome.reason.empty(), outcome.cost < search::kInvalid);
    legal += outcome.reason.empty() ? 1 : 0;
  }
  EXPECT_GT(legal, 50);
  EXPECT_LT(legal, 1900);
}

TEST(FpgaSpace, HasTheOptimum) {
  const auto space = space_on("zcu104");
  const auto best = cost::best_fpga_design(space->model(space->space().at(0)));
  ASSERT_TRUE(best);
  const auto point = space->point(best->design);
  ASSERT_TRUE(point) << cost::to_string(best->design);
  EXPECT_EQ(space->prior(*point), best->time.cycles);
}

TEST(FpgaSpace, SaysWhatTheDeviceLacks) {
  const auto space = space_on("zynq7020");
  cost::FpgaDesign design{.uo = 64, .ui = 32, .us = 1, .to = 64, .tc = 32, .th = 28, .tw = 28};
  EXPECT_EQ(space->judge(*space->point(design)).reason, "DSP 10 240 of 198");
  design.uo = design.ui = 1;
  design.to = 64;
  EXPECT_EQ(space->judge(*space->point(design)).reason, "BRAM18 366 of 238");
  design.image_slots = 3;
  design.result_slots = 3;
  EXPECT_EQ(space->judge(*space->point(design)).reason, "BRAM18 513 of 238");
}

TEST(FpgaSpace, TypesAreADecision) {
  FpgaSpaceOptions options;
  options.dtypes = {DType::F32, DType::I8};
  const auto space = space_on("vu9p", options);
  const cost::FpgaDesign design{.uo = 32, .ui = 32, .us = 4, .to = 64, .tc = 32, .th = 7, .tw = 28};
  search::Point point = *space->point(design);
  EXPECT_EQ(space->judge(point).reason, "DSP 20 480 of 5 262");
  point.back() = 1;
  EXPECT_EQ(space->judge(point).reason, "");
  EXPECT_THAT(space->space().text(point), ::testing::HasSubstr("dtype=i8"));
}

TEST(FpgaSpace, OfAFunc) {
  const Func func = cost::func_of("conv", {cost::computation_of(layer())});
  const auto space = FpgaSpace::create(*hw::load_fpga_device("vu9p"), func);
  ASSERT_TRUE(space) << to_string(space.error());
  const cost::FpgaModel& model = (*space)->model((*space)->space().at(0));
  EXPECT_EQ(model.options().dtype, DType::I8);
  EXPECT_EQ(model.macs(), static_cast<double>(layer().macs()));
  EXPECT_EQ(model.extent(model.roles().outputs), 64);
  EXPECT_EQ(model.extent(model.roles().inputs), 32);
}

}  // namespace
}  // namespace tilewright::tune
