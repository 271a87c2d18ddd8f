#include "tilewright/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tilewright/base/file.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/ir/verify.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

std::string describe(const Error& e) { return to_string(e); }

class Corpus : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Corpus, PrintsAsParsed) {
  const auto f = parse_func(GetParam());
  ASSERT_TRUE(f) << describe(f.error());
  EXPECT_EQ(print(*f), GetParam());
  const auto again = parse_func(print(*f));
  ASSERT_TRUE(again);
  EXPECT_TRUE(equal(*f, *again));
  EXPECT_EQ(hash(*f), hash(*again));
  const Status ok = verify(*f, Stage::Scheduled);
  EXPECT_TRUE(ok) << describe(ok.error());
}

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         ::testing::Values(testing::kMatmul, testing::kConv,
                                           testing::kConvScheduled, testing::kSoftmax,
                                           testing::kLstm, testing::kOddities));

TEST(TextSlow, RandomProgramsRoundTrip) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    const Func f = testing::random_func(rng);
    const std::string text = print(f);
    const auto parsed = parse_func(text);
    ASSERT_TRUE(parsed) << "seed " << seed << "\n" << describe(parsed.error()) << "\n" << text;
    ASSERT_TRUE(equal(f, *parsed)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(print(*parsed), text) << "seed " << seed;
    const Status ok = verify(f, Stage::Scheduled);
    ASSERT_TRUE(ok) << "seed " << seed << "\n" << describe(ok.error()) << "\n" << text;
  }
}

const Var kI("i"), kJ("j"), kOdd("a*b");
const Buffer kX("X", DType::F32, {int_imm(8), int_imm(8)}), kS("S.sum", DType::I32, {});

Result<Expr> parse(std::string_view text) { return parse_expr(text, {kI, kJ, kOdd}, {kX, kS}); }

TEST(Text, ExpressionsRoundTrip) {
  for (const char* text : {
           "i",
           "-3",
           "-9223372036854775808",
           "-(3)",
           "-(-3)",
           "-i",
           "-(-i)",
           "!!(i < j)",
           "~~i",
           "-i * j",
           "-(i * j)",
           "i - (j - 1)",
           "i - j - 1",
           "(i + j) * 2 % 3 / 4",
           "i / (j / 2)",
           "i - -3",
           "i & 1 == 0",
           "i & (j | 3) ^ 4",
           "i << 1 + j",
           "(i << 1) + j",
           "(i < j) == (j < i)",
           "i < j && j < 3 || i == 0",
           "i < j && (j < 3 || i == 0)",
           "(i < 1 && j < 1) && i < 2",
           "`a*b` + i*j",
           "min(i, max(j, 3))",
           "select(i == j, 1.0, X[i, j + 1])",
           "f32(i)",
           "bitcast(i32, X[0, 0])",
           "u8(300i16)",
           "S.sum[] + 1i32",
           "18446744073709551615u64",
           "1.0f64",
           "-0.0",
           "0.1f16",
           "1e+30",
           "-inf_bf16",
           "nan_f64",
           "nan(0x7ff8000020000000)",
           "trunc_mod(pow(2.0, X[i, i]), erf(1.0))",
           "isnan(exp(1.0f16))",
       }) {
    std::string canonical = text;
    if (canonical == "`a*b` + i*j") canonical = "`a*b` + i * j";
    if (canonical == "0.1f16") canonical = "0.099975586f16";
    if (canonical == "(i < 1 && j < 1) && i < 2") canonical = "i < 1 && j < 1 && i < 2";
    const auto e = parse(text);
    ASSERT_TRUE(e) << text << "\n" << describe(e.error());
    EXPECT_EQ(print(*e), canonical);
    const auto again = parse(print(*e));
    ASSERT_TRUE(again) << print(*e);
    EXPECT_TRUE(equal(*e, *again)) << text;
  }
}

TEST(Text, PrecedenceMeansWhatItSays) {
  const auto e = parse("i & 1 == 0");  // bits bind tighter than comparisons
  ASSERT_TRUE(e) << describe(e.error());
  EXPECT_EQ(e->as<Binary>()->op, BinaryOp::Eq);
  EXPECT_EQ(parse("1 + i * 2")->as<Binary>()->op, BinaryOp::Add);
  EXPECT_EQ(parse("1 - i - 2")->as<Binary>()->a.as<Binary>()->op, BinaryOp::Sub);
}

TEST(Text, FloatsKeepEveryBit) {
  Rng rng(7);
  for (int n = 0; n < 20000; ++n) {
    for (const DType d : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
      const double any = std::bit_cast<double>(rng.next());
      const double value = d == DType::F64 ? any : std::bit_cast<float>(uint32_t(rng.next()));
      const Expr e = float_imm(value, d);
      const auto again = parse_expr(print(e), {});
      ASSERT_TRUE(again) << print(e) << "\n" << describe(again.error());
      ASSERT_TRUE(equal(e, *again)) << print(e);
    }
  }
}

