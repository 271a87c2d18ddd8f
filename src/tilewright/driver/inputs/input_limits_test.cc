#include "tilewright/driver/inputs/input_limits.h"

#include <gtest/gtest.h>

#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/graph/ir/builder.h"

namespace tilewright::driver {
namespace {

using graph::ValueId;

std::map<std::string, InputLimits> limits_of(graph::Builder& b) {
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return graph ? input_limits(*graph) : std::map<std::string, InputLimits>{};
}

void expect_limits(const std::map<std::string, InputLimits>& all, const std::string& name,
                   int64_t low, int64_t high) {
  ASSERT_TRUE(all.contains(name)) << name;
  EXPECT_EQ(all.at(name).low, low) << name;
  EXPECT_EQ(all.at(name).high, high) << name;
}

TEST(InputLimits, IndicesStayInsideTheirAxis) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {5, 7, 3});
  b.output(b.node("Gather", {x, b.input("rows", DType::I64, {4})}, {{"axis", int64_t{1}}}));
  b.output(b.node("GatherElements", {x, b.input("each", DType::I64, {5, 7, 2})},
                  {{"axis", int64_t{-1}}}));
  b.output(b.node("GatherND", {x, b.input("tuples", DType::I64, {6, 2})}));
  const auto limits = limits_of(b);
  EXPECT_FALSE(limits.contains("x"));
  expect_limits(limits, "rows", 0, 6);
  expect_limits(limits, "each", 0, 2);
  expect_limits(limits, "tuples", 0, 4);
}

TEST(InputLimits, AreFollowedThroughCastsViewsAndShifts) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {8, 2});
  ValueId rows = b.input("rows", DType::F32, {2, 3});
  rows = b.node("Cast", {rows}, {{"to", int64_t{7}}});
  rows = b.node("Sub", {rows, b.constant("one", Array::scalar(DType::I64, 1))});
  rows = b.node("Reshape", {rows, b.ints({6})});
  b.output(b.node("Gather", {x, rows}));
  expect_limits(limits_of(b), "rows", 1, 8);
}

TEST(InputLimits, LengthsAreFromOneToTheNumberOfSteps) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {3, 2, 4});
  const ValueId lengths = b.input("lengths", DType::I32, {2});
  b.output(b.node(
      "RNN",
      {x, b.input("w", DType::F32, {1, 5, 4}), b.input("r", DType::F32, {1, 5, 5}), -1, lengths},
      {{"hidden_size", int64_t{5}}}));
  expect_limits(limits_of(b), "lengths", 1, 3);
}

TEST(InputLimits, NothingIsReversedWhereThereAreNoSteps) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::F32, {0, 2});
  b.output(b.node("ReverseSequence", {x, b.input("lengths", DType::I64, {2})}));
  expect_limits(limits_of(b), "lengths", 0, 0);
}

TEST(InputLimits, TheNarrowestUseCounts) {
  graph::Builder b("net");
  const ValueId rows = b.input("rows", DType::I64, {4});
  b.output(b.node("Gather", {b.input("small", DType::F32, {3}), rows}));
  b.output(b.node("Gather", {b.input("large", DType::F32, {30}), rows}));
  expect_limits(limits_of(b), "rows", 0, 2);
}

TEST(InputLimits, WholeNumbersAreNotDividedByZero) {
  graph::Builder b("net");
  const ValueId x = b.input("x", DType::I32, {4}), y = b.input("y", DType::I32, {4});
  b.output(b.node("Div", {x, y}));
  const auto limits = limits_of(b);
  EXPECT_FALSE(limits.contains("x"));
  expect_limits(limits, "y", 1, 9);
}

TEST(InputLimits, MadeUpInputsKeepThem) {
  for (const DType dtype : {DType::I64, DType::I32, DType::F32}) {
    const auto inputs = make_inputs({{"lengths", dtype, {200}, InputLimits{1, 3}}}, {}, 7);
    ASSERT_TRUE(inputs) << to_string(inputs.error());
    std::map<double, int> seen;
    for (int64_t i = 0; i < 200; ++i) ++seen[inputs->at("lengths").get(i)];
    EXPECT_EQ(seen.size(), 3u);
    EXPECT_TRUE(seen.contains(1) && seen.contains(2) && seen.contains(3));
  }
}

}  // namespace
}  // namespace tilewright::driver
