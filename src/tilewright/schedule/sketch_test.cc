#include "tilewright/schedule/sketch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/check.h"
#include "tilewright/ir/text.h"

namespace tilewright::schedule {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kSketch = R"(
# A loop nest of its own.
decide k: split C.k into 3
decide w: tile 7 into 2
decide unroll: ordered [1, 4, 16]
decide at: choice [C.k, "a b"]
decide deep: ring [[0, 1], [16, 1]] when at in [C.k]
split(loop=C.k, factor=$k.1 * $k.2)
split(loop=C.k.i, factor=$k.2)
if $unroll >= 4 && $deep.0 + 1 < extent(C.k) * (2 + 3) {
  unroll(loop=C.r)
  if $at == C.k { unroll(loop=$at) }
} else {
  cut(loop=C.w, parts=[ceil_div(7, $w.1) - 1, 0])
  mark(target=`C.k*C.w`, mark=pipeline, value=2)
}
)";

TEST(Sketch, RoundTrips) {
  const auto sketch = parse_sketch(kSketch);
  ASSERT_TRUE(sketch) << to_string(sketch.error());
  const std::string text = print(*sketch);
  const auto again = parse_sketch(text);
  ASSERT_TRUE(again) << to_string(again.error()) << text;
  EXPECT_EQ(print(*again), text);
  EXPECT_THAT(text, HasSubstr("decide deep: ring [[0, 1], [16, 1]] when at in [C.k]\n"));
  EXPECT_THAT(text, HasSubstr("if $unroll >= 4 && $deep.0 + 1 < extent(C.k) * (2 + 3) {\n"));
}

TEST(Sketch, InstantiatesTheStepsOfAPoint) {
  const Func func = *parse_func(R"(
func f(A: f32[12], out B: f32[12]) {
  for C.k in 12 { block C(k: space 12 = C.k) { B[k] = A[k] } }
})");
  const Sketch sketch = *bind(*parse_sketch(kSketch), func);
  EXPECT_EQ(sketch.decisions[0].extent, Word(int64_t{12}));
  auto steps = [&](int64_t unroll, const std::string& at) {
    const std::vector<Words> point = {{int64_t{2}, int64_t{3}, int64_t{2}},
                                      {int64_t{3}, int64_t{3}},
                                      {unroll},
                                      {at},
                                      {int64_t{16}, int64_t{1}}};
    const auto trace = instantiate(sketch, point);
    EXPECT_TRUE(trace) << to_string(trace.error());
    return print(*trace);
  };
  const std::string head = "split(loop=C.k, factor=6)\nsplit(loop=C.k.i, factor=2)\n";
  EXPECT_EQ(steps(1, "C.k"), head +
                                 "cut(loop=C.w, parts=[2, 0])\n"
                                 "mark(target=`C.k*C.w`, mark=pipeline, value=2)\n");
  EXPECT_EQ(steps(4, "C.k"), head + "unroll(loop=C.r)\nunroll(loop=C.k)\n");
  EXPECT_EQ(steps(4, "a b"), head + "unroll(loop=C.r)\n");
}

TEST(Sketch, RolesStandForBlocks) {
  const Func func = *parse_func(R"(
func f(A: f32[12], out B: f32[12]) {
  for C.k in 12 { block C(k: space 12 = C.k) { B[k] = A[k] } }
})");
  const auto sketch = bind(*parse_sketch(R"(
decide k: split main.k into 2
if has(main) && has(out) == 0 { split(loop=main.k, factor=$k.1 * extent(main.k)) }
mark(target=`main.k*main.j.main`, mark=ii, value=main)
)"),
                           func, {{"main", "C"}});
  ASSERT_TRUE(sketch) << to_string(sketch.error());
  const auto trace = instantiate(*sketch, {{int64_t{6}, int64_t{2}}});
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(print(*trace),
            "split(loop=C.k, factor=24)\n"
            "mark(target=`C.k*C.j.main`, mark=ii, value=C)\n");
}

