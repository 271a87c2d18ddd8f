// The checking mode: what it must report, and what it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/interp/interp.h"
#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/text.h"

namespace tilewright::interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Func parsed(std::string_view text) {
  auto f = parse_func(text);
  if (!f) throw std::runtime_error(to_string(f.error()));
  return *f;
}

/// Findings as `race: text`; arguments are zeros.
std::vector<std::string> check(std::string_view text, Options options = {}) {
  static const char* const kKinds[] = {"race", "undefined", "twice", "bounds"};
  const Func f = parsed(text);
  Arguments args;
  for (const Param& p : f.params) {
    if (p.mode == ParamMode::Out) continue;
    Shape shape;
    for (const Expr& extent : p.buffer.shape()) shape.push_back(*as_int(extent));
    args.arrays[p.buffer.name()] = Array(p.buffer.dtype(), shape);
  }
  for (const Scalar& s : f.scalars) args.scalars[s.var.name()] = s.hi;
  options.check = true;
  const auto out = run(f, args, options);
  if (!out) return {"error: " + out.error().what};
  std::vector<std::string> all;
  for (const Finding& finding : out->findings)
    all.push_back(std::string(kKinds[static_cast<int>(finding.kind)]) + ": " + finding.text);
  return all;
}

TEST(Checker, GoodProgramsAreClean) {
  for (const std::string_view text :
       {tilewright::testing::kMatmul, tilewright::testing::kConv,
        tilewright::testing::kConvScheduled, tilewright::testing::kSoftmax})
    EXPECT_THAT(check(text), IsEmpty());
}

std::string reduction(const std::string& loop, const std::string& marks) {
  return "func f(X: f32[4,8], out S: f32[4]) {\n"
         "  for a in 4 { block S.init(i: space 4 = a) { S[i] = 0.0 } }\n"
         "  for i in 4 parallel, j in 8 " +
         loop + " { block S(i: space 4 = i, j: reduce 8 = j) " + marks + "{ S[i] += X[i, j] } }\n}";
}

TEST(Checker, ReductionsOverConcurrentLoopsAreRaces) {
  EXPECT_THAT(check(reduction("", "")), IsEmpty());
  EXPECT_THAT(check(reduction("unroll", "")), IsEmpty());
  for (const std::string kind : {"parallel", "vector", "bind(thread.x)"}) {
    EXPECT_THAT(
        check(reduction(kind, "")),
        ElementsAre(::testing::AllOf(HasSubstr("race: block `S`: S["), HasSubstr("loop `j`"),
                                     HasSubstr("wrote it in block `S`"), HasSubstr(" writes it"))))
        << kind;
    EXPECT_THAT(check(reduction(kind, "@(atomic) ")), IsEmpty()) << kind;
  }
}

TEST(Checker, AtomicUpdatesStillConflictWithReads) {
  EXPECT_THAT(check(R"(
func f(inout S: f32[1], out Y: f32[4]) {
  for i in 4 parallel {
    block S(i: reduce 4 = i) @(atomic) { S[0] += 1.0 }
    block Y(i: space 4 = i) { Y[i] = S[0] }
  }
})"),
              ::testing::Contains(HasSubstr("race: block `")));
}

TEST(Checker, NeighboursOfAParallelLoop) {
  const auto text = [](const char* kind) {
    return std::string("func f(inout A: i32[9]) {\n  for i in 8 ") + kind +
           " { block A(i: space 8 = i) { A[i + 1] = A[i] + 1i32 } }\n}";
  };
  EXPECT_THAT(check(text("")), IsEmpty());
  EXPECT_THAT(check(text("parallel")), ElementsAre(HasSubstr("race: block `A`: A[")));
  EXPECT_THAT(check(text("vector")), ElementsAre(HasSubstr("race: block `A`: A[")));
}

TEST(Checker, AReadByOneIterationAndAWriteByAnother) {
  // Iteration i writes its own element, but all read element 3.
  EXPECT_THAT(check(R"(
func f(inout A: f32[8]) {
  for i in 8 parallel {
    block A(i: space 8 = i) { A[i] = A[3] }
  }
})"),
              ElementsAre(HasSubstr("race")));
}

TEST(Checker, SiblingsAndSerialLoopsOrderConcurrentOnes) {
  // Fork-join: the second loop starts after the first has ended, on every pass of t.
  EXPECT_THAT(check(R"(
func f(inout A: f32[8], out B: f32[3,8]) {
  for t in 3 {
    for i in 8 parallel {
      block A(i: space 8 = i) { A[i] += 1.0 }
    }
    for j in 8 parallel {
      block B(t: space 3 = t, j: space 8 = j) { B[t, j] = A[7 - j] }
    }
  }
})"),
              IsEmpty());
}

TEST(Checker, ConcurrentIterationsShareWhatIsAllocatedOutside) {
  const auto text = [](bool inside) {
    const std::string alloc = "alloc T: f32[1]\n";
    return "func f(X: f32[4], out Y: f32[4]) {\n" + (inside ? "" : alloc) +
           "for i in 4 parallel {\n" + (inside ? alloc : "") +
           "block T(i: space 4 = i) { T[0] = X[i] }\n"
           "block Y(i: space 4 = i) { Y[i] = T[0] * 2.0 }\n}\n}";
  };
  EXPECT_THAT(check(text(true)), IsEmpty());
  EXPECT_THAT(check(text(false), {.single_assignment = false}), ::testing::Each(HasSubstr("race")));
  EXPECT_THAT(check(text(false), {.single_assignment = false}), ::testing::Not(IsEmpty()));
}

