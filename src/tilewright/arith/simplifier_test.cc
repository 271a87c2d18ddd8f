#include <gtest/gtest.h>

#include "tilewright/arith/test_util.h"
#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

using testing::evaluate;
using testing::Ranged;
using testing::Values;

std::string show(const Values& values) {
  std::string out;
  for (const auto& [var, value] : values) out += var.name() + "=" + std::to_string(value) + " ";
  return out;
}

/// Compares e with its simplified form for all assignments that satisfy `condition`.
void expect_same_value(const Expr& e, const Expr& s, const std::vector<Ranged>& vars,
                       const Expr& condition = {}) {
  testing::for_all(vars, [&](const Values& values) {
    if (condition && evaluate(condition, values) != 1) return true;
    const auto want = evaluate(e, values);
    if (!want) return true;
    const auto got = evaluate(s, values);
    EXPECT_TRUE(got == want) << print(e) << "\n  became " << print(s) << "\n  at " << show(values)
                             << "want " << *want << " got " << (got ? *got : -999999)
                             << (condition ? "\n  under " + print(condition) : "");
    return got == want;
  });
}

void expect_stable(const Expr& s, const Bounds& bounds) {
  const Expr again = simplify(s, bounds);
  EXPECT_TRUE(same(again, s)) << print(s) << "\n  became " << print(again);
}

std::vector<Ranged> random_vars(Rng& rng, DType dtype) {
  std::vector<Ranged> vars;
  for (const char* name : {"x", "y", "z"}) {
    const int64_t lo = rng.chance(0.6) || is_unsigned_int(dtype) ? 0 : rng.between(-9, 3);
    vars.push_back({Var(name, dtype), lo, lo + rng.below(rng.chance(0.5) ? 5 : 17)});
  }
  return vars;
}

struct RandomCase {
  DType dtype;
  int count;
  int depth;
};

class Random : public ::testing::TestWithParam<RandomCase> {};

TEST_P(Random, KeepsValues) {
  Rng rng(11 + static_cast<uint64_t>(GetParam().dtype));
  int changed = 0;
  for (int n = 0; n < GetParam().count && !HasFailure(); ++n) {
    const auto vars = random_vars(rng, GetParam().dtype);
    const Bounds bounds = testing::bounds_of(vars);
    const bool logical = rng.chance(0.3);
    const int depth = 2 + static_cast<int>(rng.below(GetParam().depth - 1));
    const Expr e = logical ? testing::random_bool(rng, vars, GetParam().dtype, depth)
                           : testing::random_int(rng, vars, GetParam().dtype, depth);
    const Expr s = simplify(e, bounds);
    changed += !same(s, e);
    EXPECT_EQ(s.dtype(), e.dtype());
    EXPECT_TRUE(same(s, e) || !equal(s, e)) << print(e);
    expect_same_value(e, s, vars);
    expect_stable(s, bounds);
  }
  EXPECT_GT(changed, GetParam().count / 3);
}

TEST_P(Random, KeepsValuesUnderFacts) {
  Rng rng(71 + static_cast<uint64_t>(GetParam().dtype));
  for (int n = 0; n < GetParam().count / 2 && !HasFailure(); ++n) {
    const auto vars = random_vars(rng, GetParam().dtype);
    Bounds bounds = testing::bounds_of(vars);
    const Expr fact = testing::random_bool(rng, vars, GetParam().dtype, 3);
    bool defined = true;
    testing::for_all(vars,
                     [&](const Values& v) { return defined = evaluate(fact, v).has_value(); });
    if (!defined) continue;
    bounds.assume(fact);
    const Expr e = rng.chance(0.5) ? testing::random_bool(rng, vars, GetParam().dtype, 4)
                                   : testing::random_int(rng, vars, GetParam().dtype, 4);
    const Expr s = simplify(e, bounds);
    expect_same_value(e, s, vars, fact);
    expect_stable(s, bounds);
  }
}

