#include "tilewright/codegen/llvm/lane_steps.h"

#include <gtest/gtest.h>

#include "tilewright/arith/affine.h"

namespace tilewright::codegen {
namespace {

// What an index is worth for each lane, by numbers in the place of its variables.
TEST(LaneSteps, AreWhatTheIndexSays) {
  const Var i("i"), lane("lane");
  for (const int64_t by : {1, 2, 3, 7, 16, 28})
    for (const int64_t step : {1, 2, 3})
      for (const int64_t constant : {-5, 0, 1, 40})
        for (const int64_t base : {0, 8})
          for (const BinaryOp op : {BinaryOp::Div, BinaryOp::Mod}) {
            const Expr e = binary(op, ref(i) * (3 * by) + ref(lane) * step + constant, int_imm(by));
            const auto found = lane_steps(e, lane, base, 8);
            ASSERT_TRUE(found);
            for (int64_t l = 0; l < 8; ++l) {
              const int64_t at = 5 * 3 * by + step * (base + l) + constant;
              const int64_t want =
                  op == BinaryOp::Div ? arith::floor_div(at, by) : arith::floor_mod(at, by);
              const Expr shared = substitute(found->shared, {{i, int_imm(5)}});
              EXPECT_EQ(arith::as_affine(shared).constant + found->steps[static_cast<size_t>(l)],
                        want);
            }
          }
}

TEST(LaneSteps, OfTheLaneItself) {
  const Var lane("lane");
  const auto found = lane_steps(ref(lane), lane, 8, 3);
  ASSERT_TRUE(found);
  EXPECT_EQ(as_int(found->shared), int64_t{0});
  EXPECT_EQ(found->steps, (std::vector<int64_t>{8, 9, 10}));
}

TEST(LaneSteps, NotWhereLanesShareWhatIsNoMultiple) {
  const Var i("i"), lane("lane");
  EXPECT_FALSE(lane_steps((ref(i) * 3 + ref(lane)) / 2, lane, 0, 8));
  EXPECT_FALSE(lane_steps((ref(lane) / 3 + ref(lane)) / 2, lane, 0, 8));
  EXPECT_FALSE(lane_steps(ref(lane) / ref(i), lane, 0, 8));
  EXPECT_FALSE(lane_steps(ref(lane) * 2, lane, 0, 8));
}

}  // namespace
}  // namespace tilewright::codegen