TEST(Checker, TheOuterOfTwoNestedLoopsIsNamed) {
  EXPECT_THAT(check(R"(
func f(out Y: f32[4]) {
  for o in 2 parallel, i in 4 vector {
    block Y(o: space 2 = o, i: space 4 = i) { Y[i] = 1.0 }
  }
})",
                    {.single_assignment = false}),
              ElementsAre(HasSubstr("parallel loop `o`")));
}

TEST(Checker, UndefinedReads) {
  EXPECT_THAT(check(R"(
func f(out Y: f32[2]) {
  alloc T: f32[2]
  block T() { T[0] = 1.0 }
  for i in 2 {
    block Y(i: space 2 = i) { Y[i] = T[i] }
  }
})"),
              ElementsAre("undefined: block `Y`: T[1] is read before anything wrote it"));
  EXPECT_THAT(check(R"(
func f(out Y: f32[2]) {
  for i in 2 {
    block Y(i: space 2 = i) { Y[i] += 1.0 }
  }
})"),
              ElementsAre("undefined: block `Y`: Y[0] is updated before anything wrote it"));
  EXPECT_THAT(check(R"(
func f(out Y: f32[2,3]) {
  for i in 2, j in 2 {
    block Y(i: space 2 = i, j: space 2 = j) { Y[i, j] = 1.0 }
  }
})"),
              ElementsAre("undefined: element Y[0, 2] of the output is never written"));
}

TEST(Checker, AllocationsAreFreshInEveryIteration) {
  EXPECT_THAT(check(R"(
func f(out Y: f32[3]) {
  for i in 3 {
    alloc T: f32[1]
    if i == 0 {
      block T() { T[0] = 5.0 }
    }
    block Y(i: space 3 = i) { Y[i] = T[0] }
  }
})"),
              ElementsAre(HasSubstr("undefined: block `Y`: T[0]")));
}

constexpr std::string_view kTwice = R"(
func f(out Y: f32[2]) {
  for i in 3 {
    block Y(i: space 3 = i) { Y[i / 2] = 1.0 }
  }
})";

TEST(Checker, ElementsAreWrittenOnce) {
  EXPECT_THAT(check(kTwice),
              ElementsAre("twice: block `Y`: Y[0] already has a value from block `Y`"));
  EXPECT_THAT(check(kTwice, {.single_assignment = false}), IsEmpty());
  EXPECT_THAT(check(R"(
func f(out Y: f32[2]) {
  for i in 2 {
    block Y(i: space 2 = i) { Y[i] = 1.0 }
  }
  block Z() { Y[1] = 2.0 }
})"),
              ElementsAre("twice: block `Z`: Y[1] already has a value from block `Y`"));
}

TEST(Checker, SeveralBlocksMayWriteDisjointParts) {
  EXPECT_THAT(check(R"(
func f(out Y: f32[4]) {
  for i in 2 parallel {
    block Y@0(i: space 4 = i) { Y[i] = 1.0 }
  }
  for j in 2 parallel {
    block Y@1(i: space 4 = j + 2) { Y[i] = 2.0 }
  }
})"),
              IsEmpty());
}

TEST(Checker, InOutElementsMayBeSetOnce) {
  EXPECT_THAT(check(R"(
func f(inout Y: f32[2]) {
  for i in 2 {
    block Y(i: space 2 = i) { Y[i] = Y[i] * 2.0 }
  }
})"),
              IsEmpty());
}

TEST(Checker, OutOfBoundsIsAFinding) {
  EXPECT_THAT(check(R"(
func f(X: f32[4], out Y: f32[4]) {
  for i in 4 {
    block Y(i: space 4 = i) { Y[i] = X[i + 1] }
  }
})"),
              ElementsAre("bounds: block `Y`: X[4] is outside the shape [4] of `X`"));
  EXPECT_THAT(check(R"(
func f(out Y: f32[4]) {
  for i in 2, j in 3 {
    block Y(i: space 4 = i * 3 + j) { Y[i] = 1.0 }
  }
})"),
              ElementsAre("bounds: block `Y`: iteration `i` is 4, outside its extent 4"));
}

TEST(Checker, CallsAreSeenThrough) {
  EXPECT_THAT(check(R"(
func fill(out A: f32[2]) {
  for l in 2 vector {
    block A(l: space 2 = l) { A[l] = 1.0 }
  }
}
func f(out Y: f32[5]) {
  for i in 4 parallel {
    call fill(Y[i:+2])
  }
})",
                    {.single_assignment = false}),
              ElementsAre(HasSubstr("parallel loop `i`")));
}

TEST(Checker, FindingsAreLimited) {
  EXPECT_EQ(check(R"(
func f(out Y: f32[2], out Z: f32[2], out V: f32[2]) {
})",
                  {.max_findings = 2})
                .size(),
            2u);
}

}  // namespace
}  // namespace tilewright::interp