TEST_P(Random, ProvesOnlyTruths) {
  Rng rng(5 + static_cast<uint64_t>(GetParam().dtype));
  int proved = 0, always = 0;
  for (int n = 0; n < GetParam().count && !HasFailure(); ++n) {
    const auto vars = random_vars(rng, GetParam().dtype);
    const Bounds bounds = testing::bounds_of(vars);
    const Expr e = testing::random_bool(rng, vars, GetParam().dtype, 3);
    bool holds = true, defined = true;
    testing::for_all(vars, [&](const Values& values) {
      const auto v = evaluate(e, values);
      defined &= v.has_value();
      holds &= !v || *v == 1;
      return holds;
    });
    const bool claim = prove(e, bounds);
    EXPECT_TRUE(!claim || holds) << print(e);
    always += holds && defined;
    proved += claim && holds && defined;
  }
  // Doing nothing is no proof: most of what always holds here is found.
  EXPECT_GT(proved * 10, always * 7) << proved << " of " << always;
}

TEST_P(Random, RangesHoldAndAreTight) {
  Rng rng(23 + static_cast<uint64_t>(GetParam().dtype));
  int64_t found = 0, tight = 0;
  for (int n = 0; n < GetParam().count / 2 && !HasFailure(); ++n) {
    const auto vars = random_vars(rng, GetParam().dtype);
    const Expr e = testing::random_int(rng, vars, GetParam().dtype, 3);
    const auto range = const_range(e, testing::bounds_of(vars));
    if (!range) continue;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    testing::for_all(vars, [&](const Values& values) {
      if (const auto v = evaluate(e, values)) lo = std::min(lo, *v), hi = std::max(hi, *v);
      return true;
    });
    if (lo > hi) continue;
    EXPECT_TRUE(range->first <= lo && hi <= range->second)
        << print(e) << " in " << lo << ".." << hi << ", claimed " << range->first << ".."
        << range->second;
    ++found;
    tight += range->first == lo && range->second == hi;
  }
  EXPECT_GT(tight * 2, found);
}

/// The first are tried with sanitizers too.
std::vector<RandomCase> first(int share) {
  return {{DType::I64, 3000 / share, 5},
          {DType::I32, 600 / share, 4},
          {DType::I8, 1500 / share, 4},
          {DType::U8, 1000 / share, 4}};
}
std::string type_of(const ::testing::TestParamInfo<RandomCase>& c) {
  return std::string(name(c.param.dtype));
}
INSTANTIATE_TEST_SUITE_P(Types, Random, ::testing::ValuesIn(first(6)), type_of);
INSTANTIATE_TEST_SUITE_P(TypesSlow, Random, ::testing::ValuesIn(first(1)), type_of);

// --- What must be found. Variables: i in 16, j in 4, o in 100, k and x any integer, n in 1..64.

class Table : public ::testing::Test {
 protected:
  Table() {
    b_.bind(i_.as<VarRef>()->var, int_imm(16));
    b_.bind(j_.as<VarRef>()->var, int_imm(4));
    b_.bind(o_.as<VarRef>()->var, int_imm(100));
    b_.bind_range(n_.as<VarRef>()->var, int_imm(1), int_imm(64));
    b_.bind(v_.as<VarRef>()->var, n_);
    b_.bind_range(t_.as<VarRef>()->var, int_imm(1), int_imm(16));
    b_.bind(u_.as<VarRef>()->var, t_);
  }
  void expect(const Expr& e, const std::string& want) {
    const Expr s = simplify(e, b_);
    EXPECT_EQ(print(s), want) << "from " << print(e);
    EXPECT_TRUE(same(simplify(s, b_), s)) << print(s);
  }
  void proves(const Expr& e) {
    EXPECT_TRUE(prove(e, b_)) << print(e) << "\n  gives " << print(simplify(e, b_));
  }
  void refutes(const Expr& e) {
    EXPECT_TRUE(prove(logical_not(e), b_)) << print(e) << "\n  gives " << print(simplify(e, b_));
  }

