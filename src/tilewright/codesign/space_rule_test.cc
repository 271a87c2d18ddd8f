// Rules of spaces: what they mean, and where they are wrong.
#include "tilewright/codesign/space_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

/// A random rule with every part in parentheses, and its value for kValues.
struct RandomRule {
  std::string text;
  double value;
};
RandomRule random_number(Rng& rng, int depth) {
  if (depth == 0 || rng.chance(0.3)) {
    const RandomRule leaves[] = {{"rows", 12}, {"cols", 5}, {"timing.gap", 3}, {"2.5", 2.5}};
    return leaves[rng.below(std::size(leaves))];
  }
  const RandomRule a = random_number(rng, depth - 1), b = random_number(rng, depth - 1);
  switch (rng.below(5)) {
    case 0:
      return {"(" + a.text + " + " + b.text + ")", a.value + b.value};
    case 1:
      return {"(" + a.text + "-" + b.text + ")", a.value - b.value};
    case 2:
      return {"(" + a.text + " * " + b.text + ")", a.value * b.value};
    case 3:
      return {"(" + a.text + " / " + b.text + ")", a.value / b.value};
    default:
      return {"(-" + a.text + ")", -a.value};
  }
}
RandomRule random_condition(Rng& rng, int depth) {
  if (depth == 0 || rng.chance(0.3)) {
    if (rng.chance(0.2)) return {"unit == gemm", 1};
    const RandomRule a = random_number(rng, depth), b = random_number(rng, depth);
    if (rng.chance(0.5)) return {a.text + " < " + b.text, a.value < b.value ? 1.0 : 0.0};
    return {a.text + " >= " + b.text, a.value >= b.value ? 1.0 : 0.0};
  }
  const RandomRule a = random_condition(rng, depth - 1), b = random_condition(rng, depth - 1);
  switch (rng.below(3)) {
    case 0:
      return {"(" + a.text + ") and (" + b.text + ")", a.value * b.value};
    case 1:
      return {"(" + a.text + ") or (" + b.text + ")", std::max(a.value, b.value)};
    default:
      return {"not (" + a.text + ")", 1 - a.value};
  }
}

TEST(SpaceRule, RandomRulesMeanWhatTheirPartsMean) {
  Rng rng(9);
  for (int n = 0; n < 1000; ++n) {
    const RandomRule wanted = random_condition(rng, 4);
    const auto rule = SpaceRule::parse_condition(wanted.text, test_keys());
    ASSERT_TRUE(rule) << wanted.text << ": " << rule.error().what;
    EXPECT_EQ(rule->evaluate(kValues), wanted.value) << wanted.text;
  }
}

TEST(SpaceRule, AnyTextIsARuleOrRefused) {
  const char* pieces[] = {"rows", "unit", "gemm", "<", "==", "- ", "(", ")", " and ", "not ", "=",
                          "1e5",  "9",    "i8",   "`", "\"", "#",  "%", "/", "\xc3",  "."};
  Rng rng(5);
  int parsed = 0, refused = 0;
  for (int n = 0; n < 2000; ++n) {
    std::string text = random_condition(rng, 3).text;
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
    if (rng.chance(0.5))
      text.erase(at, static_cast<size_t>(1 + rng.below(4)));
    else
      text.insert(at, pieces[rng.below(std::size(pieces))]);
    const auto rule = SpaceRule::parse_condition(text, test_keys());
    if (rule) {
      ++parsed;
      const double value = rule->evaluate(kValues);
      EXPECT_TRUE(value == 0 || value == 1) << text;
    } else {
      ++refused;
      EXPECT_LE(rule.error().offset, text.size());
      EXPECT_FALSE(rule.error().what.empty());
    }
    if (const auto number = SpaceRule::parse_number(text, test_keys())) number->evaluate(kValues);
  }
  EXPECT_GT(parsed, 50);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tilewright::codesign
