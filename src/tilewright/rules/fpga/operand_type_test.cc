#include "tilewright/rules/fpga/operand_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/tensor/text.h"

namespace tilewright::rules {
namespace {

using ::testing::HasSubstr;

/// A padded convolution with what is computed of it, written for one type.
Func conv(const std::string& operand, const std::string& sum, const std::string& behind = "") {
  std::string text =
      "tensor f(X: T[c, h, w], W: T[k, c, r, s], b: S[k]) where c = 3, h = 5, w = 6, k = 4, r = 3, "
      "s = 3 {\n"
      "  P[i in c, y in h + 2, x in w + 2] = select(y >= 1 && y <= h && x >= 1 && x <= w, X[i, y - "
      "1, x - 1], 0)\n"
      "  C[o in k, y in h, x in w] = sum(i in c, p in r, q in s) S(P[i, y + p, x + q]) * S(W[o, i, "
      "p, q])\n"
      "  Y[o in k, y in h, x in w] = " +
      (behind.empty() ? "select(C[o, y, x] < b[o], -C[o, y, x], max(C[o, y, x] + b[o], 2))"
                      : behind) +
      "\n  return Y\n}\n";
  for (const auto& [from, to] :
       {std::pair{std::string("T["), operand + "["}, std::pair{std::string("S["), sum + "["},
        std::pair{std::string("S("), sum + "("}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      if (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1])))
        text.replace(at, from.size(), to);
      else
        at += 1 - to.size() + from.size();
  const auto func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error()) << text;
  return *func;
}

/// The results of both on the same small whole numbers.
std::string difference(const Func& a, const Func& b) {
  const interp::Arguments arguments = lower::testing::arguments_of(a, 5);
  interp::Arguments other = lower::testing::arguments_of(b, 5);
  const auto x = interp::run(a, arguments), y = interp::run(b, other);
  if (!x || !y) return to_string(x ? y.error() : x.error());
  return lower::testing::difference(*x, *y, 0);
}

TEST(OperandType, MeansTheProgramWrittenForIt) {
  const std::pair<const char*, const char*> types[] = {
      {"i8", "i32"}, {"i16", "i32"}, {"bf16", "f32"}, {"f16", "f32"}, {"f32", "f32"}};
  for (const auto& [from, from_sum] : types)
    for (const auto& [operand, sum] : types) {
      const auto made = with_operands(conv(from, from_sum), *parse_dtype(operand));
      ASSERT_TRUE(made) << to_string(made.error());
      const Func wanted = conv(operand, sum);
      for (size_t i = 0; i < wanted.params.size(); ++i)
        EXPECT_EQ(made->params[i].buffer.dtype(), wanted.params[i].buffer.dtype())
            << from << operand;
      EXPECT_EQ(difference(*made, wanted), "") << from << " to " << operand << print(*made);
    }
}

TEST(OperandType, TheSameTypeIsTheSameProgram) {
  const Func func = conv("i8", "i32");
  EXPECT_TRUE(equal(with_operands(func, DType::I8).value(), func));
  EXPECT_EQ(with_operands(func, DType::F32)->name, "f_f32");
}

TEST(OperandType, WhatATypeLacksIsRefused) {
  const auto refused = [](const Func& func, DType dtype) {
    const auto made = with_operands(func, dtype);
    return made ? "" : to_string(made.error());
  };
  EXPECT_THAT(refused(conv("f32", "f32", "C[o, y, x] * 0.5"), DType::I8),
              HasSubstr("`0.5` cannot be computed in i32"));
  EXPECT_THAT(refused(conv("f32", "f32", "exp(C[o, y, x])"), DType::I16), HasSubstr("exp"));
  EXPECT_EQ(refused(conv("f32", "f32", "exp(C[o, y, x])"), DType::BF16), "");
  EXPECT_THAT(refused(conv("i8", "i32", "C[o, y, x] >> 3"), DType::F32), HasSubstr(">>"));
  EXPECT_THAT(
      refused(*parse_func("func f(X: f32[8], out Y: f32[8]) { for i in 8 { block Y(a: space "
                          "8 = i) { Y[a] = X[a] * 2.0 } } }"),
              DType::I8),
      HasSubstr("'f' has 0 sums of products, not one"));
}

}  // namespace
}  // namespace tilewright::rules
