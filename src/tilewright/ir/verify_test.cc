// One negative case per rule of docs/ir.md, section 9.
#include "tilewright/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

Func parsed(std::string_view text) {
  auto f = parse_func(text);
  if (!f) throw std::runtime_error(to_string(f.error()));
  return *f;
}

/// All problems, one per line; empty if the program is valid.
std::string problems(const Func& f, Stage stage = Stage::Scheduled) {
  const Status ok = verify(f, stage);
  if (ok) return "";
  EXPECT_EQ(ok.error().kind, ErrorKind::Invalid);
  return to_string(ok.error());
}

TEST(Verify, StagesOfTheCorpus) {
  for (const std::string_view text :
       {testing::kMatmul, testing::kConv, testing::kSoftmax, testing::kLstm})
    for (const Stage stage : {Stage::Tensor, Stage::Scheduled, Stage::Lowered})
      EXPECT_EQ(problems(parsed(text), stage), "");
  for (const std::string_view text : {testing::kConvScheduled, testing::kOddities}) {
    EXPECT_NE(problems(parsed(text), Stage::Tensor), "");
    EXPECT_EQ(problems(parsed(text), Stage::Scheduled), "");
    EXPECT_EQ(problems(parsed(text), Stage::Lowered), "");
  }
}

// --- Rules that text can break.

struct Case {
  const char* text;
  const char* message;
  Stage stage = Stage::Scheduled;
};
class BadText : public ::testing::TestWithParam<Case> {};
TEST_P(BadText, IsReported) {
  EXPECT_THAT(problems(parsed(GetParam().text), GetParam().stage), HasSubstr(GetParam().message));
}

#define TW_Y(body) "func f(X: f32[4], out Y: f32[4]) {\n" body "\n}"
#define TW_STORE "block Y(i: space 4 = a) { Y[i] = X[i] }"

INSTANTIATE_TEST_SUITE_P(
    Names, BadText,
    ::testing::Values(
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { Y[i] = X[i] } }\n"
                  "for a in 4 { block Z(i: space 4 = a) { Y[i] = X[i] } }"),
             "two loops or scalars are named `a`"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { Y[i] = X[i] } }\n"
                  "for b in 4 { block Y(i: space 4 = b) { Y[i] = X[i] } }"),
             "two blocks are named `Y`"},
        Case{TW_Y("alloc T: f32[1]\nalloc T: f32[2]"), "two buffers are named `T`"},
        Case{TW_Y("alloc X: f32[1]"), "two buffers are named `X`"},
        Case{"func f(n: int in 0..4) { for n in 4 { } }", "two loops or scalars are named `n`"},
        Case{"func f(n: int in 0..4, out Y: i64[4]) { for a in 4 { block Y(n: space 4 = a) { Y[n] "
             "= n } } }",
             "iteration `n` has the name of a scalar"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, BadText,
    ::testing::Values(Case{TW_Y("for a in i64(X[0]) { " TW_STORE " }"), "the extent reads `X`"},
                      Case{TW_Y("alloc T: f32[i64(X[0])]"), "an extent of `T` reads `X`"},
                      Case{TW_Y("for a in 4 { block Y(i: space 4 = i64(X[a])) { Y[i] = X[i] } }"),
                           "the binding of iteration `i` reads `X`"},
                      Case{TW_Y("for a in 4 { block Y(i: space i64(X[a]) = a) { Y[i] = X[i] } }"),
                           "the extent of iteration `i` reads `X`"}));

