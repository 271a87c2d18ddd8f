#include "tilewright/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/check.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/tensor/op_testing.h"

namespace tilewright::tensor {
namespace {

using testing::array_of;
using testing::expect_close;
using testing::random_array;

Array run_one(const Func& func, const std::map<std::string, Array>& inputs,
              const std::string& output) {
  const Status ok = verify(func, Stage::Tensor);
  EXPECT_TRUE(ok) << (ok ? "" : to_string(ok.error())) << print(func);
  interp::Arguments arguments;
  arguments.arrays = inputs;
  interp::Options options;
  options.check = true;
  const auto outcome = interp::run(func, arguments, options);
  if (!outcome) {
    ADD_FAILURE() << to_string(outcome.error());
    return {};
  }
  EXPECT_TRUE(outcome->findings.empty()) << outcome->findings[0].text;
  return outcome->outputs.at(output);
}

TEST(MakeFunc, WritesOneNestPerTensorWithInitsAndAllocations) {
  const Tensor a = placeholder("A", DType::F32, {2, 3});
  const Tensor s = reduce("S", {{"i", 2}}, {{"k", 3}}, Combine::Add,
                          [&](const Indices& i, const Indices& k) { return a({i[0], k[0]}); });
  const Tensor d =
      compute("D", {{"i", 2}}, [&](const Indices& i) { return max(s(i), float_imm(0)); });
  const auto golden = parse_func(R"(func f(A: f32[2,3], out D: f32[2]) {
    alloc S: f32[2]
    for S.init.i in 2 { block S.init(i: space 2 = S.init.i) { S[i] = 0.0 } }
    for S.i in 2, S.k in 3 { block S(i: space 2 = S.i, k: reduce 3 = S.k) { S[i] += A[i, k] } }
    for D.i in 2 { block D(i: space 2 = D.i) { D[i] = max(S[i], 0.0) } }
  })");
  ASSERT_TRUE(golden) << to_string(golden.error());
  const Func func = make_func("f", {a}, {d});
  EXPECT_TRUE(equal(func, *golden)) << print(func);
}

TEST(MakeFunc, ClashingNamesGetASuffixAndOutputNamesRename) {
  const Tensor a = placeholder("A", DType::F32, {2});
  const auto step = [](const Tensor& t) {
    return compute("T",
                   {
                       {"i", 2},
                   },
                   [&](const Indices& i) { return t(i) + t(i); });
  };
  const Tensor y = step(step(step(a)));
  const std::string text = print(make_func("f", {a}, {y}, MathMode::Fast, {"out0"}));
  EXPECT_THAT(text, ::testing::HasSubstr("out out0: f32[2]"));
  EXPECT_THAT(text, ::testing::HasSubstr("for out0.i in 2"));
  EXPECT_THAT(text, ::testing::HasSubstr("alloc T: f32[2]"));
  EXPECT_THAT(text, ::testing::HasSubstr("for T_1.i in 2"));
  const Array x = array_of(DType::F32, {2}, {1, -3});
  expect_close(run_one(make_func("f", {a}, {y}), {{"A", x}}, "T"),
               array_of(DType::F32, {2}, {8, -24}));
}

TEST(MakeFunc, OutputsMayBeInputsOrRepeat) {
  const Tensor a = placeholder("A", DType::I32, {3});
  const Tensor b = compute("B", {{"i", 3}}, [&](const Indices& i) { return a(i) * 2; });
  const Func func = make_func("f", {a}, {a, b, b}, MathMode::Fast, {"y0", "y1", "y2"});
  const Array x = array_of(DType::I32, {3}, {1, 2, 3});
  expect_close(run_one(func, {{"A", x}}, "y0"), x);
  expect_close(run_one(func, {{"A", x}}, "y1"), array_of(DType::I32, {3}, {2, 4, 6}));
  expect_close(run_one(func, {{"A", x}}, "y2"), array_of(DType::I32, {3}, {2, 4, 6}));
}

TEST(MakeFunc, AComputedInputIsNotComputedAgain) {
  const Tensor a = placeholder("A", DType::F32, {2});
  const Tensor b = compute("B", {{"i", 2}}, [&](const Indices& i) { return a(i) + a(i); });
  const Tensor c = compute("C", {{"i", 2}}, [&](const Indices& i) { return b(i) + b(i); });
  const Func func = make_func("f", {b}, {c});
  EXPECT_THAT(print(func), ::testing::HasSubstr("func f(B: f32[2], out C: f32[2])"));
  expect_close(run_one(func, {{"B", array_of(DType::F32, {2}, {1, 2})}}, "C"),
               array_of(DType::F32, {2}, {2, 4}));
}

TEST(MakeFunc, ConstantTablesBecomeParameters) {
  const Tensor a = placeholder("A", DType::F32, {2});
  const Tensor table =
      placeholder("table", DType::F32, {2}, ParamMode::Const, array_of(DType::F32, {2}, {10, 20}));
  const Tensor c = compute("C", {{"i", 2}}, [&](const Indices& i) { return a(i) + table(i); });
  const Func func = make_func("f", {a}, {c});
  ASSERT_EQ(func.params.size(), 3u);
  EXPECT_EQ(func.params[2].mode, ParamMode::Const);
  expect_close(run_one(func, {{"A", array_of(DType::F32, {2}, {1, 2})}}, "C"),
               array_of(DType::F32, {2}, {11, 22}));
}

TEST(MakeFunc, ScalarsHaveNoLoops) {
  const Tensor a = placeholder("A", DType::F32, {});
  const Tensor b = compute("B", {}, [&](const Indices& i) { return a(i) + float_imm(1); });
  const Func func = make_func("f", {a}, {b});
  expect_close(run_one(func, {{"A", array_of(DType::F32, {}, {4})}}, "B"),
               array_of(DType::F32, {}, {5}));
}

TEST(MakeFunc, AnUnlistedInputIsABug) {
  const Tensor a = placeholder("A", DType::F32, {2});
  const Tensor b = compute("B", {{"i", 2}}, [&](const Indices& i) { return a(i); });
  EXPECT_THROW(make_func("f", {}, {b}), InternalError);
  EXPECT_THROW(make_func("f", {a, a}, {b}), InternalError);
}

TEST(Reduce, OverNothingGivesTheInitialValue) {
  const Tensor a = placeholder("A", DType::F32, {2, 0});
  const auto all = [&](Combine combine) {
    const Tensor t = reduce("R", {{"i", 2}}, {{"k", 0}}, combine,
                            [&](const Indices& i, const Indices& k) { return a({i[0], k[0]}); });
    return run_one(make_func("f", {a}, {t}), {{"A", Array(DType::F32, {2, 0})}}, "R").get(0);
  };
  EXPECT_EQ(all(Combine::Add), 0);
  EXPECT_EQ(all(Combine::Mul), 1);
  EXPECT_EQ(all(Combine::Max), -INFINITY);
  EXPECT_EQ(all(Combine::Min), INFINITY);
}

TEST(Reduce, RepeatedAxisNamesAreMadeDistinct) {
  const Tensor a = placeholder("A", DType::F32, {2, 2});
  const Tensor t = reduce("R", {{"i", 2}}, {{"i", 2}}, Combine::Add,
                          [&](const Indices& i, const Indices& k) { return a({i[0], k[0]}); });
  expect_close(
      run_one(make_func("f", {a}, {t}), {{"A", array_of(DType::F32, {2, 2}, {1, 2, 3, 4})}}, "R"),
      array_of(DType::F32, {2}, {3, 7}));
}

TEST(Identities, AreTheEndsOfTheType) {
  EXPECT_EQ(as_int(lowest(DType::I8)), -128);
  EXPECT_EQ(as_int(highest(DType::I8)), 127);
  EXPECT_EQ(as_int(highest(DType::U8)), 255);
  EXPECT_EQ(as_int(lowest(DType::U16)), 0);
  EXPECT_EQ(as_int(highest(DType::U32)), 4294967295);
  EXPECT_EQ(as_int(lowest(DType::I64)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(as_int(highest(DType::U64)), -1);  // the bit pattern
}

TEST(Raw, LoopsFollowTheTensorWhenItIsRenamed) {
  const Tensor a = placeholder("A", DType::F32, {3});
  const auto running = [&] {
    const Buffer state("S", DType::F32, {int_imm(4)});
    const Var t("t"), loop("S.t");
    const Expr at = ref(t);
    Block first{"S.init", {}, Expr(), {}, make(Store{state, {int_imm(0)}, float_imm(0)})};
    Block step{"S",
               {{t, IterKind::Scan, int_imm(3), ref(loop)}},
               Expr(),
               {},
               make(Store{state, {at + 1}, load(state, {at}) + a({at})})};
    const Stmt nest = make(For{loop, int_imm(3), ForKind::Serial, "", {}, make(step)});
    return raw({state}, seq({make(first), nest}))[0];
  };
  const Tensor s = running(), u = running();
  const Tensor y = compute("Y", {{"i", 4}}, [&](const Indices& i) { return s(i) + u(i); });
  const Func func = make_func("f", {a}, {y});
  EXPECT_THAT(print(func), ::testing::HasSubstr("for S_1.t in 3"));
  expect_close(run_one(func, {{"A", array_of(DType::F32, {3}, {1, 2, 3})}}, "Y"),
               array_of(DType::F32, {4}, {0, 2, 6, 12}));
}

}  // namespace
}  // namespace tilewright::tensor
