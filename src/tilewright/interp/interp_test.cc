#include "tilewright/interp/interp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/rng.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::interp {
namespace {

using ::testing::HasSubstr;

Func verified_func(std::string_view text) {
  auto f = parse_func(text);
  if (!f) throw std::runtime_error(to_string(f.error()));
  const Status ok = verify(*f, Stage::Scheduled);
  if (!ok) throw std::runtime_error(to_string(ok.error()));
  return *f;
}

/// Small integers: sums and products of them are exact in every type.
Array integers(DType dtype, Shape shape, uint64_t seed, int64_t lo = -4, int64_t hi = 4) {
  Array a(dtype, std::move(shape));
  Rng rng(seed);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(rng.between(lo, hi)));
  return a;
}

Array run_for(const Func& f, const Arguments& args, const std::string& output) {
  auto out = run(f, args);
  if (!out) throw std::runtime_error(to_string(out.error()));
  return out->outputs.at(output);
}

std::string error_of(std::string_view text, const Arguments& args) {
  const auto out = run(verified_func(text), args);
  if (out) return "no error";
  EXPECT_EQ(out.error().kind, ErrorKind::Invalid);
  return out.error().what;
}

TEST(Interp, MatmulInIntegers) {
  const Array a = integers(DType::I8, {6, 4}, 1, -128, 127);
  const Array b = integers(DType::I8, {4, 5}, 2, -128, 127);
  const Array c =
      run_for(verified_func(tilewright::testing::kMatmul), {{{"A", a}, {"B", b}}, {}}, "C");
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 5; ++j) {
      int32_t sum = 0;
      for (int k = 0; k < 4; ++k) sum += a.as<int8_t>()[i * 4 + k] * b.as<int8_t>()[k * 5 + j];
      EXPECT_EQ(c.as<int32_t>()[i * 5 + j], sum);
    }
  }
}

TEST(Interp, ConvolutionBeforeAndAfterScheduling) {
  const Array x = integers(DType::F32, {4, 8, 9}, 1), w = integers(DType::F32, {6, 4, 3, 3}, 2);
  const Array bias = integers(DType::F32, {6}, 3);
  const Arguments args{{{"X", x}, {"W", w}, {"bias", bias}}, {}};
  const Array plain = run_for(verified_func(tilewright::testing::kConv), args, "Y");
  EXPECT_TRUE(
      identical(plain, run_for(verified_func(tilewright::testing::kConvScheduled), args, "Y")));
  for (int k = 0; k < 6; ++k) {
    for (int h = 0; h < 8; ++h) {
      for (int v = 0; v < 9; ++v) {
        float sum = 0;
        for (int c = 0; c < 4; ++c)
          for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) {
              const int y = h + r - 1, z = v + s - 1;
              if (y < 0 || y >= 8 || z < 0 || z >= 9) continue;
              sum +=
                  x.as<float>()[(c * 8 + y) * 9 + z] * w.as<float>()[((k * 4 + c) * 3 + r) * 3 + s];
            }
        EXPECT_EQ(plain.as<float>()[(k * 8 + h) * 9 + v],
                  std::max(sum + bias.as<float>()[k], 0.0f));
      }
    }
  }
}

TEST(Interp, Softmax) {
  Array x(DType::F32, {3, 7});
  Rng rng(5);
  for (float& v : x.as<float>()) v = static_cast<float>(rng.normal() * 3);
  const Array y = run_for(verified_func(tilewright::testing::kSoftmax), {{{"X", x}}, {}}, "Y");
  for (int i = 0; i < 3; ++i) {
    double highest = -1e30, sum = 0;
    for (int j = 0; j < 7; ++j) highest = std::max<double>(highest, x.as<float>()[i * 7 + j]);
    for (int j = 0; j < 7; ++j) sum += std::exp(x.as<float>()[i * 7 + j] - highest);
    for (int j = 0; j < 7; ++j)
      EXPECT_NEAR(y.as<float>()[i * 7 + j], std::exp(x.as<float>()[i * 7 + j] - highest) / sum,
                  1e-6);
  }
}