TEST(Text, NestedNegationOfLiterals) {
  const Expr e = -(-(-int_imm(5)));
  const auto again = parse_expr(print(e), {});
  ASSERT_TRUE(again);
  EXPECT_TRUE(equal(e, *again)) << print(e);
}

struct Bad {
  const char* text;
  const char* place;
  const char* what;
};
class ParseErrors : public ::testing::TestWithParam<Bad> {};

TEST_P(ParseErrors, NameThePlaceAndTheReason) {
  const auto f = parse_funcs(GetParam().text);
  ASSERT_FALSE(f) << GetParam().text;
  EXPECT_EQ(f.error().kind, ErrorKind::Parse);
  EXPECT_EQ(f.error().place, GetParam().place) << describe(f.error());
  EXPECT_THAT(f.error().what + " " + f.error().fix, HasSubstr(GetParam().what));
  EXPECT_THAT(f.error().why, HasSubstr("^"));
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseErrors,
    ::testing::Values(
        Bad{"", "1:1", "expected `func` at the start of a function, found the end of the text"},
        Bad{"func f() {", "1:11", "end of text"},
        Bad{"func f(X: f33[2]) {}", "1:11", "expected an element type, found `f33`"},
        Bad{"func f(X: f32[2], X: f32[2]) {}", "1:19", "two parameters are named `X`"},
        Bad{"func f(X: f32[2], n: int in 0..2) {}", "1:22", "scalars come before buffers"},
        Bad{"func f(const X: f32[2] = {1.0}) {}", "1:30", "before value 2 of 2 of `X`"},
        Bad{"func f(const X: f32[99999999999] = {1.0}) {}", "1:34", "larger than the text"},
        Bad{"func f(const X: i8[1] = {128}) {}", "1:26", "outside the range of i8"},
        Bad{"func f(X: f32[2] = {1.0, 1.0}) {}", "1:18", "only a const parameter"},
        Bad{"func f(X: f32[2] strides [1,2]) {}", "1:8", "1 axes and 2 strides"},
        Bad{"func f(out Yards: f32[2]) {\n  Yard[0] = 1.0\n}", "2:3", "did you mean `Yards`?"},
        Bad{"func f(out Y: f32[2]) {\n  Y[0] = 1\n}", "2:10", "must be f32, not i64"},
        Bad{"func f(out Y: f32[2]) { Y[0, 0] = 1.0 }", "1:25", "has 1 axes, not 2"},
        Bad{"func f(out Y: f32[2]) { Y[0] = 1.0 + 1 }", "1:36", "have types f32 and i64"},
        Bad{"func f(out Y: f32[2]) { Y[0i32] = 1.0 }", "1:27", "must be i64, not i32"},
        Bad{"func f(out Y: bool[1]) { Y[0] += true }", "1:26", "`+=` does not apply to bool"},
        Bad{"func f(out Y: bool[1]) { Y[0] = 1 < 2 < 3 }", "1:39", "comparisons do not chain"},
        Bad{"func f(out Y: f32[1]) { Y[0] = Y }", "1:32", "is a buffer: it needs indices"},
        Bad{"func f(out Y: f32[1]) { Y[0] = sqrt(1) }", "1:32", "needs a floating-point number"},
        Bad{"func f(out Y: f32[1]) { Y[0] = pow(1.0) }", "1:32", "takes 2 arguments, not 1"},
        Bad{"func f(out Y: f32[1]) { Y[0] = foo(1.0) }", "1:32", "unknown function `foo`"},
        Bad{"func f(out Y: i32[1]) { Y[0] = bitcast(i32, 1.0f64) }", "1:32", "changes the width"},
        Bad{"func f(out Y: i32[1]) { Y[0] = 99999999999999999999i32 }", "1:32",
            "outside the range of i32"},
        Bad{"func f(out Y: f32[1]) { Y[0] = 1e999 }", "1:32", "outside the range of f32"},
        Bad{"func f(out Y: f32[1]) { Y[0] = 1.0q7 }", "1:32", "`q7` is not the type"},
        Bad{"func f(out Y: i32[1]) { Y[0] = 5u3 }", "1:32", "`u3` is not the type"},
        Bad{"func f() { for i in 99999999999999999999 { } }", "1:21", "outside the range of i64"},
        Bad{"func f() { for i in n { } }", "1:21", "unknown name `n`"},
        Bad{"func f() { for i in 4 sideways { } }", "1:23", "expected `{` before the body"},
        Bad{"func f() { for i in 4 @(fast) { } }", "1:25", "unknown mark `fast`"},
        Bad{"func f() { block b(i: spice 4 = 0) { } }", "1:23", "expected `space`, `reduce`"},
        Bad{"func f() { block b(i: space 4 = 0, i: space 4 = 0) { } }", "1:36",
            "two iterations of block `b`"},
        Bad{"func f(out Y: f32[9]) { for x in 9 { block b(i: space 9 = x) { Y[x] = 1.0 } } }",
            "1:66", "loop `x` is not seen inside a block body"},
        Bad{"func f() { { alloc T: f32[2] } }", "1:12", "expected a statement"},
        Bad{"func f(out Y: f32[2]) { if 1 { } }", "1:28", "a condition must be bool, not i64"},
        Bad{"func f() { call g() }", "1:17", "unknown function `g`"},
        Bad{"func g(n: int in 0..3) { }\nfunc f() { call g() }", "2:19", "expected an expression"},
        Bad{"func g() { }\nfunc g() { }", "2:1", "two functions are named `g`"},
        Bad{"func g(A: i8[2]) { }\nfunc f(X: f32[2]) { call g(X[0:+2]) }", "2:28", "`X` is f32"},
        Bad{"func g(A: i8[2]) { }\nfunc f(X: i8[2]) { call g(X[0]) }", "2:30", "expected `:+`"},
        Bad{"func f(out Y: i64[1]) { Y[0] = for }", "1:32", "keyword"},
        Bad{"func `f { }", "1:6", "not closed on this line"},
        Bad{"func f() { $ }", "1:12", "expected a statement"},
        Bad{"func f() { \x80 }", "1:12", "unexpected character (byte 0x80)"},
        Bad{"func f() { if true { } else", "1:28", "expected `{` before the body"}));

