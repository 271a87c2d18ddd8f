#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::lower {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Func parsed(std::string_view text) {
  Result<Func> func = parse_func(text);
  EXPECT_TRUE(func) << (func ? "" : to_string(func.error()));
  return func ? *func : Func{};
}

/// Largest relative error of the expansion of `fn` over [lo, hi], and exactness at the ends.
double expansion_error(const std::string& fn, double lo, double hi, double (*exact)(double)) {
  constexpr int kPoints = 4000;
  const Func func =
      parsed(fmt::format("func f(A: f32[{0}], out Y: f32[{0}]) {{\n  for i in {0} {{\n"
                         "    Y[i] = {1}(A[i])\n  }}\n}}\n",
                         kPoints, fn));
  const auto expanded = run_passes(func, {"expand_math"});
  EXPECT_TRUE(expanded);
  EXPECT_THAT(print(*expanded), Not(HasSubstr(fn + "(")));
  Array a(DType::F32, {kPoints});
  Rng rng(7);
  for (int64_t i = 0; i < kPoints; ++i) {
    const double t = i < 10 ? static_cast<double>(i) / 9 : rng.uniform();
    a.set(i, lo + (hi - lo) * t);
  }
  interp::Arguments arguments;
  arguments.arrays["A"] = a;
  const auto out = interp::run(*expanded, arguments);
  EXPECT_TRUE(out) << (out ? "" : to_string(out.error()));
  double worst = 0;
  for (int64_t i = 0; i < kPoints; ++i) {
    const double want = exact(a.get(i)), got = out->outputs.at("Y").get(i);
    if (std::abs(want) < 1e-37) {
      EXPECT_LE(std::abs(got), 2e-37);
    } else {
      worst = std::max(worst, std::abs(got - want) / std::abs(want));
    }
  }
  return worst;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }

TEST(ExpandMath, IsAccurate) {
  EXPECT_LT(expansion_error("exp", -87, 88, std::exp), 3e-7);
  EXPECT_LT(expansion_error("exp", -1, 1, std::exp), 2e-7);
  EXPECT_LT(expansion_error("log", 1e-6, 4, std::log), 3e-7);
  EXPECT_LT(expansion_error("log", 1, 1e30, std::log), 2e-7);
  EXPECT_LT(expansion_error("log", 0.9, 1.1, std::log), 3e-7);
  EXPECT_LT(expansion_error("tanh", -9, 9, std::tanh), 5e-7);
  EXPECT_LT(expansion_error("tanh", -1e-3, 1e-3, std::tanh), 2.4e-7);
  EXPECT_LT(expansion_error("sigmoid", -80, 80, sigmoid), 5e-7);
  EXPECT_LT(expansion_error("erf", -5, 5, std::erf), 5e-7);
  EXPECT_LT(expansion_error("rsqrt", 1e-6, 1e6, rsqrt), 2e-7);
}

TEST(ExpandMath, SpecialValues) {
  const double inf = INFINITY;
  struct Row {
    const char* fn;
    double at, value;
  };
  const Row rows[] = {
      {"exp", inf, inf},   {"exp", -inf, 0},     {"exp", NAN, NAN},     {"exp", 0, 1},
      {"exp", 200, inf},   {"exp", -200, 0},     {"log", 0, -inf},      {"log", -1, NAN},
      {"log", inf, inf},   {"log", NAN, NAN},    {"log", 1, 0},         {"log", 1e-40, -92.1034},
      {"tanh", inf, 1},    {"tanh", -inf, -1},   {"tanh", NAN, NAN},    {"tanh", 0, 0},
      {"sigmoid", inf, 1}, {"sigmoid", -inf, 0}, {"sigmoid", NAN, NAN}, {"sigmoid", 0, 0.5},
      {"erf", inf, 1},     {"erf", -inf, -1},    {"erf", NAN, NAN},     {"erf", 0, 0},
      {"rsqrt", 0, inf},   {"rsqrt", inf, 0},    {"rsqrt", -1, NAN}};
  for (const Row& row : rows) {
    const Func func =
        parsed(fmt::format("func f(A: f32[1], out Y: f32[1]) {{\n  Y[0] = {}(A[0])\n}}\n", row.fn));
    const auto expanded = run_passes(func, {"expand_math"});
    ASSERT_TRUE(expanded);
    interp::Arguments arguments;
    arguments.arrays["A"] = Array::of(DType::F32, std::vector<double>{row.at});
    const double got = interp::run(*expanded, arguments)->outputs.at("Y").get(0);
    if (std::isnan(row.value)) {
      EXPECT_TRUE(std::isnan(got)) << row.fn << " " << row.at << " " << got;
    } else if (std::isinf(row.value)) {
      EXPECT_EQ(got, row.value) << row.fn << " " << row.at;
    } else {
      EXPECT_NEAR(got, row.value, 1e-4) << row.fn << " " << row.at;
    }
  }
}

}  // namespace
}  // namespace tilewright::lower
