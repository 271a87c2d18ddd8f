#include "tilewright/graph/onnx/bounded_ints.h"

#include <gtest/gtest.h>

namespace tilewright::graph {
namespace {

using Known = std::optional<BoundedInts>;

constexpr BoundedInt kManyRows{4096, false, 3};  // an extent with the id 3
BoundedInt exactly(int64_t value) { return {value, true}; }

/// The numbers of a result of `count` elements, from those of vectors.
Known derived(const std::string& op, const std::vector<Known>& inputs, int64_t count,
              std::map<std::string, tensor::AttrValue> attrs = {}) {
  tensor::OpCall call;
  call.op = op;
  call.attrs.values = std::move(attrs);
  for (const Known& input : inputs) {
    tensor::InputInfo info;
    info.dtype = DType::I64;
    info.shape = {static_cast<int64_t>(input ? input->size() : 1)};
    bool exact = input.has_value();
    for (const BoundedInt& number : input.value_or(BoundedInts())) exact = exact && number.exact;
    if (exact) {
      info.value = Array(DType::I64, info.shape);
      for (size_t i = 0; i < input->size(); ++i)
        info.value->set_int(static_cast<int64_t>(i), (*input)[i].most);
    }
    call.inputs.push_back(std::move(info));
  }
  return derived_ints(call, inputs, {count});
}

TEST(BoundedInts, AtMostAThousandOfAnExtent) {
  const BoundedInts shape{kManyRows, exactly(4)};
  EXPECT_EQ(derived("Gather", {shape, BoundedInts{exactly(0)}}, 1), BoundedInts{kManyRows});
  EXPECT_EQ(derived("Gather", {shape, BoundedInts{exactly(-1)}}, 1), BoundedInts{exactly(4)});
  const BoundedInts both{exactly(1000), kManyRows};
  EXPECT_EQ(derived("Concat", {BoundedInts{exactly(1000)}, BoundedInts{kManyRows}}, 2), both);
  EXPECT_EQ(derived("ReduceMin", {both}, 1), (BoundedInts{{1000, false}}));
  EXPECT_EQ(derived("ReduceMax", {both}, 1), (BoundedInts{{4096, false}}));
  EXPECT_EQ(derived("ReduceMin", {BoundedInts{exactly(5000), kManyRows}}, 1),
            BoundedInts{kManyRows})
      << "more than the bound changes nothing";
}

TEST(BoundedInts, ArithmeticKeepsWhatItCan) {
  const auto of = [](const char* op, BoundedInt a, BoundedInt b) {
    return derived(op, {BoundedInts{a}, BoundedInts{b}}, 1);
  };
  EXPECT_EQ(of("Add", kManyRows, exactly(0)), BoundedInts{kManyRows});
  EXPECT_EQ(of("Add", kManyRows, exactly(2)), (BoundedInts{{4098, false}}));
  EXPECT_EQ(of("Mul", exactly(1), kManyRows), BoundedInts{kManyRows});
  EXPECT_EQ(of("Mul", kManyRows, exactly(3)), (BoundedInts{{12288, false}}));
  EXPECT_EQ(of("Mul", exactly(-1), exactly(3)), BoundedInts{exactly(-3)});
  EXPECT_EQ(of("Mul", kManyRows, exactly(-1)), std::nullopt);
  EXPECT_EQ(of("Mul", kManyRows, exactly(INT64_MAX)), std::nullopt);
  EXPECT_EQ(of("Add", exactly(1), exactly(INT64_MAX)), std::nullopt);
  EXPECT_EQ(of("Max", kManyRows, exactly(0)), BoundedInts{kManyRows});
  EXPECT_EQ(of("Div", kManyRows, exactly(3)), (BoundedInts{{1365, false}}));
  EXPECT_EQ(of("Div", kManyRows, exactly(0)), std::nullopt);
  EXPECT_EQ(of("Div", exactly(-3), exactly(2)), std::nullopt);
}

TEST(BoundedInts, NoExtentIsMinusOne) {
  const BoundedInts asked{kManyRows, exactly(-1), exactly(7)}, minus{exactly(-1)};
  const Known open = derived("Equal", {asked, minus}, 3);
  EXPECT_EQ(open, (BoundedInts{exactly(0), exactly(1), exactly(0)}));
  EXPECT_EQ(derived("Where", {open, BoundedInts{exactly(1)}, asked}, 3),
            (BoundedInts{kManyRows, exactly(1), exactly(7)}));
  EXPECT_EQ(derived("Equal", {BoundedInts{kManyRows}, BoundedInts{exactly(7)}}, 1),
            (BoundedInts{{1, false}}))
      << "the run decides";
  EXPECT_EQ(derived("Equal", {BoundedInts{kManyRows}, BoundedInts{exactly(5000)}}, 1),
            BoundedInts{exactly(0)});
}

TEST(BoundedInts, WhatNobodyKnowsIsNotFollowed) {
  EXPECT_EQ(derived("Add", {BoundedInts{kManyRows}, std::nullopt}, 1), std::nullopt);
  EXPECT_EQ(derived("Concat", {std::nullopt, BoundedInts{kManyRows}}, 2), std::nullopt);
  EXPECT_EQ(derived("Relu", {BoundedInts{kManyRows}}, 1), std::nullopt);
  EXPECT_EQ(derived("Cast", {BoundedInts{kManyRows}}, 1, {{"to", int64_t{1}}}), std::nullopt)
      << "f32";
  EXPECT_EQ(derived("Cast", {BoundedInts{kManyRows}}, 1, {{"to", int64_t{7}}}),
            BoundedInts{kManyRows});
}

}  // namespace
}  // namespace tilewright::graph
