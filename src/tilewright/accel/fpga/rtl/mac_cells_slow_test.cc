// Cells of a multiply-accumulate, by Yosys.
#include <gtest/gtest.h>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/fpga/rtl/mac_cells.h"

namespace tilewright::fpga {
namespace {

using accel::CellFamily;

constexpr Number kSum32 = {Number::Kind::Signed, 32};

// An adder of 32 bits takes a LUT for each, a register behind product and sum a flip-flop for each
// of theirs; two products of i8 share a DSP.
TEST(FpgaMacCellsSlow, OfIntegersAreThoseOfProductAndSum) {
  const Number i16 = {Number::Kind::Signed, 16}, i8 = {Number::Kind::Signed, 8};
  const auto one = mac_cells({i16, kSum32, 2, 1, false}, CellFamily::XcUp);
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_EQ(one->dsp, 1);
  EXPECT_EQ(one->lut, 32);
  EXPECT_EQ(one->ff, 32 + 2 * 32);
  const auto two = mac_cells({i8, kSum32, 2, 1, true}, CellFamily::Xc7);
  ASSERT_TRUE(two) << to_string(two.error());
  EXPECT_EQ(two->dsp, 1);
  EXPECT_GE(two->lut, 2 * 32);
  EXPECT_LT(two->lut, 3 * 32);
}

TEST(FpgaMacCellsSlow, AreLintClean) {
  const Number f32 = number_of(DType::F32), i8 = {Number::Kind::Signed, 8};
  for (const MacUnit& unit :
       {MacUnit{number_of(DType::BF16), f32, 3, 9}, MacUnit{i8, kSum32, 2, 1, true}}) {
    const Status status = accel::lint_clean(kMac, mac_verilog(unit));
    EXPECT_TRUE(status) << to_string(status.error());
  }
}

// What widened factors save: digits of 8 by 8 bits are one DSP, of 24 by 24 two.
TEST(FpgaMacCellsFull, OfNarrowFactorsTakeASmallMultiplier) {
  const Number f32 = number_of(DType::F32);
  const auto narrow = mac_cells({number_of(DType::BF16), f32, 3, 9}, CellFamily::Xc7);
  const auto wide = mac_cells({f32, f32, 3, 9}, CellFamily::Xc7);
  ASSERT_TRUE(narrow && wide);
  EXPECT_EQ(narrow->dsp, 1);
  EXPECT_EQ(wide->dsp, 2);
  EXPECT_LT(narrow->lut, 0.8 * static_cast<double>(wide->lut));
}

}  // namespace
}  // namespace tilewright::fpga
