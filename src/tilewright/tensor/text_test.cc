#include "tilewright/tensor/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::array_of;
using testing::expect_close;
using testing::filled;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::value_at;
using testing::value_or;

std::map<std::string, Array> run_text(const std::string& text,
                                      const std::map<std::string, Array>& inputs,
                                      const std::map<std::string, int64_t>& sizes = {}) {
  const auto func = parse_tensor_file(text, sizes);
  if (!func) {
    ADD_FAILURE() << to_string(func.error());
    return {};
  }
  const Status ok = verify(*func, Stage::Tensor);
  EXPECT_TRUE(ok) << print(*func);
  interp::Arguments arguments;
  arguments.arrays = inputs;
  interp::Options options;
  options.check = true;
  const auto outcome = interp::run(*func, arguments, options);
  if (!outcome) {
    ADD_FAILURE() << to_string(outcome.error());
    return {};
  }
  EXPECT_TRUE(outcome->findings.empty());
  return outcome->outputs;
}

std::string text_error(const std::string& text) {
  const auto func = parse_tensor_file(text);
  return func ? "accepted" : to_string(func.error());
}

constexpr const char* kGemm = R"(# matrix product, then ReLU
tensor gemm(A: f32[m, k], const B: f32[k, n]) where m = 4, n = 3, k = m + 1 {
  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  D[i in m, j in n] = max(C[i, j], 0)
  return D
})";

TEST(TensorText, MatrixProduct) {
  const Array a = random_array(DType::F32, {4, 5}, 1), b = random_array(DType::F32, {5, 3}, 2);
  const auto want = [](const Array& x, const Array& y, int64_t k) {
    return filled(DType::F32, {x.shape()[0], y.shape()[1]}, [&](const Ints& at) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += value_at(x, {at[0], l}) * value_at(y, {l, at[1]});
      return std::max(sum, 0.0);
    });
  };
  expect_close(run_text(kGemm, {{"A", a}, {"B", b}}).at("D"), want(a, b, 5));
  // A size given from outside replaces the file's; sizes that follow from others do so too.
  const Array c = random_array(DType::F32, {2, 3}, 3), d = random_array(DType::F32, {3, 3}, 4);
  expect_close(run_text(kGemm, {{"A", c}, {"B", d}}, {{"m", 2}}).at("D"), want(c, d, 3));
  const auto func = parse_tensor_file(kGemm);
  ASSERT_TRUE(func);
  EXPECT_EQ(func->params[1].mode, ParamMode::Const);
  EXPECT_EQ(func->name, "gemm");
}

TEST(TensorText, PaddedConvolutionNeedsASelect) {
  const Array x = random_array(DType::F32, {2, 6}, 1), w = random_array(DType::F32, {3, 2, 3}, 2);
  const auto got = run_text(R"(
    tensor conv(X: f32[c, n], W: f32[k, c, 3]) where c = 2, n = 6, k = 3 {
      P[i in c, x in n + 2] = select(x >= 1 && x < n + 1, X[i, x - 1], 0)
      Y[o in k, x in n] = sum(i in c, s in 3) P[i, x + s] * W[o, i, s]
      return Y
    })",
                            {{"X", x}, {"W", w}});
  expect_close(got.at("Y"), filled(DType::F32, {3, 6}, [&](const Ints& at) {
                 double sum = 0;
                 for (int64_t c = 0; c < 2; ++c)
                   for (int64_t s = 0; s < 3; ++s)
                     sum += value_or(x, {c, at[1] + s - 1}, 0) * value_at(w, {at[0], c, s});
                 return sum;
               }));
}

TEST(TensorText, SoftmaxWithSeveralReductionsAndOutputs) {
  const Array x = random_array(DType::F32, {2, 3}, 1);
  const auto got = run_text(R"(
    tensor softmax(X: f32[2, 3]) {
      M[i in 2] = max(j in 3) X[i, j]
      L[i in 2] = min(j in 3) X[i, j]
      Q[i in 2] = prod(j in 3) X[i, j]
      E[i in 2, j in 3] = exp(X[i, j] - M[i])
      S[i in 2] = sum(j in 3) E[i, j]
      Y[i in 2, j in 3] = E[i, j] / S[i]
      return Y, L, Q
    })",
                            {{"X", x}});
  const auto row = [&](const Ints& at, int64_t j) { return value_at(x, {at[0], j}); };
  expect_close(got.at("Y"),
               filled(DType::F32, {2, 3},
                      [&](const Ints& at) {
                        double sum = 0;
                        for (int64_t j = 0; j < 3; ++j) sum += std::exp(row(at, j));
                        return std::exp(value_at(x, at)) / sum;
                      }),
               1e-6);
  expect_close(got.at("L"), filled(DType::F32, {2}, [&](const Ints& at) {
                 return std::min({row(at, 0), row(at, 1), row(at, 2)});
               }));
  expect_close(got.at("Q"), filled(DType::F32, {2}, [&](const Ints& at) {
                 return row(at, 0) * row(at, 1) * row(at, 2);
               }));
}