INSTANTIATE_TEST_SUITE_P(
    Statements, BadText,
    ::testing::Values(
        Case{TW_Y("Y[0] = 1.0"), "a store to `Y` stands outside a block"},
        Case{TW_Y("for a in -1 { " TW_STORE " }"), "the extent -1 is negative"},
        Case{TW_Y("alloc T: f32[-2]"), "`T` has the negative extent -2"},
        Case{TW_Y("alloc T: f32[2] fpga.dram"), "`T` has the scope fpga.dram, which no FPGA has"},
        Case{TW_Y("alloc T: f32[2] fpga.bram @(slots=9)"),
             "the value of mark `slots` is not 1 to 8"},
        Case{TW_Y("for a in 4 @(slots=2) { " TW_STORE " }"),
             "mark `slots` stands on something that is no allocation"},
        Case{TW_Y("alloc T: f32[2] @(port=1)"), "mark `port` stands on an allocation"},
        Case{TW_Y("for a in 4 @(port=x) { " TW_STORE " }"),
             "the value of mark `port` is no number of a port"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { X[i] = X[i] } }"),
             "`X` is written but is an input parameter"},
        Case{"func f(const W: f32[1]) { block W() { W[0] += 1.0 } }",
             "`W` is written but is an unchanging (const) parameter"},
        Case{TW_Y("for a in 4 { block Y(i: reduce 4 = a) { Y[0] = X[i] } }"),
             "`Y` is set once per step of a reduce iteration"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { block Z(j: space 4 = i) { Y[j] = X[j] } "
                  "} }"),
             "the body of a block is one store"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { } }"),
             "the body of a block is one store"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { alloc T: f32[1]\nY[i] = X[i] } }"),
             "the body of a block is one store"},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) { if true { Y[i] = X[i] } } }"),
             "the body of a block is one store"}));

INSTANTIATE_TEST_SUITE_P(
    Calls, BadText,
    ::testing::Values(
        Case{"func g(k: int in 1..3, A: f32[k]) { }\nfunc f(X: f32[4]) { call g(4, X[0:+4]) }",
             "scalar `k` of `g` is 4, outside 1..3"},
        Case{"func g(A: f32[2]) { }\nfunc f(X: f32[4]) { call g(X[0:+3]) }",
             "has sizes [3], the parameter [2]"},
        Case{"func g(out A: f32[4]) { }\nfunc f(X: f32[4]) { call g(X[0:+4]) }",
             "`X` is written but is an input parameter"},
        Case{"func g(A: f32[4]) { A[0] = 1.0 }\nfunc f(X: f32[4]) { call g(X[0:+4]) }",
             "callee `g` is not valid"}));

INSTANTIATE_TEST_SUITE_P(
    TensorStage, BadText,
    ::testing::Values(
        Case{TW_Y("for a in 4 parallel { " TW_STORE " }"), "a loop of stage tensor is serial",
             Stage::Tensor},
        Case{TW_Y("for a in 4 @(ii=2) { " TW_STORE " }"), "a loop of stage tensor is serial",
             Stage::Tensor},
        Case{TW_Y("for a in 4 { block Y(i: space 4 = a) @(async) { Y[i] = X[i] } }"),
             "a block of stage tensor has no marks", Stage::Tensor},
        Case{TW_Y("alloc T: f32[1] local"), "an allocation of stage tensor is global",
             Stage::Tensor},
        Case{TW_Y("if true { for a in 4 { " TW_STORE " } }"), "an if stands in", Stage::Tensor},
        Case{"func g() { }\nfunc f() { call g() }", "a call stands in", Stage::Tensor},
        Case{TW_Y("for a in 4 { " TW_STORE "\nblock Z(i: space 4 = a) { Y[i] = X[i] } }"),
             "blocks `Y` and `Z` share a nest", Stage::Tensor}));

TEST(Verify, LoweredProgramsMayStoreOutsideBlocks) {
  EXPECT_EQ(
      problems(parsed(TW_Y("Y[0] = 1.0\nif true { for a in 4 { Y[a] = X[a] } }")), Stage::Lowered),
      "");
}

TEST(Verify, NestsOverTimeMayHoldSeveralBlocks) {
  EXPECT_EQ(problems(parsed(R"(
func f(X: f32[4], out Y: f32[5], out Z: f32[4]) {
  block Y.start() { Y[0] = 0.0 }
  for t in 4 {
    block Y(t: scan 4 = t) { Y[t + 1] = Y[t] + X[t] }
    block Z(t: scan 4 = t) { Z[t] = Y[t + 1] }
  }
})"),
                     Stage::Tensor),
            "");
}

TEST(Verify, AllProblemsAreReported) {
  const Status s = verify(parsed(TW_Y("X[0] = 1.0\nalloc X: f32[-1]")), Stage::Scheduled);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().others.size(), 3u);
  EXPECT_EQ(s.error().place, "func f: the body");
}

// --- Rules that only hand-made programs can break.

const Expr kFour = int_imm(4);

