// Random program x random legal trace keeps its meaning, over all steps.
#include <gtest/gtest.h>

#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

constexpr uint64_t kGraphs = 700, kOddPrograms = 700;
/// Every kind of step must have applied this often, or the test says nothing about it.
constexpr int64_t kLeast = 20;

TEST(SchedulePropertySlow, RandomTracesKeepTheMeaning) {
  testing::Tally tally;
  const testing::Source source = testing::operator_graphs();
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    const std::string wrong = testing::check_program(source, seed, 3, 30, tally);
    ASSERT_TRUE(wrong.empty()) << wrong;
  }
  for (size_t i = 0; i < tally.accepted.size(); ++i)
    EXPECT_GE(tally.accepted[i], kLeast) << testing::kind_name(i) << "\n" << testing::report(tally);
}

TEST(SchedulePropertySlow, OddProgramsKeepTheirMeaning) {
  testing::Tally tally;
  const testing::Source source = testing::odd_programs();
  for (uint64_t seed = 1; seed <= kOddPrograms; ++seed) {
    const std::string wrong = testing::check_program(source, seed, 3, 20, tally);
    ASSERT_TRUE(wrong.empty()) << wrong;
  }
}

/// The oracle sees a wrong program: without this the tests above could pass on anything.
TEST(ScheduleProperty, AWrongProgramIsNoticed) {
  const auto right = parse_func(
      "func f(X: f32[6], out Y: f32[6]) {\n  for i in 6 {\n    block Y(i: space 6 = i) {\n"
      "      Y[i] = X[i]\n    }\n  }\n}\n");
  const auto wrong = parse_func(
      "func f(X: f32[6], out Y: f32[6]) {\n  for i in 6 {\n    block Y(i: space 6 = i) {\n"
      "      Y[i] = X[5 - i]\n    }\n  }\n}\n");
  const auto twice = parse_func(
      "func f(X: f32[6], out Y: f32[6]) {\n  for i in 6, j in 2 {\n    block Y(i: space 6 = i) {\n"
      "      Y[i] = X[i]\n    }\n  }\n}\n");
  ASSERT_TRUE(right && wrong && twice);
  EXPECT_EQ(testing::difference(*right, *right, 1), "");
  EXPECT_NE(testing::difference(*right, *wrong, 1), "");
  EXPECT_NE(testing::difference(*right, *twice, 1), "");
}

}  // namespace
}  // namespace tilewright::schedule