TEST(TensorText, TypesLiteralsAndOperators) {
  const Array a = array_of(DType::I8, {3}, {100, -7, 3});
  const auto got = run_text(R"(
    tensor types(A: i8[3]) where n = 3 {
      wide[i in n] = i32(A[i]) * 1000 + n
      half[i in n] = f16(A[i]) / 2
      odd[i in n] = A[i] % 2 == 1 && !(A[i] > 50)
      bits[i in n] = (A[i] & 3 | 8) << 1
      below[i in n] = A[i] / 2
      index[i in n] = i * 2 - 1
      one[] = 0.5 + 1
      most[i in n] = select(odd[i], max(i32(A[i]), 1, 2), -n)
      root[i in n] = sqrt(abs(f64(A[i]))) + f64(one)
      return wide, half, odd, bits, below, index, one, most, root
    })",
                            {{"A", a}});
  expect_close(got.at("wide"), array_of(DType::I32, {3}, {100003, -6997, 3003}));
  expect_close(got.at("half"), array_of(DType::F16, {3}, {50, -3.5, 1.5}));
  expect_close(got.at("odd"), array_of(DType::Bool, {3}, {0, 1, 1}));
  expect_close(got.at("bits"), array_of(DType::I8, {3}, {16, 18, 22}));
  expect_close(got.at("below"), array_of(DType::I8, {3}, {50, -4, 1}));
  expect_close(got.at("index"), array_of(DType::I64, {3}, {-1, 1, 3}));
  expect_close(got.at("one"), array_of(DType::F32, {}, {1.5}));
  expect_close(got.at("root"),
               array_of(DType::F64, {3}, {11.5, std::sqrt(7) + 1.5, std::sqrt(3) + 1.5}), 1e-12);
  expect_close(got.at("most"), array_of(DType::I32, {3}, {-3, 2, 3}));
}

TEST(TensorText, ReadsMustStayInside) {
  const auto read = [](const std::string& value) {
    return text_error("tensor t(A: f32[8], I: i32[8]) {\n  B[i in 8] = " + value +
                      "\n  return B\n}");
  };
  EXPECT_EQ(read("A[7 - i]"), "accepted");
  EXPECT_EQ(read("A[(i * 3) % 8]"), "accepted");
  EXPECT_EQ(read("select(i < 7, A[i + 1], 0)"), "accepted");
  EXPECT_EQ(read("select(i == 7, 0, A[min(i + 1, 7)])"), "accepted");
  EXPECT_EQ(read("A[max(0, min(I[i], 7))]"), "accepted");
  EXPECT_THAT(read("A[i + 1]"), HasSubstr("axis 0 has extent 8, the index runs from 1 to 8"));
  EXPECT_THAT(read("A[i + 1]"), HasSubstr("2:15"));
  EXPECT_THAT(read("A[i - 1]"), HasSubstr("from -1 to 6"));
  EXPECT_THAT(read("select(i < 7, A[i + 2], 0)"), HasSubstr("may be read outside"));
  EXPECT_THAT(read("select(A[i + 1] > 0, 1.0, 2.0)"), HasSubstr("may be read outside"));
  EXPECT_THAT(read("A[I[i]]"), HasSubstr("may be read outside"));
}

TEST(TensorText, IrTextIsAccepted) {
  const auto func = parse_tensor_file(
      "func f(A: f32[2], out B: f32[2]) {\n"
      "  for B.i in 2 { block B(i: space 2 = B.i) { B[i] = A[i] } }\n}\n");
  ASSERT_TRUE(func) << to_string(func.error());
  EXPECT_EQ(func->name, "f");
  EXPECT_FALSE(parse_tensor_file("func f(", {}));
  EXPECT_THAT(to_string(parse_tensor_file("func f() {}", {{"n", 1}}).error()),
              HasSubstr("no sizes"));
}

struct BadText {
  const char* text;
  const char* place;
  const char* what;
};

