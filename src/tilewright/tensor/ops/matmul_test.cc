#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::call_of;
using testing::error_of;
using testing::expect_close;
using testing::filled;
using ::testing::HasSubstr;
using testing::Ints;
using testing::random_array;
using testing::run_op;
using testing::value_at;

TEST(Gemm, TransposesScalesAndAdds) {
  int seed = 0;
  for (const DType dtype : {DType::F32, DType::F16, DType::I32}) {
    for (const int64_t ta : {0, 1}) {
      for (const int64_t tb : {0, 1}) {
        for (const Shape& bias : {Shape{}, Shape{3}, Shape{2, 1}, Shape{2, 3}, Shape{1, 1}}) {
          const Array a = random_array(dtype, ta ? Shape{5, 2} : Shape{2, 5}, ++seed);
          const Array b = random_array(dtype, tb ? Shape{3, 5} : Shape{5, 3}, ++seed);
          const Array c = random_array(dtype, bias, ++seed);
          const Array want = filled(dtype, {2, 3}, [&](const Ints& at) {
            double sum = 0;
            for (int64_t k = 0; k < 5; ++k)
              sum += value_at(a, ta ? Ints{k, at[0]} : Ints{at[0], k}) *
                     value_at(b, tb ? Ints{at[1], k} : Ints{k, at[1]});
            Ints from;
            if (bias.size() == 2) from.push_back(bias[0] == 1 ? 0 : at[0]);
            if (!bias.empty()) from.push_back(bias.back() == 1 ? 0 : at[1]);
            return 2 * sum - 3 * value_at(c, from);
          });
          expect_close(run_op("Gemm", {a, b, c},
                              {{"transA", ta}, {"transB", tb}, {"alpha", 2.0}, {"beta", -3.0}})[0],
                       want, 0, to_string(bias));
        }
      }
    }
  }
}

TEST(Gemm, PlainProductHasNoEpilogue) {
  const auto func =
      op_func(call_of("Gemm", {Array(DType::F32, {2, 3}), Array(DType::F32, {3, 4})}));
  ASSERT_TRUE(func);
  EXPECT_EQ(func->body.as<Seq>()->stmts.size(), 2u);  // init and sum
}

TEST(MatMul, FollowsNumPyForStacksAndVectors) {
  struct Case {
    Shape a, b, out;
  };
  const std::vector<Case> cases = {
      {{2, 3}, {3, 4}, {2, 4}},
      {{3}, {3}, {}},
      {{3}, {3, 4}, {4}},
      {{2, 3}, {3}, {2}},
      {{5, 2, 3}, {3, 4}, {5, 2, 4}},
      {{2, 1, 2, 3}, {4, 3, 2}, {2, 4, 2, 2}},
      {{3}, {2, 3, 4}, {2, 4}},
      {{2, 5, 3}, {3}, {2, 5}},
      {{2, 0}, {0, 3}, {2, 3}},
  };
  int seed = 0;
  for (const Case& c : cases) {
    const Array a = random_array(DType::F32, c.a, ++seed),
                b = random_array(DType::F32, c.b, ++seed);
    const bool row = c.a.size() == 1, column = c.b.size() == 1;
    const Array want = filled(DType::F32, c.out, [&](const Ints& at) {
      Ints batch = at;
      const int64_t n = column ? 0 : batch.back();
      if (!column) batch.pop_back();
      const int64_t m = row ? 0 : batch.back();
      if (!row) batch.pop_back();
      const auto stack = [&](const Shape& shape, bool vector) {
        Ints out;
        if (vector) return out;
        const size_t rank = shape.size() - 2;
        for (size_t i = 0; i < rank; ++i)
          out.push_back(shape[i] == 1 ? 0 : batch[batch.size() - rank + i]);
        return out;
      };
      double sum = 0;
      for (int64_t k = 0; k < c.a.back(); ++k) {
        Ints x = stack(c.a, row), y = stack(c.b, column);
        if (!row) x.push_back(m);
        x.push_back(k);
        y.push_back(k);
        if (!column) y.push_back(n);
        sum += value_at(a, x) * value_at(b, y);
      }
      return sum;
    });
    expect_close(run_op("MatMul", {a, b})[0], want, 0, to_string(c.a) + to_string(c.b));
  }
}

TEST(MatMul, HalfPrecisionSumsInSinglePrecision) {
  // 4096 ones: a sum held in f16 would stop at 2048.
  const Array ones = random_array(DType::F16, {1, 4096}, 1, 1, 1);
  const Array small = random_array(DType::F16, {4096, 1}, 1, 1, 1);
  EXPECT_EQ(run_op("MatMul", {ones, small})[0].get(0), 4096);
}

TEST(MatMul, RejectsWhatDoesNotFit) {
  const Array a(DType::F32, {2, 3});
  EXPECT_THAT(error_of(call_of("MatMul", {a, a})), HasSubstr("inner sizes 3 and 2 differ"));
  EXPECT_THAT(error_of(call_of("MatMul", {a, Array(DType::F32, {})})), HasSubstr("scalars"));
  EXPECT_THAT(
      error_of(call_of("MatMul", {Array(DType::F32, {2, 2, 3}), Array(DType::F32, {3, 3, 4})})),
      HasSubstr("do not broadcast"));
  EXPECT_THAT(error_of(call_of("Gemm", {a, a})), HasSubstr("inner sizes 3 and 2 differ"));
  EXPECT_THAT(error_of(call_of("Gemm", {a, Array(DType::F32, {3, 4}), Array(DType::F32, {4, 2})})),
              HasSubstr("[4, 2]"));
}

}  // namespace
}  // namespace tilewright::tensor