  Bounds b_;
  Expr i_ = ref(Var("i")), j_ = ref(Var("j")), o_ = ref(Var("o")), k_ = ref(Var("k")),
       x_ = ref(Var("x")), y_ = ref(Var("y")), n_ = ref(Var("n")), v_ = ref(Var("v")),
       t_ = ref(Var("t")), u_ = ref(Var("u"));
};

TEST_F(Table, Division) {
  expect((k_ * 16 + i_) / 32, "k / 2");
  expect((k_ * 16 + i_) / 16, "k");
  expect((k_ * 16 + i_) / 8, "k * 2 + i / 8");
  expect((k_ * 4 + j_) / 4, "k");
  expect((k_ * 4 + x_) / 4, "k + x / 4");
  expect((k_ * 6) / 4, "k + k / 2");
  expect((k_ * 32 + i_ + 5) / 32, "k");
  expect((k_ * 32 + i_ - 32) / 32, "k - 1");
  expect((x_ / 4) / 6, "x / 24");
  expect((x_ / 4 + 3) / 6, "(x + 12) / 24");
  expect((x_ - 5) / 4, "(x + 3) / 4 - 2");
  expect((x_ % 24) / 6, "x / 6 % 4");
  expect((k_ * 48 + j_ * 4) / 16, "k * 3");
  expect((n_ * t_ + u_) / t_, "n");
}

TEST_F(Table, Modulo) {
  expect((k_ * 4 + j_) % 4, "j");
  expect((k_ * 16 + i_) % 32, "k % 2 * 16 + i");
  expect((k_ * 4 + x_) % 4, "x % 4");
  expect((x_ % 24) % 6, "x % 6");
  expect((x_ % 4) % 6, "x % 4");
  expect((x_ % 8 + y_) % 4, "(x + y) % 4");
  expect(i_ % 16, "i");
  expect((i_ + 16) % 16, "i");
  expect((n_ * t_ + u_) % t_, "u");
}

TEST_F(Table, PutsPartsTogether) {
  expect((x_ / 4) * 4 + x_ % 4, "x");
  expect(x_ % 4 + (x_ / 4) * 4, "x");
  expect((x_ / 20) * 20 + (x_ / 5 % 4) * 5 + x_ % 5, "x");
  expect(((k_ * 4 + j_) / 8) * 8 + (k_ * 4 + j_) % 8, "k * 4 + j");
  expect(x_ - (x_ / 4) * 4, "x % 4");
  expect(((x_ + 3) / 4) * 4 + (x_ + 3) % 4, "x + 3");
}

TEST_F(Table, Sums) {
  expect(x_ + 3 - x_, "3");
  expect((x_ + y_) * 2 - x_, "x + y * 2");
  expect((x_ - 1) + 1, "x");
  expect((x_ + 1) * n_ - n_, "x * n");
  expect(-(x_ - y_), "y - x");
}

TEST_F(Table, Comparisons) {
  expect(k_ * 4 + 3 < n_ * 4, "k < n");
  expect(k_ * 16 + i_ < n_ * 16, "k < n");
  expect(int_imm(1) <= x_, "x >= 1");
  expect(x_ <= int_imm(56), "x < 57");
  expect(x_ + 1 > y_ + 1, "y < x");
  expect(eq(x_ * 2, int_imm(7)), "false");
  expect(eq(x_ + 2, int_imm(7)), "x == 5");
  expect(logical_not(x_ < 5), "x >= 5");
  expect(logical_and(x_ >= 0, x_ >= 1), "x >= 1");
  expect(logical_and(i_ >= 0, x_ >= 1), "x >= 1");
  expect(logical_or(i_ < 0, x_ >= 1), "x >= 1");
  expect(logical_and(x_ < 5, x_ > 7), "false");
  expect(logical_or(x_ < 5, x_ < 7), "x < 5 || x < 7");
}