TEST(Text, AllocationsEndWithTheirBody) {
  const auto f = parse_func(R"(func f(out Y: f32[1]) {
  if true {
    alloc T: f32[1]
    T[0] = 1.0
  }
  Y[0] = T[0]
})");
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().place, "6:10");
}

TEST(Text, DeepNestingIsAnError) {
  const auto deep = [](std::string open, std::string middle, std::string close, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += open;
    text += middle;
    for (int i = 0; i < n; ++i) text += close;
    return text;
  };
  EXPECT_TRUE(parse(deep("(", "i", ")", 400)));
  for (const std::string& text :
       {deep("(", "i", ")", 100000), deep("-", "i", "", 100000), deep("min(i, ", "i", ")", 100000),
        deep("", "i", " + i", 100000), deep("X[", "i", ", 0]", 100000),
        deep("select(true, i, ", "i", ")", 100000), deep("bitcast(i64, ", "i", ")", 100000)}) {
    const auto e = parse(text);
    ASSERT_FALSE(e);
    EXPECT_THAT(e.error().what, HasSubstr("deeper than")) << text.substr(0, 20);
    EXPECT_LT(e.error().why.size(), 400u);
  }
  for (const std::string& body :
       {deep("if true {", "", "}", 100000), deep("for i in 2 {", "", "}", 100000),
        deep("block b() {", "", "}", 100000),
        "for " + deep("i in 2, ", "i in 2 { }", "", 100000)}) {
    const auto f = parse_func("func f() {" + body + "}");
    ASSERT_FALSE(f);
    EXPECT_THAT(f.error().what, HasSubstr("deeper than"));
  }
}

TEST(Text, ParseFuncWantsOneProgram) {
  const auto two = parse_func("func a() { }\nfunc b() { }");
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().what, HasSubstr("`b` does not call `a`"));
  const auto all = parse_funcs("func a() { }\nfunc b() { call a() } // comment\n# another");
  ASSERT_TRUE(all) << describe(all.error());
  EXPECT_EQ(all->size(), 2u);
}

TEST(Text, ErrorsShowTheLineAndACaret) {
  const auto f = parse_func("func f(out Y: f32[2]) {\n  Y[0] = 1\n}");
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().why, "  Y[0] = 1\n         ^");
}

TEST(Text, TheExampleOfTheDocumentIsCanonical) {
  const auto page = read_file(TILEWRIGHT_ROOT_DIR "/docs/ir.md");
  ASSERT_TRUE(page);
  const size_t from = page->find("```\n") + 4;
  const std::string example = page->substr(from, page->find("```", from) - from);
  const std::string gemm = "func gemm(k: int in 1..4, A: f32[2,4], inout Z: i32[]) {\n}\n\n";
  const auto f = parse_func(gemm + example);
  ASSERT_TRUE(f) << describe(f.error());
  EXPECT_EQ(print(*f), gemm + example);
  for (int kind = 0; kind <= static_cast<int>(MarkKind::Port); ++kind)
    EXPECT_THAT(*page, HasSubstr(fmt::format("| `{}` |", name(static_cast<MarkKind>(kind)))));
}

TEST(Text, HashFollowsTheText) {
  const auto a = parse_func("func f(out Y: f32[2]) { Y[0] = 1.0 }");
  const auto b = parse_func("func f(out Y: f32[2]) { Y[0] = 2.0 }");
  const auto c = parse_func("func  f(out Y: f32[2]) exact { Y[0] = 1.0 }");
  EXPECT_NE(hash(*a), hash(*b));
  EXPECT_NE(hash(*a), hash(*c));
}

}  // namespace
}  // namespace tilewright
