#include "tilewright/accel/fpga/rtl/cells.h"

#include <gtest/gtest.h>

#include "tilewright/accel/fpga/rtl/kernel_cells.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

accel::Cells kernel(const std::string& lines) {
  return rtl::kernel_cells("module fpga_kernel (\n);\n" + lines);
}

/// A module that uses all these.
std::string used(const std::string& wires) {
  return "  fpga_delay #(.WIDTH(8), .DELAY(1)) d0_of (.clk(clk), .in({" + wires +
         "}), .out(d0));\n";
}

TEST(FpgaKernelCells, AChoiceOfTwoIsALutForEachBit) {
  EXPECT_EQ(kernel("  wire [7:0] x = ({8{a}} & b) | ({8{c}} & d);\n" + used("x, x")).lut, 8);
  // Eight data, eight conditions: 16 inputs.
  std::string terms;
  for (int i = 0; i < 8; ++i)
    terms += (i == 0 ? "" : " | ") + std::string("({8{a") + std::to_string(i) + "}} & b" +
             std::to_string(i) + ")";
  EXPECT_EQ(kernel("  wire [7:0] x = " + terms + ";\n" + used("x, x")).lut, 24);
}

TEST(FpgaKernelCells, EqualValuesAreThereOnce) {
  const std::string one = "  wire [7:0] x = ({8{a}} & b);\n  wire [7:0] y = ({8{a}} & b);\n";
  EXPECT_EQ(kernel(one + used("x, y")).lut, 8);
  const std::string two = "  wire [7:0] x = ({8{a}} & b);\n  wire [7:0] y = ({8{a}} & c);\n";
  EXPECT_EQ(kernel(two + used("x, y")).lut, 16);
}

TEST(FpgaKernelCells, AValueUsedOnceIsInTheLutsOfItsUser) {
  const std::string lines = "  wire [7:0] x = ({8{a}} & b);\n  wire [7:0] y = ({8{c}} & x);\n";
  EXPECT_EQ(kernel(lines + used("y, y")).lut, 8);
  EXPECT_EQ(kernel(lines + used("x, y")).lut, 16);
}

TEST(FpgaKernelCells, AConditionOfManyBitsIsDecodedOnce) {
  const std::string lines =
      "  wire [3:0] at;\n"
      "  wire [7:0] x = ({8{(go && at == 4'd3)}} & b);\n"
      "  wire [7:0] y = ({8{(go && at == 4'd3)}} & c);\n";
  EXPECT_EQ(kernel(lines + used("x, y")).lut, 8 + 8 + 1);
}

TEST(FpgaKernelCells, CountsRegistersAndAFlipFlopForEachPlace) {
  const std::string lines =
      "  reg [2:0] p0_at;\n  reg [4:0] p0_l0;\n"
      "        3'd0: if (p0_ready0) p0_at <= 3'd1;\n        3'd1: p0_at <= 3'd2;\n";
  EXPECT_EQ(kernel(lines).ff, 5 + 2 + 1);
}

const accel::SynthesisedModule* module_of(const accel::Synthesis& all, const std::string& name) {
  for (const auto& module : all.modules)
    if (module.name == name) return &module;
  return nullptr;
}

TEST(FpgaCells, CountsModulesOfAMatmul) {
  testing::Matmul shape;  // 2 x 2 products of i8 side by side, tiles of 4x4x4, two slots
  const auto cells = [](const testing::Matmul& s) {
    return predicted_cells(verilog(testing::design_of(s), Numbers::Fixed).text);
  };
  const accel::Synthesis few = cells(shape);
  EXPECT_EQ(few.cells().dsp, 2);     // two products with a common factor share one
  EXPECT_EQ(few.cells().bram18, 0);  // 16 words in a bank are LUTs
  EXPECT_GT(few.cells().lut_ram, 0);
  const auto* control = module_of(few, "fpga_control");
  ASSERT_NE(control, nullptr);
  EXPECT_EQ(control->copies, 1);
  EXPECT_EQ(control->cells.ff, 3 * 64 + 132);  // three arguments
  shape.un = 4;
  const accel::Synthesis more = cells(shape);
  EXPECT_EQ(more.cells().dsp, 4);
  EXPECT_GT(more.cells().lut, few.cells().lut);
  shape.words = 4096;
  EXPECT_GT(cells(shape).cells().bram18, 0);
}

}  // namespace
}  // namespace tilewright::fpga
