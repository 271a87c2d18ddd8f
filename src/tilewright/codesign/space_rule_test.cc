// Rules of spaces: what they mean, and where they are wrong.
#include "tilewright/codesign/space_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "tilewright/base/rng.h"

namespace tilewright::codesign {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<SpaceKey> test_keys() {
  std::vector<SpaceKey> keys(4);
  keys[0].name = "unit";
  keys[0].words = {"dot", "gemm"};
  keys[1].name = "rows";
  keys[2].name = "timing.gap";
  keys[3].name = "cols";
  return keys;
}
// unit = gemm, rows = 12, timing.gap = 3, cols = 5
const Values kValues = {1, 12, 3, 5};

TEST(SpaceRule, ConditionsMeanWhatTheySay) {
  const std::vector<SpaceKey> keys = test_keys();
  for (const char* text : {"rows > cols",
                           "rows >= 12",
                           "rows <= 12",
                           "cols < 6",
                           "rows == 12",
                           "rows != cols",
                           "unit == gemm",
                           "gemm == unit",
                           "unit != dot",
                           "not unit == dot",
                           "not (rows < cols)",
                           "rows < 3 or cols == 5",
                           "rows > 3 and cols == 5",
                           "rows / cols > 2.3 and rows / 5 < 2.5",
                           "rows % 5 == 2",
                           "2 + 3 * 4 == 14",
                           "(2 + 3) * 4 == 20",
                           "20 - 5 - 3 == rows",
                           "48 / 4 / 2 == 6",
                           "-cols == 0 - 5",
                           "--cols == 5",
                           "timing.gap == 3",
                           "1 == 2 or 1 == 1 and 2 == 2",
                           "not 1 == 2 and 2 == 2",
                           "1e1 == 10"}) {
    const auto rule = SpaceRule::parse_condition(text, keys);
    ASSERT_TRUE(rule) << text << ": " << rule.error().what;
    EXPECT_TRUE(rule->holds(kValues)) << text;
    const auto opposite = SpaceRule::parse_condition("not (" + std::string(text) + ")", keys);
    ASSERT_TRUE(opposite) << text;
    EXPECT_FALSE(opposite->holds(kValues)) << text;
  }
  EXPECT_FALSE(SpaceRule::parse_condition("1 == 1 and 1 == 2", keys)->holds(kValues));
  EXPECT_FALSE(SpaceRule::parse_condition("0 / 0 == 0 / 0", keys)->holds(kValues));
}

TEST(SpaceRule, NumbersAreComputed) {
  const auto sum = SpaceRule::parse_number("rows * 2 - cols / 2", test_keys());
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->evaluate(kValues), 21.5);
  EXPECT_THAT(sum->reads(), ElementsAre(1, 3));
}

TEST(SpaceRule, MistakesHaveAPlaceAndAReason) {
  struct Case {
    const char* text;
    size_t offset;
    const char* what;
  };
  for (const Case& c : {Case{"rows <= colls", 8, "there is no key `colls`"},
                        {"rows", 0, "is a comparison"},
                        {"rows = 3", 5, "`=` is no comparison"},
                        {"unit == gem", 8, "`unit` cannot be `gem`"},
                        {"unit < gemm", 5, "have no order"},
                        {"unit == 3", 8, "`unit` is one of dot, gemm"},
                        {"unit + 1 == 2", 0, "`unit` is a word"},
                        {"(rows < 3) + 1 == 2", 0, "a comparison stands"},
                        {"rows and cols", 0, "a number stands"},
                        {"rows < 3 cols", 9, "expected the end"},
                        {"(rows < 3", 9, "expected `)`"},
                        {"rows < ", 7, "expected a number or a key"},
                        {"rows < 3i8", 7, "expected a number or a key"},
                        {"", 0, "expected a number or a key"},
                        {"rows < \x01", 7, "unexpected character"},
                        {"gemm", 0, "is a comparison"},
                        {"unit == unit", 8, "is one of"},
                        {"gemm == dot", 0, "there is no key `gemm`"},
                        {"1 < 2 < 3", 6, "expected the end"}}) {
    const auto rule = SpaceRule::parse_condition(c.text, test_keys());
    ASSERT_FALSE(rule) << c.text;
    EXPECT_THAT(rule.error().what, HasSubstr(c.what)) << c.text;
    EXPECT_EQ(rule.error().offset, c.offset) << c.text;
  }
  EXPECT_EQ(SpaceRule::parse_condition("rows <= colls", test_keys()).error().fix,
            "did you mean 'cols'?");
  EXPECT_THAT(SpaceRule::parse_number("rows < 3", test_keys()).error().what,
              HasSubstr("where a number must be"));
  EXPECT_FALSE(SpaceRule::parse_number("unit", test_keys()));
  EXPECT_FALSE(SpaceRule::parse_number("gemm", test_keys()));
}

TEST(SpaceRule, DeepNestingIsRefused) {
  for (const char* piece : {"(", "-", "not "}) {
    std::string text;
    for (int n = 0; n < 100000; ++n) text += piece;
    const auto rule = SpaceRule::parse_condition(text + "rows", test_keys());
    ASSERT_FALSE(rule);
    EXPECT_THAT(rule.error().what, HasSubstr("nested too deeply"));
  }
}

TEST(SpaceRule, AnyTextIsARuleOrRefused) {
  const char* operands[] = {"rows", "cols", "unit", "gemm", "3", "-", "(", "not"};
  const char* operators[] = {"<", "==", "+", "-", "*", "/", "%", ")", "and", "or"};
  Rng rng(5);
  int parsed = 0;
  for (int n = 0; n < 20000; ++n) {
    std::string text;
    bool operand = true;
    for (int64_t left = 1 + rng.below(9); left > 0; --left, operand = !operand) {
      if (rng.chance(0.1)) operand = !operand;
      text += operand ? operands[rng.below(std::size(operands))]
                      : operators[rng.below(std::size(operators))];
      text += " ";
    }
    const auto rule = SpaceRule::parse_condition(text, test_keys());
    if (rule) {
      ++parsed;
      EXPECT_LE(rule->evaluate(kValues), 1) << text;
    } else {
      EXPECT_LE(rule.error().offset, text.size());
      EXPECT_FALSE(rule.error().what.empty());
    }
  }
  EXPECT_GT(parsed, 50);
}

}  // namespace
}  // namespace tilewright::codesign