TEST(TensorText, ErrorsNameThePlace) {
  const BadText cases[] = {
      {"", "1:1", "expected `tensor`"},
      {"tensor t(A f32[2]) { return A }", "1:12", "expected `:`"},
      {"tensor t(A: f31[2]) { return A }", "1:13", "expected an element type"},
      {"tensor t(A: f32[n]) { return A }", "1:17", "unknown name `n`"},
      {"tensor t(A: f32[0]) { return A }", "1:17", "an extent is 0"},
      {"tensor t(A: f32[1 << 2]) { return A }", "1:17", "must be an integer known here"},
      {"tensor t(A: f32[99999999, 99999999]) { return A }", "1:17", "too large"},
      {"tensor t(A: f32[2], A: f32[2]) { return A }", "1:28", "defined twice"},
      {"tensor t(A: f32[2]", "1:19", "expected `)`"},
      {"tensor t(A: f32[2", "1:18", "expected `]`"},
      {"tensor t(A: f32[2]) where n = 9223372036854775807 * 2 { return A }", "1:51", "64 bits"},
      {"tensor t(A: f32[2]) where n = 1 / 0 { return A }", "1:33", "division by zero"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[i\n  return B }", "3:3", "expected `]`"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[i, 0]\n  return B }", "2:15", "has 1 axes, 2"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A\n  return B }", "3:3", "to index `A`"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[j]\n  return B }", "2:17", "unknown name `j`"},
      {"tensor t(A: f32[2]) {\n  B[i in 2, i in 2] = A[i]\n  return B }", "2:13", "named twice"},
      {"tensor t(A: f32[2]) {\n  A[i in 2] = A[i]\n  return A }", "2:3", "defined twice"},
      {"tensor t(A: f32[2]) {\n  exp[i in 2] = A[i]\n  return exp }", "2:3",
       "word of the language"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[i] + i\n  return B }", "2:20", "f32 and i64"},
      {"tensor t(A: i8[2]) {\n  B[i in 2] = A[i] + 300\n  return B }", "2:20",
       "the literal 300 is no i8"},
      {"tensor t(A: i8[2]) {\n  B[i in 2] = A[i] * 0.5\n  return B }", "2:20",
       "the literal 0.5 is no i8"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[i] && A[i]\n  return B }", "2:20", "needs bool"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[i] & 1\n  return B }", "2:20", "needs integers"},
      {"tensor t(A: i8[2]) {\n  B[i in 2] = exp(A[i])\n  return B }", "2:15",
       "needs a floating-point number, not i8"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = expp(A[i])\n  return B }", "2:15",
       "unknown function `expp`"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = select(A[i], 1, 2)\n  return B }", "2:15", "not bool"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = pow(A[i])\n  return B }", "2:15", "takes 2 arguments"},
      {"tensor t(A: f32[2]) {\n  B[] = 1 + sum(i in 2) A[i]\n  return B }", "2:13",
       "a whole right-hand side"},
      {"tensor t(A: f32[2]) {\n  B[] = sun(i in 2) A[i]\n  return B }", "2:9",
       "unknown reduction `sun`"},
      {"tensor t(A: f32[2]) {\n  B[] = sum(i in 2) A[i] > 0\n  return B }", "2:21",
       "needs numbers, not bool"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = 1 < i < 2\n  return B }", "2:21", "do not chain"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = 1.5f\n  return B }", "2:15", "suffix `f`"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = A[A[i]]\n  return B }", "2:17", "not an integer"},
      {"tensor t(A: f32[2]) { return C }", "1:30", "unknown tensor `C`"},
      {"tensor t(A: f32[2]) { return A } x", "1:34", "behind the program"},
      {"tensor t(A: f32[2]) {\n  B[i in 2] = \x01\n  return B }", "2:15", ""},
  };
  for (const BadText& c : cases) {
    const auto func = parse_tensor_file(c.text);
    ASSERT_FALSE(func) << c.text;
    EXPECT_EQ(func.error().kind, ErrorKind::Parse) << c.text;
    EXPECT_THAT(to_string(func.error()), HasSubstr(c.what)) << c.text;
    EXPECT_EQ(func.error().place, c.place) << c.text;
    EXPECT_THAT(func.error().why, HasSubstr("^")) << c.text;
  }
  const auto wrong_size = parse_tensor_file(kGemm, {{"q", 1}});
  ASSERT_FALSE(wrong_size);
  EXPECT_THAT(to_string(wrong_size.error()), HasSubstr("gemm has no size named q"));
}

TEST(TensorText, HostileTextEndsInAnError) {
  const auto program = [](const std::string& value) {
    return "tensor t(A: f32[2]) { B[i in 2] = " + value + " return B }";
  };
  std::string chain = "A[i]";
  for (int i = 0; i < 5000; ++i) chain += " + A[i]";
  EXPECT_THAT(text_error(program(std::string(100000, '(') + "1")), HasSubstr("deeper"));
  EXPECT_THAT(text_error(program(std::string(100000, '-') + "1")), HasSubstr("deeper"));
  EXPECT_THAT(text_error(program(chain)), HasSubstr("more than 1500 operators"));
  // Every prefix of a good program is refused without a crash.
  const std::string good = kGemm;
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_tensor_file(good.substr(0, length))) << length;
}

}  // namespace
}  // namespace tilewright::tensor
