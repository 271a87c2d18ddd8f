#include "tilewright/driver/verify/compare_outputs.h"

#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

Array number(double value) { return Array::scalar(DType::F32, value); }

TEST(CompareOutputs, AnOutputThatTheReferenceLacksIsAProblem) {
  const std::vector<Row> rows =
      compare_outputs("m", "ort", {{"r", number(1)}}, {{"y", number(1)}}, {.required = {"r", "y"}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].output, "r");
  EXPECT_EQ(rows[0].difference.problem, "ort has no such output");
  EXPECT_EQ(rows[1].output, "y");
  EXPECT_EQ(rows[1].difference.problem, "the compiled model has no such output");
}

TEST(CompareOutputs, ValuesInsideTheModelMayBeMissing) {
  const std::vector<Row> rows =
      compare_outputs("m", "ort", {{"y", number(1)}, {"inside", number(3)}}, {{"y", number(1)}},
                      {.required = {"y"}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].difference.ok());
}

TEST(CompareOutputs, StopsAtTheFirstThatIsOffIfAsked) {
  const Named actual = {{"a", number(1)}, {"b", number(1)}, {"c", number(1)}};
  const Named reference = {{"a", number(1)}, {"b", number(2)}, {"c", number(2)}};
  EXPECT_EQ(compare_outputs("m", "interp", actual, reference, {}).size(), 3u);
  const std::vector<Row> rows =
      compare_outputs("m", "interp", actual, reference, {.first_only = true});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[1].difference.ok());
}

TEST(CompareOutputs, LimitsAreThoseOfTheOutput) {
  const Named actual = {{"y", number(1)}}, reference = {{"y", number(1.5)}};
  EXPECT_FALSE(compare_outputs("m", "ort", actual, reference, {})[0].difference.ok());
  EXPECT_TRUE(compare_outputs("m", "ort", actual, reference, {.limits = {{"y", {0.5, 0}}}})[0]
                  .difference.ok());
}

}  // namespace
}  // namespace tilewright::driver
