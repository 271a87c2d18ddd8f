// Operands that lie apart along the lanes: copied where that is worth it, with the same meaning.
#include "tilewright/rules/cpu/stages.h"

#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/tensor/text.h"

namespace tilewright::rules {
namespace {

hw::CpuTarget stage_rule_small_target() {
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = 32;
  return target;
}

Func parsed_func(const std::string& text) {
  Result<Func> func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return *std::move(func);
}

interp::Arguments integers(const Func& func) {
  Rng rng(7);
  interp::Arguments arguments;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(DType::F32, shape);
    for (int64_t i = 0; i < array.size(); ++i)
      array.set(i, static_cast<double>(rng.between(-4, 4)));
    arguments.arrays[param.buffer.name()] = std::move(array);
  }
  return arguments;
}

/// The program under the rules; the same values as before, exactly.
Func scheduled(const Func& func, int threads) {
  const Result<Func> result =
      schedule::replay(func, default_trace(func, stage_rule_small_target(), threads));
  EXPECT_TRUE(result) << to_string(result.error());
  const interp::Arguments arguments = integers(func);
  interp::Options check;
  check.check = true;
  const auto want = interp::run(func, arguments), got = interp::run(*result, arguments, check);
  EXPECT_TRUE(want && got);
  EXPECT_TRUE(got->findings.empty()) << got->findings[0].text;
  const Array &a = want->outputs.begin()->second, &b = got->outputs.begin()->second;
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.get(i), b.get(i)) << i;
  return *result;
}

constexpr const char* kStrided = R"(
tensor conv(X: f32[c, h, w], W: f32[o, c, 2, 3]) where c = 3, o = 30, h = 8, w = 43 {
  Y[k in o, i in 4, j in 9] = sum(u in c, s in 2, t in 3) X[u, i * 2 + s, j * 5 + t] * W[k, u, s, t]
  return Y
})";
constexpr const char* kBothAlong = R"(
tensor product(A: f32[b, m, k], B: f32[b, n, k]) where b = 2, m = 28, n = 9, k = 6 {
  C[q in b, i in m, j in n] = sum(l in k) A[q, i, l] * B[q, j, l]
  return C
})";
constexpr const char* kDistances = R"(
tensor distances(X: f32[n, d], Y: f32[m, d]) where n = 26, m = 10, d = 5 {
  D[i in n, j in m] = sum(k in d) (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
  return D
})";

TEST(StageRule, GivesLanesToOperandsThatLieApart) {
  for (const char* text : {kStrided, kBothAlong, kDistances})
    for (const int threads : {1, 2}) {
      const std::string program = print(scheduled(parsed_func(text), threads));
      EXPECT_NE(program.find("vector"), std::string::npos) << program;
    }
  // The copy has the axes of the result first, then those of the sum, then the lanes.
  Draft draft(parsed_func(kStrided));
  ASSERT_TRUE(stage_lanes(draft, "Y", stage_rule_small_target()));
  EXPECT_NE(print(draft.func()).find("Y.X[i, u, s, t, j] * W[k, u, s, t]"), std::string::npos)
      << print(draft.func());
}

TEST(StageRule, CopiesTransposedFactorsForManyRows) {
  const char* many = R"(tensor dots(A: f32[m, k], B: f32[n, k]) where m = 70, n = 40, k = 40 {
    C[i in m, j in n] = sum(l in k) A[i, l] * B[j, l]
    return C
  })";
  Draft draft(parsed_func(many));
  EXPECT_TRUE(stage_lanes(draft, "C", stage_rule_small_target()));
  EXPECT_NE(print(draft.func()).find("A[i, l] * C.B[l, j]"), std::string::npos);
  scheduled(parsed_func(many), 2);
}

TEST(StageRule, LeavesOthersAlone) {
  const auto staged = [](const std::string& text, const std::string& sum) {
    Draft draft(parsed_func(text));
    const bool done = stage_lanes(draft, sum, stage_rule_small_target());
    EXPECT_EQ(done, !draft.take().empty());
    return done;
  };
  // Each element of the matrix is used once: a copy costs more than the sum.
  EXPECT_FALSE(staged(R"(tensor gemv(A: f32[n, k], x: f32[k]) where n = 40, k = 50 {
    y[i in n] = sum(l in k) A[i, l] * x[l]
    return y
  })",
                      "y"));
  // Both factors lie along terms that fill vectors, and few rows read them.
  EXPECT_FALSE(staged(R"(tensor dots(A: f32[m, k], B: f32[n, k]) where m = 40, n = 40, k = 40 {
    C[i in m, j in n] = sum(l in k) A[i, l] * B[j, l]
    return C
  })",
                      "C"));
  // Has lanes.
  EXPECT_FALSE(staged(R"(tensor gemm(A: f32[m, k], B: f32[k, n]) where m = 40, n = 40, k = 40 {
    C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
    return C
  })",
                      "C"));
  // A result of one column has no axis for lanes.
  EXPECT_FALSE(staged(R"(tensor all(A: f32[m, k], B: f32[1, k]) where m = 1, k = 900 {
    C[i in m, j in 1] = sum(l in k) A[i, l] * B[j, l]
    return C
  })",
                      "C"));
}

}  // namespace
}  // namespace tilewright::rules
