// Designs that were made from programs: the Verilog gives the values and the cycles of the
// simulator.
#include <gtest/gtest.h>

#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/codegen/fpga/testing/run_design.h"
#include "tilewright/schedule/testing/fpga_traces.h"

namespace tilewright::codegen {
namespace {

void expect_verilog_equal(const Func& func) {
  const interp::Arguments arguments = lower::testing::arguments_of(func, 7);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected);
  const auto design = testing::design_for(func);
  ASSERT_TRUE(design) << to_string(design.error());
  std::vector<std::string> simulated = testing::bytes_of(func, arguments), verilated = simulated;
  const auto cycles = fpga::simulate(*design, {}, simulated);
  ASSERT_TRUE(cycles) << to_string(cycles.error());
  EXPECT_EQ(testing::difference(func, *expected, simulated), "");
  const auto model = make_rtl(*design, fpga::Numbers::Fixed);
  ASSERT_TRUE(model) << to_string(model.error());
  const auto ran = (*model)->run(*design, {}, verilated);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(verilated, simulated);
  EXPECT_EQ(ran->cycles, cycles->cycles);
}

TEST(DesignOfRtl, AConvolution) {
  expect_verilog_equal(schedule::testing::scheduled(schedule::testing::kFpgaConv,
                                                    schedule::testing::conv_trace({})));
}

TEST(DesignOfRtl, AProduct) {
  expect_verilog_equal(schedule::testing::scheduled(schedule::testing::kFpgaProduct,
                                                    schedule::testing::product_trace({})));
}

}  // namespace
}  // namespace tilewright::codegen