TEST(Interp, LstmOverDynamicTime) {
  const Func f = verified_func(tilewright::testing::kLstm);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (const int64_t n : {0, 1, 8}) {
    const Array x = integers(DType::F32, {n, 3}, 1), w = integers(DType::F32, {8, 3}, 2);
    const Array r = integers(DType::F32, {8, 2}, 3);
    const auto out = run(f, {{{"X", x}, {"W", w}, {"R", r}}, {{"n", n}}});
    ASSERT_TRUE(out) << to_string(out.error());
    double h[2] = {0, 0}, c[2] = {0, 0};
    for (int64_t t = 0; t <= n; ++t) {
      for (int j = 0; j < 2; ++j) {
        EXPECT_NEAR(out->outputs.at("H").as<float>()[t * 2 + j], h[j], 1e-5);
        EXPECT_NEAR(out->outputs.at("C").as<float>()[t * 2 + j], c[j], 1e-5);
      }
      if (t == n) break;
      double gates[8];
      for (int k = 0; k < 8; ++k) {
        gates[k] = 0;
        for (int i = 0; i < 3; ++i) gates[k] += w.as<float>()[k * 3 + i] * x.as<float>()[t * 3 + i];
        for (int i = 0; i < 2; ++i) gates[k] += r.as<float>()[k * 2 + i] * h[i];
      }
      for (int j = 0; j < 2; ++j) {
        c[j] = sigmoid(gates[4 + j]) * c[j] + sigmoid(gates[j]) * std::tanh(gates[6 + j]);
        h[j] = sigmoid(gates[2 + j]) * std::tanh(c[j]);
      }
    }
  }
}

constexpr std::string_view kGather = R"(
func gather(X: f64[5,2], I: i32[4], out Y: f64[4,2]) {
  for a in 4, b in 2 {
    block Y(i: space 4 = a, j: space 2 = b) {
      Y[i, j] = X[i64(select(I[i] < 0i32, I[i] + 5i32, I[i])), j]
    }
  }
})";

TEST(Interp, GatherAndIndicesFromData) {
  const Array x = integers(DType::F64, {5, 2}, 9);
  Array index(DType::I32, {4});
  const int at[4] = {3, -1, 0, -5};
  for (int i = 0; i < 4; ++i) index.set(i, at[i]);
  const Array y = run_for(verified_func(kGather), {{{"X", x}, {"I", index}}, {}}, "Y");
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_EQ(y.get(i * 2 + j), x.get((at[i] < 0 ? at[i] + 5 : at[i]) * 2 + j));
  index.set(2, 7);
  EXPECT_EQ(error_of(kGather, {{{"X", x}, {"I", index}}, {}}),
            "block `Y`: X[7, 0] is outside the shape [5, 2] of `X`");
}

TEST(Interp, SixteenBitFloatsRoundAfterEveryOperation) {
  for (const DType d : {DType::F16, DType::BF16}) {
    const auto round = [d](float v) {
      return d == DType::F16 ? f16_to_f32(f32_to_f16(v)) : bf16_to_f32(f32_to_bf16(v));
    };
    std::string text = R"(
func f(A: T[64], B: T[64], out Y: T[64], out S: T[1]) {
  for i in 64 {
    block Y(i: space 64 = i) { Y[i] = A[i] * B[i] + B[i] / A[i] }
  }
  block S.init() { S[0] = 0.0T }
  for j in 64 {
    block S(i: reduce 64 = j) { S[0] += A[i] }
  }
})";
    for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, name(d));
    text.replace(text.find("0.0T"), 4, fmt::format("0.0{}", name(d)));
    Array a(d, {64}), b(d, {64});
    Rng rng(3);
    for (int i = 0; i < 64; ++i) a.set(i, rng.normal() + 3), b.set(i, rng.normal());
    const auto out = run(verified_func(text), {{{"A", a}, {"B", b}}, {}});
    ASSERT_TRUE(out) << to_string(out.error());
    float sum = 0;
    for (int i = 0; i < 64; ++i) {
      const auto x = static_cast<float>(a.get(i)), y = static_cast<float>(b.get(i));
      EXPECT_EQ(out->outputs.at("Y").get(i), round(round(x * y) + round(y / x)));
      sum = round(sum + x);
    }
    EXPECT_EQ(out->outputs.at("S").get(0), sum);
  }
}