TEST(Sketch, SplitsByOneNeedNoSpecialCase) {
  const Func func = *parse_func(R"(
func f(A: f32[12], out B: f32[12]) {
  for C.k in 12 { block C(k: space 12 = C.k) { B[k] = A[k] } }
})");
  const Sketch sketch = *bind(*parse_sketch(R"(
decide k: split C.k into 3
split(loop=C.k, factor=$k.1 * $k.2)
split(loop=C.k.i, factor=$k.2)
reorder(loops=[C.k.i.o, C.k.o, C.k.i.i])
vectorize(loop=C.k.i.i)
)"),
                              func);
  for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {12, 1}, {1, 12}, {3, 4}}) {
    const auto trace = instantiate(sketch, {{12 / (a * b), a, b}});
    ASSERT_TRUE(trace);
    EXPECT_TRUE(replay(func, *trace)) << a << " " << b;
  }
}

TEST(Sketch, ErrorsHavePlaceReasonAndRemedy) {
  const struct {
    const char *text, *what, *place, *fix;
  } rows[] = {
      {"decide k: spilt 4 into 2", "no decision is of the kind spilt", "1:11", "split, tile"},
      {"decide k: split 0 into 2", "cannot split an extent of 0", "1:17", "from 1"},
      {"decide k: split 4 into 9", "cannot split into 9 parts", "1:24", "1 to 8"},
      {"decide columns: split 4 into 2\nunroll(loop=$column.1)", "no decision column", "2:14",
       "mean columns?"},
      {"decide k: split 4 into 2\nunroll(loop=$k)", "has 2 parts", "2:14", "$k.0 to $k.1"},
      {"decide k: split 4 into 2\nunroll(loop=$k.2)", "has no part 2", "2:14", "it has 2"},
      {"decide a: choice [x, x]", "x is there twice", "1:19", ""},
      {"decide a: choice [x]\ndecide a: choice [y]", "a is there twice", "2:8", ""},
      {"decide a: choice [x]\ndecide b: choice [y] when a in [z]", "z is no value of a", "2:32",
       "can depend on"},
      {"unrol(loop=x)", "no step is named unrol", "1:1", ""},
      {"split(loop=x)", "expected", "1:1", ""},
      {"split(loop=x, factor=y)", "expected an integer", "1:1", ""},
      {"unroll(loop=x)\ndecide a: choice [x]", "among the steps", "2:1", "before the first"},
      {"if 1 { unroll(loop=x)", "expected `}`", "1:22", ""},
      {"split(loop=x, factor=most(1, 2))", "expected `,`", "1:26", ""},
      {"decide a.b: choice [x]", "dot in its name", "1:8", "number of a part"},
  };
  for (const auto& row : rows) {
    const auto sketch = parse_sketch(row.text);
    ASSERT_FALSE(sketch) << row.text;
    EXPECT_EQ(sketch.error().kind, ErrorKind::Parse);
    EXPECT_THAT(sketch.error().what, HasSubstr(row.what));
    EXPECT_THAT(to_string(sketch.error()), HasSubstr(row.place)) << row.text;
    EXPECT_THAT(sketch.error().fix, HasSubstr(row.fix));
  }
}

TEST(Sketch, BadValuesAreErrors) {
  const Func func = *parse_func("func f(A: f32[4], out B: f32[4]) { }");
  const auto unbound = bind(*parse_sketch("decide k: split C.k into 2"), func);
  ASSERT_FALSE(unbound);
  EXPECT_THAT(unbound.error().what, HasSubstr("no loop C.k"));
  const Sketch sketch = *parse_sketch("decide k: ordered [0, 4]\nsplit(loop=a, factor=8 / $k)");
  EXPECT_TRUE(instantiate(sketch, {{int64_t{4}}}));
  EXPECT_THAT(instantiate(sketch, {{int64_t{0}}}).error().what, HasSubstr("divide 8 by 0"));
  EXPECT_FALSE(instantiate(sketch, {}));
  EXPECT_FALSE(instantiate(sketch, {{int64_t{4}, int64_t{4}}}));
  EXPECT_FALSE(instantiate(sketch, {{std::string("word")}}));
  const Sketch large = *parse_sketch("split(loop=a, factor=4611686018427387904 * 4)");
  EXPECT_THAT(instantiate(large, {}).error().what, HasSubstr("too large"));
}

}  // namespace
}  // namespace tilewright::schedule
