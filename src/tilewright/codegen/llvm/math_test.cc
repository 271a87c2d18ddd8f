// Elementary functions, as lower/expand_math.cc writes them out, against the C library in double
// precision; largest and smallest values with NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tilewright/codegen/llvm/llvm.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

constexpr int64_t kCount = 1 << 17;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Row {
  const char* name;
  double (*exact)(double);
  float from, to;
  double ulps;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

constexpr Row kRows[] = {
    {"exp", std::exp, -87, 88.7f, 2},      {"log", std::log, 1e-30f, 1e30f, 2},
    {"log", std::log, .5f, 2, 2},          {"tanh", std::tanh, -10, 10, 6},
    {"tanh", std::tanh, -1, 1, 4},         {"erf", std::erf, -5, 5, 6},
    {"erf", std::erf, -1.2f, 1.2f, 4},     {"sigmoid", sigmoid, -80, 80, 3},
    {"exp", std::exp, -1e-4f, 1e-4f, 1.5}, {"erf", std::erf, -1e-5f, 1e-5f, 2}};

/// f(x) by a compiled loop, in vectors or one by one.
std::vector<float> compiled(const std::string& function, const std::vector<float>& x, bool vector) {
  const auto func = parse_func(fmt::format(R"(func f(X: f32[{0}], out Y: f32[{0}]) {{
  for i in {0}{1} {{
    block Y(k: space {0} = i) {{
      Y[k] = {2}(X[k])
    }}
  }}
}}
)",
                                           x.size(), vector ? " vector" : "", function));
  EXPECT_TRUE(func) << to_string(func.error());
  const auto lowered = lower::run_pipeline(*func, "cpu");
  const auto module = jit({*lowered}, {});
  EXPECT_TRUE(module) << to_string(module.error());
  interp::Arguments arguments;
  Array values(DType::F32, {static_cast<int64_t>(x.size())});
  std::copy(x.begin(), x.end(), values.as<float>().begin());
  arguments.arrays["X"] = values;
  const KernelInfo& info = (*module)->kernels()[0];
  const auto got = testing::call_kernel(*func, (*module)->find(info.symbol), info, arguments);
  EXPECT_TRUE(got) << to_string(got.error());
  const auto y = got->at("Y").as<float>();
  return {y.begin(), y.end()};
}

/// Distance in units of the last place of `exact`.
double distance(float got, double exact) {
  const auto near = static_cast<float>(exact);
  if (std::isnan(near) || std::isinf(near))
    return std::isnan(near) ? !std::isnan(got) : got != near;
  const double unit = std::max(
      static_cast<double>(std::nextafter(std::fabs(near), kInf)) - std::fabs(near), 1.5e-45);
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

TEST(VectorMath, IsExactToFewUnits) {
  for (const Row& row : kRows) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<float> any(row.from, row.to);
    std::uniform_real_distribution<float> power(std::log(std::max(row.from, 1e-30f)),
                                                std::log(row.to));
    std::vector<float> x;
    const bool wide = row.from > 0 && row.to / row.from > 1e3f;
    for (int64_t i = 0; i < kCount; ++i) x.push_back(wide ? std::exp(power(random)) : any(random));
    for (const bool vector : {true, false}) {
      const std::vector<float> y = compiled(row.name, x, vector);
      double worst = 0, at = 0;
      for (size_t i = 0; i < x.size(); ++i)
        if (const double d = distance(y[i], row.exact(x[i])); d > worst) worst = d, at = x[i];
      EXPECT_LE(worst, row.ulps) << row.name << "(" << at << "), vector " << vector;
      EXPECT_GT(worst, 0) << row.name;
    }
  }
}

TEST(VectorMath, KeepsSpecialValues) {
  const std::vector<float> x = {0.0f, -0.0f, kInf,    -kInf,  NAN,   -1.0f,  200.0f, -200.0f,
                                1.0f, 89.5f, -103.0f, 1e-40f, 3e38f, -3e38f, 88.7f,  -95.0f};
  for (const Row& row : kRows) {
    const std::vector<float> y = compiled(row.name, x, true);
    for (size_t i = 0; i < x.size(); ++i) {
      // Denormal results may be flushed to zero.
      const double exact = row.exact(x[i]);
      if (std::fabs(exact) < 1.2e-38 && std::fabs(y[i]) < 1.2e-38f) continue;
      EXPECT_LE(distance(y[i], exact), row.ulps) << row.name << "(" << x[i] << ") = " << y[i];
    }
  }
}

TEST(VectorMath, LargestAndSmallestKeepNan) {
  const std::vector<float> some = {1, -2, NAN, 0.0f, kInf, -kInf, 3e38f, -1e-40f};
  for (const int lanes : {4, 7, 8, 16, 29})
    for (const char* function : {"max", "min"}) {
      const auto func =
          parse_func(fmt::format(R"(func f(A: f32[8,{0}], B: f32[8,{0}], out Y: f32[8,{0}]) {{
  for r in 8, i in {0} vector {{
    block Y(m: space 8 = r, k: space {0} = i) {{
      Y[m, k] = {1}(A[m, k], B[m, k])
    }}
  }}
}}
)",
                                 lanes, function));
      ASSERT_TRUE(func) << to_string(func.error());
      const auto module = jit({*lower::run_pipeline(*func, "cpu")}, {});
      ASSERT_TRUE(module) << to_string(module.error());
      Array a(DType::F32, {8, lanes}), b(DType::F32, {8, lanes});
      for (int64_t i = 0; i < a.size(); ++i) {
        a.as<float>()[static_cast<size_t>(i)] = some[static_cast<size_t>(i / lanes)];
        b.as<float>()[static_cast<size_t>(i)] = some[static_cast<size_t>(i % lanes % 8)];
      }
      interp::Arguments arguments;
      arguments.arrays = {{"A", a}, {"B", b}};
      const KernelInfo& info = (*module)->kernels()[0];
      const auto got = testing::call_kernel(*func, (*module)->find(info.symbol), info, arguments);
      ASSERT_TRUE(got) << to_string(got.error());
      for (int64_t i = 0; i < a.size(); ++i) {
        const double x = a.get(i), y = b.get(i), z = got->at("Y").get(i);
        const bool nan = std::isnan(x) || std::isnan(y);
        const double want =
            *function == 'm' && function[1] == 'a' ? std::max(x, y) : std::min(x, y);
        EXPECT_TRUE(nan ? std::isnan(z) : z == want) << function << x << " " << y << " " << z;
      }
    }
}

}  // namespace
}  // namespace tilewright::codegen