/// Y[i] = value(i) for i in 4, with everything open to sabotage.
struct Parts {
  Buffer y{"Y", DType::F32, {kFour}};
  Var loop{"a"}, iter{"i"};
  Expr value = float_imm(1);
  Expr guard;
  std::vector<Expr> indices = {ref(iter)};
  Iter iteration{iter, IterKind::Space, kFour, ref(loop)};
  For outer{loop, kFour};
  Param param{y, ParamMode::Out, {}, {}};
  std::vector<Scalar> scalars;
  Combine combine = Combine::Set;
  std::string name = "f", block = "Y";

  Func func() const {
    For l = outer;
    l.body = make(Block{block, {iteration}, guard, {}, make(Store{y, indices, value, combine})});
    return {name, scalars, {param}, MathMode::Exact, make(l)};
  }
};

void expect(const Parts& parts, const char* message) {
  EXPECT_THAT(problems(parts.func()), HasSubstr(message));
}

TEST(Verify, HandMadeProgramIsValid) { EXPECT_EQ(problems(Parts().func()), ""); }

TEST(Verify, HandMadeNamesAndScopes) {
  Parts p;
  p.name = "";
  expect(p, "the function has no name");
  p = Parts();
  p.block = "";
  expect(p, "one of the blocks has no name");
  p = Parts();
  p.value = cast(DType::F32, ref(p.loop));
  expect(p, "loop `a` is not seen inside a block body");
  p = Parts();
  p.value = cast(DType::F32, ref(Var("ghost")));
  expect(p, "variable `ghost` is not in scope");
  p = Parts();
  p.value = load(Buffer("G", DType::F32, {}), {});
  expect(p, "buffer `G` is not declared here");
  p = Parts();
  p.guard = ref(p.iter) < 3;
  expect(p, "variable `i` is not in scope");
  p = Parts();
  p.outer.extent = ref(p.loop);
  expect(p, "variable `a` is not in scope");
  p = Parts();
  p.y = Buffer("Y", DType::F32, {kFour}, "");
  p.param.buffer = p.y;
  expect(p, "`Y` has no scope");
  p = Parts();
  p.scalars = {{Var("n"), 3, 2}};
  expect(p, "scalar `n` has the empty range 3..2");
  p.scalars = {{Var("n", DType::I32), 0, 2}};
  expect(p, "scalar `n` is not i64");
}

TEST(Verify, HandMadeTypes) {
  Parts p;
  p.value = int_imm(1);
  expect(p, "the value stored to `Y` is i64, not f32");
  p = Parts();
  p.indices = {int_imm(1, DType::I32)};
  expect(p, "an index of `Y` is i32, not i64");
  p = Parts();
  p.indices = {};
  expect(p, "0 indices for `Y` of rank 1");
  p = Parts();
  p.guard = int_imm(1);
  expect(p, "the guard is i64, not bool");
  p = Parts();
  p.outer.extent = int_imm(4, DType::I32);
  expect(p, "the extent is i32, not i64");
  p = Parts();
  p.value = cast(DType::F32, int_imm(300, DType::I8));
  expect(p, "literal 300 is outside the range of i8");
  p = Parts();
  p.value = select(int_imm(2, DType::Bool), float_imm(1), float_imm(2));
  expect(p, "literal 2 is outside the range of bool");
  p = Parts();
  p.value = cast(DType::F32, math(MathFn::Sqrt, {int_imm(4)}));
  expect(p, "`sqrt` needs a floating-point number, not i64");
  p = Parts();
  p.value = cast(DType::F32, bool_imm(true) + bool_imm(true));
  expect(p, "`+` needs numbers, not bool");
  p = Parts();
  p.value = cast(DType::F32, bitcast(DType::Bool, int_imm(1, DType::I8)));
  expect(p, "`bitcast` does not apply to bool");
  p = Parts();
  p.value = Expr(std::make_shared<const ExprNode>(
      ExprNode{DType::F32, Binary{BinaryOp::Lt, float_imm(1), float_imm(2)}}));
  expect(p, "a node of type f32 stands where bool is computed");
  p = Parts();
  p.y = Buffer("Y", DType::Bool, {kFour});
  p.param.buffer = p.y;
  p.value = bool_imm(true);
  p.combine = Combine::Max;
  expect(p, "`max=` into the bool buffer `Y`");
  p = Parts();
  p.value = Expr();
  expect(p, "the value stored to `Y` is missing");
  p = Parts();
  p.iteration.binding = Expr();
  expect(p, "the binding of iteration `i` is missing");
}