TEST_F(Table, MinMaxSelect) {
  expect(min(i_, int_imm(20)), "i");
  expect(max(i_ + x_, x_ - 1), "i + x");
  expect(min(min(x_, int_imm(5)), int_imm(3)), "min(x, 3)");
  expect(max(max(x_, int_imm(5)), int_imm(3)), "max(x, 5)");
  expect(select(i_ < 16, x_, y_), "x");
  expect(select(x_ < 4, min(x_, int_imm(4)), max(x_, int_imm(3))), "x");
}

TEST_F(Table, Casts) {
  expect(cast(DType::I64, cast(DType::I32, i_)), "i");
  expect(cast(DType::I8, int_imm(300)), "44i8");
}

TEST_F(Table, Bits) {
  expect(binary(BinaryOp::BitAnd, i_, int_imm(15)), "i");
  proves(binary(BinaryOp::BitXor, i_, j_) < 16);
  proves(binary(BinaryOp::BitAnd, x_, int_imm(7)) < 8);
}

TEST_F(Table, Proofs) {
  proves(ne((k_ * 4 + j_) % 8, (k_ * 4 + j_ + 4) % 8));
  const Expr other = ref(Var("other"));
  b_.bind(other.as<VarRef>()->var, int_imm(4));
  proves(ne((k_ * 4 + j_) % 8, (k_ * 4 + other + 4) % 8));
  proves((n_ / 4) * 4 <= n_);
  proves(((n_ + 3) / 4) * 4 >= n_);
  proves(((n_ + 3) / 4) * 4 < n_ + 4);
  proves(v_ < n_);
  proves(v_ < 64);
  proves(v_ / 4 <= n_ / 4);
  proves(j_ * 16 + i_ < 64);
  refutes(j_ * 16 + i_ >= 64);
  proves(x_ % 4 < 4);
  proves(min(x_, y_) <= x_);
  proves(max(x_, y_) >= min(x_, y_));
  proves((n_ + 3) / 4 - n_ / 4 <= 1);
  EXPECT_FALSE(prove(x_ < y_, b_));
  EXPECT_FALSE(prove(i_ < 15, b_));
  EXPECT_FALSE(prove((n_ / 4) * 4 >= n_, b_));
}

TEST_F(Table, ProofsFromFacts) {
  b_.assume(logical_and(x_ * 4 + j_ < n_, x_ >= 0));
  proves(x_ * 4 < n_);
  proves(x_ < n_);
  proves(x_ < 16);
  proves(x_ * 4 + j_ < 64);
  proves(x_ + 1 > 0);
  refutes(x_ * 4 + j_ >= n_);
  expect(min(x_ * 4 + j_, n_), "x * 4 + j");
  EXPECT_FALSE(prove(x_ * 4 + j_ + 1 < n_, b_));
}

TEST_F(Table, TransitiveFacts) {
  b_.assume(x_ < y_);
  b_.assume(y_ < k_);
  proves(x_ + 1 < k_);
  EXPECT_FALSE(prove(x_ + 2 < k_, b_));
}

TEST_F(Table, RunTimeTiles) {
  const Var outer("outer");
  b_.bind(outer, (n_ + t_ - 1) / t_);
  const Expr o = ref(outer);
  proves(o * t_ < n_);
  proves(o * t_ + u_ < n_ + t_);
  proves((n_ / t_) * t_ <= n_);
  proves(x_ % t_ < t_);
  expect((x_ / t_) * t_ + x_ % t_, "x");
  const Var fused("fused");
  b_.bind(fused, n_ * t_);
  proves(ref(fused) / t_ < n_);
  proves(ref(fused) / n_ < t_);
  b_.assume(o * t_ + u_ < n_);
  proves(o * t_ < n_);
  EXPECT_FALSE(prove(o * t_ + u_ + 1 < n_, b_));
}

TEST_F(Table, Disjunctions) {
  b_.assume(logical_or(eq(j_, int_imm(0)), i_ >= 2));
  proves(j_ + 1 <= i_ * 4 + 1);
  EXPECT_FALSE(prove(i_ >= 1, b_));
  b_.assume(ne(j_, int_imm(0)));
  proves(j_ >= 1);
}

