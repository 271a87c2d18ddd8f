#include "tilewright/arith/exhaust.h"

#include <gtest/gtest.h>

#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

class Exhaust : public ::testing::Test {
 protected:
  Exhaust() {
    bounds_.bind(o_, int_imm(9)), bounds_.bind(v_, int_imm(8)), bounds_.bind(k_, int_imm(1 << 20));
  }
  Expr parsed(const std::string& text) const { return *parse_expr(text, {o_, v_, k_}); }
  bool counts(const std::string& text) const { return counts_up(parsed(text), v_, bounds_); }
  bool multiple(const std::string& text, int64_t n) const {
    return is_multiple(parsed(text), n, bounds_);
  }

  Var o_{"o"}, v_{"v"}, k_{"k"};
  Bounds bounds_;
};

TEST_F(Exhaust, DigitsOfASumPutTogetherAgain) {
  EXPECT_TRUE(counts("k * 72 + (8 * o + v) / 9 * 9 + (8 * o + v) / 3 % 3 * 3 + (8 * o + v) % 3"));
  EXPECT_FALSE(counts("k * 72 + (8 * o + v) / 9 * 10 + (8 * o + v) / 3 % 3 * 3 + (8 * o + v) % 3"));
  EXPECT_FALSE(counts("(8 * o + v) % 9"));
  EXPECT_TRUE(counts("k * 3 + v"));
  EXPECT_FALSE(counts("k * 3 + v * 2"));
  EXPECT_FALSE(counts("k * 3"));
}

TEST_F(Exhaust, TooManyValuesAreNotTried) {
  EXPECT_TRUE(multiple("(o + v) / 2 * 2", 2));
  EXPECT_FALSE(multiple("(k + v) / 2 * 2", 2));
}

TEST_F(Exhaust, Multiples) {
  EXPECT_TRUE(multiple("k * 16 + (8 * o) / 9 * 9 + (8 * o) % 9", 8));
  EXPECT_FALSE(multiple("k * 16 + (8 * o) / 9 * 9 + (8 * o) % 9", 16));
  EXPECT_FALSE(multiple("k * 4 + (8 * o) / 9 * 9 + (8 * o) % 9", 8));
  EXPECT_FALSE(multiple("k * 8 + 4", 8));
}

}  // namespace
}  // namespace tilewright::arith