TEST(Interp, QuantisedArithmetic) {
  const Func f = verified_func(R"(
func q(X: i8[16], W: i8[16], out Y: i8[1], out Z: u8[1]) {
  alloc S: i32[1]
  block S.init() { S[0] = 0i32 }
  for k in 16 {
    block S(k: reduce 16 = k) { S[0] += i32(X[k]) * i32(W[k]) }
  }
  block Y() { Y[0] = i8(min(max(S[0] >> 2i32, -128i32), 127i32)) }
  block Z() { Z[0] = u8(round(f32(S[0]) / 3.0)) }
})");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Array x = integers(DType::I8, {16}, seed, -9, 9);
    const Array w = integers(DType::I8, {16}, seed + 99, -9, 9);
    int32_t sum = 0;
    for (int k = 0; k < 16; ++k) sum += x.as<int8_t>()[k] * w.as<int8_t>()[k];
    const auto out = run(f, {{{"X", x}, {"W", w}}, {}});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_EQ(out->outputs.at("Y").get(0),
              std::clamp(static_cast<int>(std::floor(sum / 4.0)), -128, 127));
    EXPECT_EQ(out->outputs.at("Z").get(0), std::clamp(std::nearbyint(sum / 3.0f), 0.0f, 255.0f));
  }
}

TEST(Interp, InOutTablesAndEmptyReductions) {
  const Func f = verified_func(R"(
func f(n: int in 0..4, const T: i32[2,2] = {1, 2, 3, 4}, inout A: i32[2], out S: i32[]) {
  for i in 2, j in 2 {
    block A(i: space 2 = i, j: reduce 2 = j) { A[i] += T[i, j] }
  }
  block S.init() { S[] = 7i32 }
  for k in n {
    block S(k: reduce n = k) { S[] *= 2i32 }
  }
})");
  Array a(DType::I32, {2});
  a.set(0, 10), a.set(1, 20);
  for (const int64_t n : {0, 3}) {
    const auto out = run(f, {{{"A", a}}, {{"n", n}}}, {.check = true});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_EQ(out->outputs.at("A").to_ints(), (std::vector<int64_t>{13, 27}));
    EXPECT_EQ(out->outputs.at("S").get(0), 7 << n);
    EXPECT_THAT(out->findings, ::testing::IsEmpty());
  }
  EXPECT_EQ(a.to_ints(), (std::vector<int64_t>{10, 20})) << "the caller's array is not touched";
}

TEST(Interp, CallsRunTheCalleeOnTheRegions) {
  const Func f = verified_func(R"(
func gemm(k: int in 1..8, A: f32[2,k], B: f32[k,2], inout C: f32[2,2]) {
  for i in 2, j in 2, l in k {
    block C(i: space 2 = i, j: space 2 = j, l: reduce k = l) { C[i, j] += A[i, l] * B[l, j] }
  }
}
func f(A: f32[4,1,6], B: f32[6,4], out C: f32[4,4]) {
  for a in 4, b in 4 {
    block C.init(i: space 4 = a, j: space 4 = b) { C[i, j] = 0.0 }
  }
  for io in 2 parallel, jo in 2 bind(block.x), ko in 2 {
    block C(i: space 2 = io, j: space 2 = jo, k: reduce 2 = ko) {
      call gemm(3, A[i * 2:+2, 0:+1, k * 3:+3], B[k * 3:+3, j * 2:+2], C[i * 2:+2, j * 2:+2])
    }
  }
})");
  const Array a = integers(DType::F32, {4, 1, 6}, 1), b = integers(DType::F32, {6, 4}, 2);
  const auto out = run(f, {{{"A", a}, {"B", b}}, {}}, {.check = true});
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_THAT(out->findings, ::testing::IsEmpty());
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 6; ++k) sum += a.as<float>()[i * 6 + k] * b.as<float>()[k * 4 + j];
      EXPECT_EQ(out->outputs.at("C").as<float>()[i * 4 + j], sum);
    }
  }
}