TEST_F(Table, ClampedDifferences) {
  const auto r = const_range(min(o_ * 16 + 16, int_imm(1500)) - o_ * 16, b_);
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(r->second, 16);
}

TEST_F(Table, FloatArithmeticIsNeverTouched) {
  const Buffer buffer("X", DType::F32, {int_imm(64)});
  const Expr zero = float_imm(0);
  const Expr f = load(buffer, {(k_ * 4 + j_) / 4 + 0});
  const Expr e = binary(BinaryOp::Add, binary(BinaryOp::Mul, f, zero), zero);
  expect(e, "X[k] * 0.0 + 0.0");
  const Expr g = load(buffer, {i_});
  const Expr unchanged = logical_not(binary(BinaryOp::Lt, g, zero));
  EXPECT_TRUE(same(simplify(unchanged, b_), unchanged));
  expect(select(logical_and(i_ < 16, x_ >= 1), load(buffer, {max(x_, int_imm(1))}), zero),
         "select(x >= 1, X[x], 0.0)");
}

TEST_F(Table, LoadedDataMayWrap) {
  const Buffer data("D", DType::I64, {int_imm(64)});
  const Expr d = load(data, {i_});
  EXPECT_FALSE(prove(d + 1 > d, b_));
  const Expr e = (d * 16 + i_) / 16;
  EXPECT_TRUE(same(simplify(e, b_), e)) << print(simplify(e, b_));
  const Buffer bytes("B", DType::I8, {int_imm(64)});
  const Expr wide = cast(DType::I32, load(bytes, {i_}));
  proves(wide * wide <= 16384);
}

TEST(Simplify, SharedSubexpressionsAreNotExponential) {
  Expr e = ref(Var("x"));
  for (int i = 0; i < 60; ++i) e = min(e + e, e * 3) / 2;
  EXPECT_TRUE(simplify(e));
  Expr s = ref(Var("y"));
  for (int i = 0; i < 40; ++i) s = s + s;
  EXPECT_EQ(print(simplify(s)), "y * 1099511627776");
}

TEST(Simplify, ExtremeConstantsDoNotOverflow) {
  const Var x("x");
  Bounds b;
  b.bind_range(x, int_imm(INT64_MIN), int_imm(INT64_MAX));
  const Expr big = int_imm(INT64_MAX), small = int_imm(INT64_MIN);
  for (const Expr& e :
       {ref(x) + big + big, ref(x) * big * int_imm(3), small - ref(x), -small,
        binary(BinaryOp::Div, small, int_imm(-1)), ref(x) % big, (ref(x) * 3) / big})
    EXPECT_TRUE(simplify(e, b));
  EXPECT_FALSE(prove(ref(x) < big, b));
}

TEST(Bounds, ScalarsOfAFunc) {
  const Var n("n");
  Func f;
  f.scalars = {{n, 1, 64}};
  EXPECT_TRUE(prove(ref(n) <= 64, Bounds(f)));
  EXPECT_EQ(const_range(ref(n) * 2, Bounds(f)), (std::pair<int64_t, int64_t>(2, 128)));
  EXPECT_FALSE(const_range(ref(Var("m")), Bounds(f)));
}

TEST(Affine, RoundTrip) {
  const Var x("x"), y("y");
  const Affine a = as_affine((ref(x) - ref(y) / 2) * 3 + 5 - ref(x));
  EXPECT_EQ(a.constant, 5);
  EXPECT_EQ(a.coefficient(x), 2);
  EXPECT_EQ(a.coefficient(y), 0);
  ASSERT_EQ(a.terms.size(), 2u);
  EXPECT_EQ(a.terms[1].second, -3);
  EXPECT_EQ(print(to_expr(a)), "x * 2 - y / 2 * 3 + 5");
  EXPECT_EQ(print(to_expr(Affine{})), "0");
}

}  // namespace
}  // namespace tilewright::arith
