#include "tilewright/graph/onnx/numbers.h"

#include <gtest/gtest.h>

namespace tilewright::graph {
namespace {

using Known = std::optional<Numbers>;

constexpr Number kManyRows{4096, false, 3};  // an extent with the id 3
Number exactly(int64_t value) { return {value, true}; }

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
    for (const Number& number : input.value_or(Numbers())) exact = exact && number.exact;
    if (exact) {
      info.value = Array(DType::I64, info.shape);
      for (size_t i = 0; i < input->size(); ++i)
        info.value->set_int(static_cast<int64_t>(i), (*input)[i].most);
    }
    call.inputs.push_back(std::move(info));
  }
  return derived_numbers(call, inputs, {count});
}

TEST(Numbers, AtMostAThousandOfAnExtent) {
  const Numbers shape{kManyRows, exactly(4)};
  EXPECT_EQ(derived("Gather", {shape, Numbers{exactly(0)}}, 1), Numbers{kManyRows});
  EXPECT_EQ(derived("Gather", {shape, Numbers{exactly(-1)}}, 1), Numbers{exactly(4)});
  const Numbers both{exactly(1000), kManyRows};
  EXPECT_EQ(derived("Concat", {Numbers{exactly(1000)}, Numbers{kManyRows}}, 2), both);
  EXPECT_EQ(derived("ReduceMin", {both}, 1), (Numbers{{1000, false}}));
  EXPECT_EQ(derived("ReduceMax", {both}, 1), (Numbers{{4096, false}}));
  EXPECT_EQ(derived("ReduceMin", {Numbers{exactly(5000), kManyRows}}, 1), Numbers{kManyRows})
      << "more than the bound changes nothing";
}

TEST(Numbers, ArithmeticKeepsWhatItCan) {
  const auto of = [](const char* op, Number a, Number b) {
    return derived(op, {Numbers{a}, Numbers{b}}, 1);
  };
  EXPECT_EQ(of("Add", kManyRows, exactly(0)), Numbers{kManyRows});
  EXPECT_EQ(of("Add", kManyRows, exactly(2)), (Numbers{{4098, false}}));
  EXPECT_EQ(of("Mul", exactly(1), kManyRows), Numbers{kManyRows});
  EXPECT_EQ(of("Mul", kManyRows, exactly(3)), (Numbers{{12288, false}}));
  EXPECT_EQ(of("Mul", exactly(-1), exactly(3)), Numbers{exactly(-3)});
  EXPECT_EQ(of("Mul", kManyRows, exactly(-1)), std::nullopt);
  EXPECT_EQ(of("Mul", kManyRows, exactly(INT64_MAX)), std::nullopt);
  EXPECT_EQ(of("Add", exactly(1), exactly(INT64_MAX)), std::nullopt);
  EXPECT_EQ(of("Max", kManyRows, exactly(0)), Numbers{kManyRows});
  EXPECT_EQ(of("Div", kManyRows, exactly(3)), (Numbers{{1365, false}}));
  EXPECT_EQ(of("Div", kManyRows, exactly(0)), std::nullopt);
  EXPECT_EQ(of("Div", exactly(-3), exactly(2)), std::nullopt);
}

TEST(Numbers, NoExtentIsMinusOne) {
  const Numbers asked{kManyRows, exactly(-1), exactly(7)}, minus{exactly(-1)};
  const Known open = derived("Equal", {asked, minus}, 3);
  EXPECT_EQ(open, (Numbers{exactly(0), exactly(1), exactly(0)}));
  EXPECT_EQ(derived("Where", {open, Numbers{exactly(1)}, asked}, 3),
            (Numbers{kManyRows, exactly(1), exactly(7)}));
  EXPECT_EQ(derived("Equal", {Numbers{kManyRows}, Numbers{exactly(7)}}, 1), (Numbers{{1, false}}))
      << "the run decides";
  EXPECT_EQ(derived("Equal", {Numbers{kManyRows}, Numbers{exactly(5000)}}, 1), Numbers{exactly(0)});
}

TEST(Numbers, WhatNobodyKnowsIsNotFollowed) {
  EXPECT_EQ(derived("Add", {Numbers{kManyRows}, std::nullopt}, 1), std::nullopt);
  EXPECT_EQ(derived("Concat", {std::nullopt, Numbers{kManyRows}}, 2), std::nullopt);
  EXPECT_EQ(derived("Relu", {Numbers{kManyRows}}, 1), std::nullopt);
  EXPECT_EQ(derived("Cast", {Numbers{kManyRows}}, 1, {{"to", int64_t{1}}}), std::nullopt) << "f32";
  EXPECT_EQ(derived("Cast", {Numbers{kManyRows}}, 1, {{"to", int64_t{7}}}), Numbers{kManyRows});
}

}  // namespace
}  // namespace tilewright::graph