TEST(Interp, LazyOperators) {
  const Func f = verified_func(R"(
func f(n: int in 0..9, X: i32[3], out Y: i32[5]) {
  for i in 5 {
    block Y(i: space 5 = i) {
      Y[i] = select(i < n && X[i] > 0i32 || false, X[i] / X[i], select(n == 0 || 7 / n > 2, 1i32, 2i32))
    }
  }
})");
  const Array x = integers(DType::I32, {3}, 1, 1, 5);
  EXPECT_EQ(run_for(f, {{{"X", x}}, {{"n", 3}}}, "Y").to_ints(),
            (std::vector<int64_t>{1, 1, 1, 2, 2}));
  EXPECT_EQ(run_for(f, {{{"X", x}}, {{"n", 0}}}, "Y").to_ints(),
            (std::vector<int64_t>{1, 1, 1, 1, 1}));
}

TEST(Interp, AllocationsAreFreshAndUndefined) {
  const Func f = verified_func(R"(
func f(out Y: f32[3]) {
  for i in 3 {
    alloc T: f32[1]
    if i == 0 {
      block T() { T[0] = 5.0 }
    }
    block Y(i: space 3 = i) { Y[i] = T[0] }
  }
})");
  const Array y = run_for(f, {}, "Y");
  EXPECT_EQ(y.get(0), 5);
  EXPECT_TRUE(std::isnan(y.get(1)));
  EXPECT_TRUE(std::isnan(y.get(2)));
}

TEST(Interp, BadArgumentsAreNamed) {
  const Array x = integers(DType::F32, {3, 7}, 1);
  EXPECT_EQ(error_of(tilewright::testing::kSoftmax, {}),
            "parameter `X` of `softmax` has no argument");
  EXPECT_EQ(error_of(tilewright::testing::kSoftmax, {{{"X", x.reshaped({7, 3})}}, {}}),
            "parameter `X` of `softmax` is f32[3, 7], the argument f32[7, 3]");
  EXPECT_EQ(error_of(tilewright::testing::kSoftmax, {{{"X", x.cast(DType::F64)}}, {}}),
            "parameter `X` of `softmax` is f32[3, 7], the argument f64[3, 7]");
  EXPECT_EQ(error_of(tilewright::testing::kSoftmax, {{{"X", x}, {"Z", x}}, {}}),
            "`softmax` has no parameter `Z`");
  EXPECT_EQ(error_of(tilewright::testing::kSoftmax, {{{"X", Array()}}, {}}).substr(0, 37),
            "parameter `X` of `softmax` is f32[3, ");
  EXPECT_EQ(error_of(tilewright::testing::kLstm, {}), "scalar `n` of `lstm` has no value");
  EXPECT_EQ(error_of(tilewright::testing::kLstm, {{}, {{"n", 9}}}),
            "scalar `n` of `lstm` is 9, outside 0..8");
  EXPECT_EQ(error_of("func f(const T: i8[1] = {1}) { }",
                     {{{"T", integers(DType::I8, {1}, 1, 2, 2)}}, {}}),
            "`T` of `f` is a constant table: its values cannot be replaced");
}

