// Scalar arithmetic against definitions written differently: exact integers, tables of cases.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/interp/testing/exact_int.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::interp {
namespace {

using testing::meaning;
using testing::Range;
using testing::range_of;
using testing::Wide;
using testing::wrapped;

std::vector<Wide> samples(DType d, Rng& rng) {
  const Range r = range_of(d);
  if (bit_width(d) == 8) {
    std::vector<Wide> all;
    for (Wide v = r.lo; v <= r.hi; ++v) all.push_back(v);
    return all;
  }
  std::vector<Wide> some = {r.lo, r.lo + 1, r.hi, r.hi - 1, 0, 1, 2, 3, 7, 31, 32, 63, 64, 65};
  if (r.lo < 0) some.insert(some.end(), {-1, -2, -7, -64});
  for (int i = 0; i < 30; ++i) some.push_back(wrapped(static_cast<Wide>(rng.next()), d));
  return some;
}

/// Runs Y[i] = op(A[i], B[i]) over arrays, so that stores and loads take part.
Array run_binary(BinaryOp op, const Array& a, const Array& b) {
  const Expr n = int_imm(a.size());
  const Buffer x("A", a.dtype(), {n}), y("B", a.dtype(), {n});
  const Var l("l"), i("i");
  const Expr value = binary(op, load(x, {ref(i)}), load(y, {ref(i)}));
  const Buffer out("Y", value.dtype(), {n});
  Func f;
  f.name = "f";
  f.params = {
      {x, ParamMode::In, {}, {}}, {y, ParamMode::In, {}, {}}, {out, ParamMode::Out, {}, {}}};
  f.body = make(For{
      l,
      n,
      ForKind::Serial,
      "",
      {},
      make(Block{
          "Y", {{i, IterKind::Space, n, ref(l)}}, Expr(), {}, make(Store{out, {ref(i)}, value})})});
  auto result = run(f, {{{"A", a}, {"B", b}}, {}});
  if (!result) throw std::runtime_error(to_string(result.error()));
  return result->outputs.at("Y");
}

TEST(Arithmetic, IntegersFollowTheirDefinition) {
  Rng rng(11);
  for (const DType d : kAllDTypes) {
    if (!is_int(d)) continue;
    const std::vector<Wide> all = samples(d, rng);
    for (int o = 0; o <= static_cast<int>(BinaryOp::Shr); ++o) {
      const auto op = static_cast<BinaryOp>(o);
      if (op == BinaryOp::And || op == BinaryOp::Or) continue;
      const bool divides = op == BinaryOp::Div || op == BinaryOp::Mod;
      std::vector<Wide> as, bs;
      for (const Wide a : all)
        for (const Wide b : all)
          if (!divides || b != 0) as.push_back(a), bs.push_back(b);
      Array a(d, {static_cast<int64_t>(as.size())}), b(d, a.shape());
      for (size_t i = 0; i < as.size(); ++i) {
        a.set_int(static_cast<int64_t>(i), static_cast<int64_t>(as[i]));
        b.set_int(static_cast<int64_t>(i), static_cast<int64_t>(bs[i]));
      }
      const Array y = run_binary(op, a, b);
      for (size_t i = 0; i < as.size(); ++i) {
        const auto expected = static_cast<int64_t>(meaning(op, as[i], bs[i], d));
        ASSERT_EQ(y.get_int(static_cast<int64_t>(i)), expected)
            << name(d) << ": " << static_cast<int64_t>(as[i]) << " " << symbol(op) << " "
            << static_cast<int64_t>(bs[i]);
      }
    }
  }
}

double value_of(std::string_view text) {
  const auto e = parse_expr(text, {});
  if (!e) throw std::runtime_error(to_string(e.error()));
  const auto v = evaluate(*e);
  if (!v) throw std::runtime_error(to_string(v.error()));
  return *v;
}

TEST(Arithmetic, CastsFromFloatsTruncateAndSaturate) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType from : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    for (const DType to : kAllDTypes) {
      if (!is_int(to)) continue;
      const Range r = range_of(to);
      for (const double v : {0.0, 0.9, -0.9, 1.5, -1.5, 100.25, -100.25, 255.0, 256.0, 3e4, -3e4,
                             2147483648.0, -2147483649.0, 9.3e18, 1.9e19, -9.3e18, inf, -inf}) {
        const Expr literal = float_imm(v, from);
        const double held = literal.as<FloatImm>()->value;
        double expected = std::trunc(held);
        if (expected > static_cast<double>(r.hi)) expected = static_cast<double>(r.hi);
        if (expected < static_cast<double>(r.lo)) expected = static_cast<double>(r.lo);
        EXPECT_EQ(*evaluate(cast(to, literal)), expected)
            << name(from) << " " << v << " to " << name(to);
      }
      EXPECT_EQ(*evaluate(cast(to, float_imm(std::nan(""), from))), 0);
    }
  }
}