TEST(Verify, HandMadeLoops) {
  Parts p;
  p.outer.kind = ForKind::Bind;
  expect(p, "a bind loop names no axis");
  p = Parts();
  p.outer.axis = "block.x";
  expect(p, "only a bind loop names an axis");
  p = Parts();
  p.loop = Var("a", DType::I32);
  p.outer.var = p.loop;
  p.iteration.binding = int_imm(0);
  expect(p, "the loop variable is not i64");
}

TEST(Verify, HandMadeParameters) {
  Parts p;
  p.param.strides = {int_imm(1), int_imm(2)};
  expect(p, "`Y` has 1 axes and 2 strides");
  p = Parts();
  p.param.values = Array(DType::F32, {4});
  expect(p, "`Y` has values but is not const");
  p.param.values = Array(DType::F32, {5});
  expect(p, "the values of `Y` are f32[5], not of its type and shape");
}

TEST(Verify, HandMadeSequences) {
  const Func good = Parts().func();
  Func f = good;
  f.body = make(Seq{{good.body}});
  EXPECT_THAT(problems(f), HasSubstr("a Seq of one statement"));
  f.body = make(Seq{{make(Seq{}), good.body}});
  EXPECT_THAT(problems(f), HasSubstr("a Seq directly inside a Seq"));
  f.body = make(Seq{{Stmt(), good.body}});
  EXPECT_THAT(problems(f), HasSubstr("a statement is missing"));
  f.body = Stmt();
  EXPECT_THAT(problems(f), HasSubstr("the function has no body"));
  const Buffer t("T", DType::F32, {});
  f.body = make(Seq{{make(Alloc{t, {}}), make(Alloc{t, {}})}});
  EXPECT_THAT(problems(f), HasSubstr("the buffer is allocated twice"));
}

TEST(Verify, AllocationsEndWithTheirBody) {
  const Func good = Parts().func();
  const Buffer t("T", DType::F32, {});
  Func f = good;
  const Stmt use = make(Block{"U", {}, Expr(), {}, make(Store{t, {}, float_imm(1)})});
  f.body = make(Seq{{make(If{bool_imm(true), make(Alloc{t, {}}), Stmt()}), use}});
  EXPECT_THAT(problems(f), HasSubstr("buffer `T` is not declared here"));
  f.body = make(Seq{{make(Alloc{t, {}}), use}});
  EXPECT_EQ(problems(f), "");
  f.body = make(Seq{{use, make(Alloc{t, {}})}});
  EXPECT_THAT(problems(f), HasSubstr("buffer `T` is not declared here"));
}

TEST(Verify, HandMadeCalls) {
  auto callee = std::make_shared<Func>(parsed("func g(k: int in 1..3, A: f32[k]) { }"));
  Func f = parsed("func f(X: f32[4], I: i8[4]) { }");
  const Buffer x = f.params[0].buffer, i = f.params[1].buffer;
  const Region row{x, {{int_imm(0), int_imm(2)}}};
  auto with = [&](Call c) {
    f.body = make(std::move(c));
    return problems(f);
  };
  EXPECT_EQ(with({callee, {int_imm(2), row}}), "");
  EXPECT_THAT(with({nullptr, {}}), HasSubstr("a call without callee"));
  EXPECT_THAT(with({callee, {row}}), HasSubstr("`g` takes 2 arguments, not 1"));
  EXPECT_THAT(with({callee, {row, int_imm(2)}}), HasSubstr("argument 0 of `g` must be a scalar"));
  EXPECT_THAT(with({callee, {int_imm(2), Region{i, row.dims}}}), HasSubstr("is i8, not f32"));
  EXPECT_THAT(with({callee, {int_imm(2), Region{x, {}}}}), HasSubstr("has 0 axes, not 1"));
  EXPECT_THAT(with({callee, {int_imm(2, DType::I32), row}}), HasSubstr("is i32, not i64"));
  callee->name = "f";
  EXPECT_THAT(with({callee, {int_imm(2), row}}), HasSubstr("two functions are named `f`"));
}

}  // namespace
}  // namespace tilewright
