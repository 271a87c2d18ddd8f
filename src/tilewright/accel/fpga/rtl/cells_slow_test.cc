// The model's cells against Yosys's, on designs that the constants of the model were not fitted to.
#include <gtest/gtest.h>

#include "tilewright/accel/fpga/rtl/cells.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

void expect_as_yosys(const testing::Matmul& shape) {
  constexpr double kMostOff = 0.1;
  const std::string text = verilog(testing::design_of(shape), Numbers::Fixed).text;
  const auto made = accel::synthesise({.top = kTop, .verilog = text, .boxed = {}, .library = {}});
  ASSERT_TRUE(made) << to_string(made.error());
  const accel::Cells yosys = made->cells(), model = predicted_cells(text).cells();
  EXPECT_NEAR(double(model.lut), double(yosys.lut), kMostOff * double(yosys.lut));
  EXPECT_NEAR(double(model.ff), double(yosys.ff), kMostOff * double(yosys.ff));
  EXPECT_EQ(model.dsp, yosys.dsp);
  EXPECT_EQ(model.bram18, yosys.bram18);
  EXPECT_EQ(model.lut_ram, yosys.lut_ram);
}

TEST(FpgaCellsSlow, OfASmallMatmul) {
  testing::Matmul shape;
  shape.m = 6;
  shape.n = 10;
  shape.k = 14;
  expect_as_yosys(shape);
}

TEST(FpgaCellsSlow, OfAMatmulWithMoreBanksAndBlockRam) {
  testing::Matmul shape;
  shape.m = shape.n = shape.k = 32;
  shape.tm = 32;
  shape.tn = shape.tk = 16;
  shape.uk = 4;
  shape.words = 512;
  expect_as_yosys(shape);
}

}  // namespace
}  // namespace tilewright::fpga