TEST(Interp, FaultsAreErrorsWithNames) {
  EXPECT_EQ(error_of(R"(
func f(n: int in 0..9, out Y: i64[1]) {
  block Y() { Y[0] = 1 / n }
})",
                     {{}, {{"n", 0}}}),
            "block `Y` divides an integer by zero");
  EXPECT_EQ(error_of(R"(
func f(out Y: i64[4]) {
  for i in 5 {
    block Y(i: space 4 = i) { Y[i] = i }
  }
})",
                     {}),
            "block `Y`: iteration `i` is 4, outside its extent 4");
  EXPECT_EQ(error_of(R"(
func f(n: int in 0..9, out Y: i64[4]) {
  alloc T: i64[n - 5]
})",
                     {{}, {{"n", 0}}}),
            "`T` has the negative extent -5");
  const auto huge = run(verified_func(R"(
func f(n: int in 0..9223372036854775807) {
  alloc T: i64[n,n]
})"),
                        {{}, {{"n", 1000000000}}});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::Limit);
  EXPECT_THAT(huge.error().what, HasSubstr("`T` of shape [1000000000, 1000000000] does not fit"));
  EXPECT_THAT(error_of(R"(
func g(n: int in 1..3, A: i8[n]) {
}
func f(m: int in 0..9, A: i8[2]) {
  call g(m, A[m:+2])
})",
                       {{{"A", integers(DType::I8, {2}, 1)}}, {{"m", 1}}}),
              HasSubstr("region 1:+2 on axis 0 of `A` leaves 0..2"));
}

TEST(Interp, StopsWhenAsked) {
  const Func f = verified_func(R"(
func f(out Y: i64[1]) {
  block Y.init() { Y[0] = 0 }
  for i in 1000000000, j in 1000000000 {
    block Y(i: reduce 1000000000 = i) { Y[0] += 1 }
  }
})");
  int polls = 0;
  Options options;
  options.stop = [&] { return ++polls == 3; };
  const auto out = run(f, {}, options);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind, ErrorKind::Interrupted);
}

TEST(Interp, EvaluatesExpressions) {
  const Var i("i");
  EXPECT_EQ(*evaluate(ref(i) * 3 - int_imm(1), {{i, 5}}), 14);
  EXPECT_EQ(*evaluate(float_imm(1.5) + float_imm(2)), 3.5);
  EXPECT_EQ(*evaluate(int_imm(-1, DType::U64)), 18446744073709551615.0);
  EXPECT_FALSE(evaluate(ref(i)));
  EXPECT_FALSE(evaluate(int_imm(1) / 0));
  EXPECT_FALSE(evaluate(load(Buffer("X", DType::F32, {int_imm(1)}), {int_imm(0)})));
}

Arguments random_arguments(const Func& f, Rng& rng) {
  Arguments args;
  for (const Scalar& s : f.scalars) args.scalars[s.var.name()] = rng.between(s.lo, s.hi);
  for (const Param& p : f.params) {
    if (p.values || p.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : p.buffer.shape()) shape.push_back(*as_int(extent));
    args.arrays[p.buffer.name()] = integers(p.buffer.dtype(), shape, rng.next(), -9, 9);
  }
  return args;
}

TEST(Interp, RandomProgramsAreCleanAndOrderFree) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Rng rng(seed);
    const Func f = tilewright::testing::random_func(rng);
    const Arguments args = random_arguments(f, rng);
    const auto plain = run(f, args);
    ASSERT_TRUE(plain) << seed << "\n" << to_string(plain.error()) << "\n" << print(f);
    const auto checked = run(f, args, {.check = true, .seed = seed});
    ASSERT_TRUE(checked) << seed << "\n" << to_string(checked.error()) << "\n" << print(f);
    for (const Finding& finding : checked->findings)
      ADD_FAILURE() << seed << ": " << finding.text << "\n" << print(f);
    for (const auto& [param, array] : plain->outputs)
      ASSERT_TRUE(identical(array, checked->outputs.at(param))) << seed << "\n" << print(f);
  }
}

}  // namespace
}  // namespace tilewright::interp
