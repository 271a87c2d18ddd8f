// Traces as text: what prints parses back, bad text says where it is bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/schedule/step.h"

namespace tilewright::schedule {
namespace {

using ::testing::HasSubstr;

/// One of each kind, in the order of Step. Added one by one: g++ needs gigabytes for the list.
Trace every_step() {
  Trace trace;
  trace.push_back(Split{"C.h", 14});
  trace.push_back(Fuse{"C.i", "C.j"});
  trace.push_back(Reorder{{"C.k", "C.i*C.j", "a name"}});
  trace.push_back(Cut{"C.w.o", {3, 0}});
  trace.push_back(ComputeAt{"P", "C.h.o"});
  trace.push_back(ReverseComputeAt{"Y@1", "C.h"});
  trace.push_back(Inline{"conv3/P"});
  trace.push_back(CacheRead{"C", "W", "W.t", ""});
  trace.push_back(CacheWrite{"C", "C.t", "C.h"});
  trace.push_back(Reindex{"C", "A", "A.re", {}});
  trace.push_back(Merge{"C", {"i", "j"}});
  trace.push_back(Divide{"C", "i*j", 4});
  trace.push_back(Slide{"P", "C.h", "h"});
  trace.push_back(RFactor{"C.k.o"});
  trace.push_back(SetScope{"C", "vta.acc"});
  trace.push_back(Layout{"W.t", "[k, c] -> [k / 16, c, k % 16]"});
  trace.push_back(Pad{"C", "k", -4});
  trace.push_back(Inplace{"Y", "C"});
  trace.push_back(Order{{"A", "B"}});
  trace.push_back(Parallel{"`quoted\\\""});
  trace.push_back(Vectorize{"\n"});
  trace.push_back(Unroll{"5"});
  trace.push_back(SetMark{"C.k", "ii", "1"});
  trace.push_back(Bind{"C.o", "block.x"});
  trace.push_back(Spread{"C.p", {"thread.y", "thread.x"}, {4, 8}});
  trace.push_back(Pipeline{"C.k.o", {"A.shared", "B.shared"}, 3});
  trace.push_back(Tensorize{"C.b", "func f(out \"a\": i32[1]) {\n  a[0] = 1i32\n}\n"});
  trace.push_back(FpgaBuffer{"C", "W", "W.t", "C.k.o", "bram", 2});
  trace.push_back(Dataflow{"C.k.o"});
  trace.push_back(Partition{"W.t", "c16_b2_f"});
  return trace;
}
const Trace kEveryStep = every_step();

TEST(Trace, PrintsAndParsesBack) {
  const std::string text = print(kEveryStep);
  const auto parsed = parse_trace(text);
  ASSERT_TRUE(parsed) << to_string(parsed.error()) << text;
  ASSERT_EQ(kEveryStep.size(), std::variant_size_v<Step>);
  ASSERT_EQ(parsed->size(), kEveryStep.size());
  EXPECT_EQ(print(*parsed), text);
  for (size_t i = 0; i < parsed->size(); ++i)
    EXPECT_EQ((*parsed)[i].index(), kEveryStep[i].index());
  EXPECT_EQ(std::get<Vectorize>((*parsed)[20]).loop, "\n");
  EXPECT_EQ(std::get<Layout>((*parsed)[15]).map, "[k, c] -> [k / 16, c, k % 16]");
  EXPECT_EQ(std::get<Tensorize>((*parsed)[26]).intrinsic,
            std::get<Tensorize>(kEveryStep[26]).intrinsic);
}

TEST(Trace, OneStepPerLine) {
  EXPECT_EQ(print(Step(Split{"C.h", 14})), "split(loop=C.h, factor=14)");
  EXPECT_EQ(print(Step(Cut{"w", {3, 1}})), "cut(loop=w, parts=[3, 1])");
  EXPECT_EQ(print(Step(Fuse{"C.i", "C.j"})), "fuse(outer=C.i, inner=C.j)");
  EXPECT_EQ(print(Trace{Unroll{"a"}, Unroll{"b"}}), "unroll(loop=a)\nunroll(loop=b)\n");
}

TEST(Trace, BadTextSaysWhatAndWhere) {
  const std::pair<const char*, const char*> bad[] = {
      {"spl(loop=a, factor=1)", "no step is named spl"},
      {"split", "after the step's name"},
      {"split(loop=a)", "between the fields"},
      {"split(factor=1, loop=a)", "loop"},
      {"split(loop=a, factor=x)", "a number"},
      {"split(loop=a, factor=99999999999999999999)", ""},
      {"split(loop=a, factor=1, extra=2)", "after the last field"},
      {"split(loop=a, factor=1", "after the last field"},
      {"cut(loop=a, parts=3)", "before the list"},
      {"cut(loop=a, parts=[3)", "between the elements"},
      {"unroll(loop=a)\nunroll(loop)", "2:"},
      {"unroll(loop=\"open)", ""},
  };
  for (const auto& [text, message] : bad) {
    const auto parsed = parse_trace(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::Parse) << text;
    EXPECT_THAT(to_string(parsed.error()), HasSubstr(message)) << text;
  }
  EXPECT_TRUE(parse_trace(""));
  EXPECT_TRUE(parse_trace("# a comment\n\n  unroll( loop = a )"));
}

TEST(Trace, ReplayNamesTheStepThatDoesNotApply) {
  const auto func = parse_func(
      "func f(out Y: f32[6]) {\n  for i in 6 {\n    block Y(i: space 6 = i) {\n"
      "      Y[i] = 1.0\n    }\n  }\n}\n");
  ASSERT_TRUE(func);
  const auto good = replay(*func, {Split{"i", 2}, Parallel{"i.o"}});
  ASSERT_TRUE(good);
  EXPECT_THAT(tilewright::print(*good), HasSubstr("for i.o in 3 parallel, i.i in 2 {"));
  const auto bad = replay(*func, {Split{"i", 2}, Parallel{"i"}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::Invalid);
  EXPECT_THAT(to_string(bad.error()), HasSubstr("step 1: parallel(loop=i)"));
  EXPECT_THAT(to_string(bad.error()), HasSubstr("loops: i.o, i.i"));
}

}  // namespace
}  // namespace tilewright::schedule