TEST(Arithmetic, OtherCasts) {
  EXPECT_EQ(value_of("u8(-1)"), 255);
  EXPECT_EQ(value_of("i8(200)"), -56);
  EXPECT_EQ(value_of("i64(4294967295u32)"), 4294967295.0);
  EXPECT_EQ(value_of("u64(-1)"), 18446744073709551615.0);
  EXPECT_EQ(value_of("f32(16777217)"), 16777216);
  EXPECT_EQ(value_of("f64(18446744073709551615u64)"), 18446744073709551616.0);
  EXPECT_EQ(value_of("f16(65504)"), 65504);
  EXPECT_TRUE(std::isinf(value_of("f16(70000)")));
  EXPECT_EQ(value_of("bf16(1.00390625)"), 1);
  EXPECT_EQ(value_of("i32(true) + i32(false)"), 1);
  EXPECT_EQ(value_of("i32(bool(0.5))"), 1);
  EXPECT_EQ(value_of("i32(bool(-0.0))"), 0);
  EXPECT_EQ(value_of("bitcast(i32, 1.0)"), 0x3f800000);
  EXPECT_EQ(value_of("bitcast(f32, 1078530011i32)"), 3.14159274101257324);
  EXPECT_EQ(value_of("bitcast(u16, 1.0f16)"), 0x3c00);
  EXPECT_EQ(value_of("bitcast(bf16, bitcast(i16, 2.0bf16))"), 2);
  EXPECT_EQ(value_of("bitcast(u64, -1)"), 18446744073709551615.0);
}

TEST(Arithmetic, FloatRules) {
  EXPECT_EQ(value_of("-7.5 % 2.0"), 0.5);
  EXPECT_EQ(value_of("7.5 % -2.0"), -0.5);
  EXPECT_EQ(value_of("trunc_mod(-7.5, 2.0)"), -1.5);
  EXPECT_EQ(value_of("trunc_div(-7.5, 2.0)"), -3);
  EXPECT_EQ(value_of("trunc_div(-7, 2)"), -3);
  EXPECT_EQ(value_of("trunc_mod(-7, 2)"), -1);
  EXPECT_EQ(value_of("-7 / 2"), -4);
  EXPECT_EQ(value_of("-7 % 2"), 1);
  EXPECT_EQ(value_of("round(0.5) + round(1.5) + round(-2.5)"), 0);
  for (const char* text : {"min(nan, 1.0)", "min(1.0, nan)", "max(nan, 1.0)", "max(1.0, nan)",
                           "0.0 / 0.0", "sqrt(-1.0)"})
    EXPECT_TRUE(std::isnan(value_of(text))) << text;
  EXPECT_EQ(value_of("1.0 / 0.0"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value_of("select(nan < 1.0 || nan >= 1.0 || nan == nan, 1, 0)"), 0);
  EXPECT_EQ(value_of("select(nan != nan && isnan(nan) && isinf(-inf), 1, 0)"), 1);
  EXPECT_EQ(value_of("pow(3, 4) + pow(-2, 3) + pow(2, -1) + pow(-1, -3)"), 72);
  EXPECT_EQ(value_of("pow(3i8, 5i8)"), -13);
  EXPECT_EQ(value_of("abs(-128i8)"), -128);
  EXPECT_EQ(value_of("popcount(-1i8) + popcount(127i8)"), 15);
  EXPECT_EQ(value_of("0.1f16 + 0.2f16"),
            f16_to_f32(f32_to_f16(f16_to_f32(f32_to_f16(0.1f)) + f16_to_f32(f32_to_f16(0.2f)))));
}

TEST(Arithmetic, MathFunctions) {
  struct Row {
    const char* name;
    double (*f)(double);
    double x;
  };
  const Row rows[] = {{"exp", std::exp, 1.25},
                      {"log", std::log, 2.5},
                      {"sqrt", std::sqrt, 2},
                      {"sin", std::sin, 0.75},
                      {"cos", std::cos, 0.75},
                      {"tan", std::tan, 0.75},
                      {"asin", std::asin, 0.5},
                      {"acos", std::acos, 0.5},
                      {"atan", std::atan, 0.5},
                      {"sinh", std::sinh, 0.5},
                      {"cosh", std::cosh, 0.5},
                      {"tanh", std::tanh, 0.5},
                      {"asinh", std::asinh, 0.5},
                      {"acosh", std::acosh, 1.5},
                      {"atanh", std::atanh, 0.5},
                      {"erf", std::erf, 0.5},
                      {"floor", std::floor, -1.5},
                      {"ceil", std::ceil, -1.5},
                      {"trunc", std::trunc, -1.5},
                      {"abs", std::fabs, -1.5},
                      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 2},
                      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 0.5}};
  for (const Row& row : rows) {
    const MathFn fn = *parse_math_fn(row.name);
    EXPECT_EQ(*evaluate(math(fn, {float_imm(row.x, DType::F64)})), row.f(row.x)) << row.name;
    EXPECT_EQ(*evaluate(math(fn, {float_imm(row.x, DType::F32)})), static_cast<float>(row.f(row.x)))
        << row.name;
    EXPECT_EQ(*evaluate(math(fn, {float_imm(row.x, DType::F16)})),
              f16_to_f32(f32_to_f16(static_cast<float>(row.f(row.x)))))
        << row.name;
  }
}

}  // namespace
}  // namespace tilewright::interp
