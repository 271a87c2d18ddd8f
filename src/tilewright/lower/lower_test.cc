// What each pass for processors makes of small programs.
#include "tilewright/lower/lower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/lower/passes.h"
#include "tilewright/lower/testing/after.h"

namespace tilewright::lower {
namespace {

using testing::after;
using ::testing::HasSubstr;

TEST(BindIters, DissolvesBlocks) {
  EXPECT_EQ(after("bind_iters", R"(func f(A: f32[10], out Y: f32[10]) {
  for o in 4, i in 3 {
    block Y(k: space 10 = 3 * o + i) where 3 * o + i < 10 {
      Y[k] = A[9 - k]
    }
  }
}
)"),
            R"(func f(A: f32[10], out Y: f32[10]) {
  for o in 4, i in 3 {
    if 3 * o + i < 10 {
      Y[3 * o + i] = A[9 - (3 * o + i)]
    }
  }
}
)");
}

TEST(BindIters, RefusesUpdatesBySeveralThreads) {
  const auto lowered = [](const std::string& kind) {
    const auto func =
        parse_func("func f(X: i32[32], inout S: i32[8]) {\n  for i in 4 " + kind + R"( {
    for j in 8 {
      block S(s: space 8 = j, k: reduce 4 = i) @(atomic) {
        S[s] += X[k * 8 + s]
      }
    }
  }
})");
    EXPECT_TRUE(func) << to_string(func.error());
    return bind_iters(*func);
  };
  EXPECT_TRUE(lowered(""));
  ASSERT_FALSE(lowered("parallel"));
  EXPECT_THAT(lowered("parallel").error().what, HasSubstr("several threads"));
}

TEST(BindIters, LeavesTermsOutThatAddNothing) {
  const auto text = [](const std::string& otherwise, const std::string& kind) {
    return R"(func f(A: f32[8], inout Y: f32[1]) {
  for i in 8)" +
           kind +
           R"( {
    block Y(i: reduce 8 = i) {
      Y[0] += select(i < 5, A[i], )" +
           otherwise + R"()
    }
  }
}
)";
  };
  EXPECT_THAT(after("bind_iters", text("-0.0", "")),
              HasSubstr("    if i < 5 {\n      Y[0] += A[i]\n    }\n"));
  // Zero would make a zero of a negative one; lanes cannot go different ways.
  EXPECT_THAT(after("bind_iters", text("0.0", "")), HasSubstr("Y[0] += select(i < 5, A[i], 0.0)"));
  EXPECT_THAT(after("bind_iters", text("-0.0", " vector")), HasSubstr("Y[0] += select("));
}

TEST(Simplify, DropsUnitLoopsAndConstantConditions) {
  EXPECT_EQ(after("simplify", R"(func f(A: f32[8], out Y: f32[8]) {
  for o in 1, i in 8 {
    if o * 8 + i < 8 {
      Y[o * 8 + i] = A[(8 * o + i) % 8]
    } else {
      Y[0] = 1.0
    }
  }
  for z in 0 {
    Y[z] = 2.0
  }
}
)"),
            R"(func f(A: f32[8], out Y: f32[8]) {
  for i in 8 {
    Y[i] = A[i]
  }
}
)");
}

TEST(PlaceAllocs, MovesToTheInnermostScope) {
  const std::string out = after("place_allocs", R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  alloc T: f32[4,8]
  for i in 4 {
    for j in 8 {
      T[i, j] = A[i, j] * 2.0
    }
    for k in 8 {
      Y[i, k] = T[i, 7 - k]
    }
  }
}
)");
  EXPECT_THAT(out, HasSubstr("for i in 4 {\n    alloc T: f32[4,8]\n"));
}

TEST(PlaceAllocs, KeepsWhatIsCarriedBetweenIterations) {
  // T[i] of one iteration is read in the next.
  const std::string scan = after("place_allocs", R"(func f(A: f32[4], out Y: f32[4]) {
  alloc T: f32[5]
  T[0] = 0.0
  for i in 4 {
    T[i + 1] = T[i] + A[i]
    Y[i] = T[i + 1]
  }
}
)");
  EXPECT_THAT(scan, HasSubstr("{\n  alloc T: f32[5]\n"));
  // A line buffer that is filled in the first iteration only.
  const std::string sliding = after("place_allocs", R"(func f(A: f32[6], out Y: f32[4]) {
  alloc T: f32[6]
  for i in 4 {
    for j in 3 {
      if i == 0 || j >= 2 {
        T[i + j] = A[i + j]
      }
    }
    for k in 1 {
      Y[i] = T[i] + T[i + 2]
    }
  }
}
)");
  EXPECT_THAT(sliding, HasSubstr("{\n  alloc T: f32[6]\n"));
  // A reduction is not torn from its start.
  const std::string sum = after("place_allocs", R"(func f(A: f32[4,8], out Y: f32[4]) {
  alloc S: f32[4]
  for i in 4 {
    S[i] = 0.0
    for j in 8 {
      S[i] += A[i, j]
    }
    Y[i] = S[i]
  }
}
)");
  EXPECT_THAT(sum, HasSubstr("for i in 4 {\n    alloc S: f32[4]\n"));
}

TEST(PlaceAllocs, ConditionsThatOnlyKeepIndicesInsideHideNoWrite) {
  // Groups of four elements: the condition is about the group.
  const auto groups = [](const char* condition) {
    return after("place_allocs", fmt::format(R"(func f(A: f32[40], out Y: f32[40]) {{
  alloc T: f32[40] local
  for o in 3 {{
    for i in 4 {{
      if {} {{
        for j in 4 {{
          T[o * 16 + i * 4 + j] = A[o * 16 + i * 4 + j]
        }}
      }}
    }}
    for k in 16 {{
      if o * 16 + k < 40 {{
        Y[o * 16 + k] = T[o * 16 + k]
      }}
    }}
  }}
}}
)",
                                             condition));
  };
  EXPECT_THAT(groups("o * 4 + i < 10"), HasSubstr("for o in 3 {\n    alloc T: f32[40] local\n"));
  EXPECT_THAT(groups("o * 4 + i < 9"), HasSubstr("{\n  alloc T: f32[40] local\n"));
}

TEST(Compact, ShrinksToTheFootprint) {
  EXPECT_EQ(after("compact", R"(func f(A: f32[64,9], out Y: f32[64,8]) {
  for o in 4 {
    alloc T: f32[64,9] local
    for i in 16, j in 9 {
      T[16 * o + i, j] = A[16 * o + i, j]
    }
    for i.2 in 16, j.2 in 8 {
      Y[16 * o + i.2, j.2] = T[16 * o + i.2, j.2] + T[16 * o + i.2, j.2 + 1]
    }
  }
}
)"),
            R"(func f(A: f32[64,9], out Y: f32[64,8]) {
  for o in 4 {
    alloc T: f32[16,9] local
    for i in 16, j in 9 {
      T[i, j] = A[o * 16 + i, j]
    }
    for i.2 in 16, j.2 in 8 {
      Y[o * 16 + i.2, j.2] = T[i.2, j.2] + T[i.2, j.2 + 1]
    }
  }
}
)");
}

TEST(Compact, LeavesUnknownAxesWhole) {
  const std::string out = after("compact", R"(func f(A: f32[8], I: i64[8], out Y: f32[8]) {
  alloc T: f32[8]
  for i in 8 {
    T[i] = A[i]
  }
  for j in 8 {
    Y[j] = T[I[j]]
  }
}
)");
  EXPECT_THAT(out, HasSubstr("alloc T: f32[8]\n"));
}

TEST(Peel, SplitsOffTheTail) {
  EXPECT_EQ(after("peel", R"(func f(A: f32[55], out Y: f32[55]) {
  for o in 4, i in 16 {
    if o * 16 + i < 55 {
      Y[o * 16 + i] = A[o * 16 + i]
    }
  }
}
)"),
            R"(func f(A: f32[55], out Y: f32[55]) {
  for o in 3, i in 16 {
    Y[o * 16 + i] = A[o * 16 + i]
  }
  for i.tail in 7 {
    Y[i.tail + 48] = A[i.tail + 48]
  }
}
)");
}

/// Two parallel loops over rows of Y; the second one starts at `row` and reads `operand`.
std::string two_loops(const std::string& row, const std::string& operand) {
  return "func f(A: f32[8,8], out Y: f32[8,8]) {\n  for one in 1, n in 1 parallel, j in 8 {\n"
         "    Y[n, j] = A[n, j]\n  }\n  for m in 3 parallel, k in 8 {\n    Y[m + " +
         row + ", k] = " + operand + "\n  }\n}\n";
}

TEST(JoinParallel, PartsOfOneResultAreOneLoop) {
  EXPECT_EQ(after("join_parallel", two_loops("1", "A[m, k]")),
            R"(func f(A: f32[8,8], out Y: f32[8,8]) {
  for n in 4 parallel {
    if n < 1 {
      for j in 8 {
        Y[0, j] = A[0, j]
      }
    } else {
      for k in 8 {
        Y[n - 1 + 1, k] = A[n - 1, k]
      }
    }
  }
}
)");
}

TEST(JoinParallel, LoopsThatMeetStayApart) {
  for (const auto& [row, operand] : {std::pair{"0", "A[m, k]"}, std::pair{"1", "Y[0, k]"}})
    EXPECT_THAT(after("join_parallel", two_loops(row, operand)), HasSubstr("for m in 3 parallel"));
  // One iteration that is alone gains nothing: no thread is started for it.
  EXPECT_THAT(after("join_parallel,simplify", two_loops("0", "A[m, k]")),
              ::testing::Not(HasSubstr("for n")));
}

TEST(Peel, ParallelLoopsChooseInside) {
  const std::string out = after("peel", R"(func f(A: f32[55], out Y: f32[55]) {
  for o in 4 parallel, i in 16 vector {
    if o * 16 + i < 55 {
      Y[o * 16 + i] = A[o * 16 + i]
    }
  }
}
)");
  EXPECT_THAT(out, HasSubstr("for o in 4 parallel {\n    if o < 3 {"));
  EXPECT_THAT(out, HasSubstr("in 7 vector"));
}

TEST(Peel, WorksOnSymbolicExtents) {
  const std::string out = after("peel", R"(func f(n: int in 0..99, A: f32[n], out Y: f32[n]) {
  for o in (n + 7) / 8, i in 8 {
    if o * 8 + i < n {
      Y[o * 8 + i] = A[o * 8 + i]
    }
  }
}
)");
  EXPECT_THAT(out, HasSubstr("for o in n / 8, i in 8 {\n    Y["));
}

TEST(Peel, LeavesOutATailInWhichNothingRuns) {
  EXPECT_EQ(after("peel", R"(func f(A: f32[56,3], inout Y: f32[56]) {
  for h in 56 parallel {
    for r in 3 {
      if h % 28 + r * 12 < 40 {
        Y[h] += A[h, r]
      }
    }
  }
}
)"),
            R"(func f(A: f32[56,3], inout Y: f32[56]) {
  for h in 56 parallel, r in min((3 - h % 28) / 12 + 4, 3) {
    Y[h] += A[h, r]
  }
}
)");
  // Here something runs in all iterations.
  EXPECT_THAT(after("peel", R"(func f(A: f32[56,3], inout Y: f32[56]) {
  for h in 56 parallel {
    for r in 3 {
      if h % 28 + r * 12 < 40 {
        Y[h] += A[h, r]
      }
      Y[h] += 1.0
    }
  }
}
)"),
              HasSubstr("r.tail"));
}

TEST(Peel, LeavesGuardsThatAreNotTails) {
  const std::string text = R"(func f(A: f32[16], out Y: f32[16]) {
  for o in 16 {
    if o % 2 == 0 {
      Y[o] = A[o]
    }
  }
}
)";
  EXPECT_EQ(after("peel", text), text);
}

TEST(HoistGuards, LeaveLoopsTheyDoNotDependOn) {
  EXPECT_EQ(after("hoist_guards", R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  for i in 4 {
    for j in 8 vector {
      if i < 3 && i + j < 9 {
        Y[i, j] = A[i, j]
      }
    }
  }
}
)"),
            R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  for i in 4 {
    if i < 3 {
      for j in 8 vector {
        if i + j < 9 {
          Y[i, j] = A[i, j]
        }
      }
    }
  }
}
)");
}

TEST(HoistGuards, NeighboursUnderOneGuardShareIt) {
  EXPECT_EQ(after("hoist_guards", R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  for i in 4 {
    alloc T: f32[8]
    for j in 8 {
      if i < 3 {
        T[j] = A[i, j]
      }
    }
    for k in 8 {
      if i < 3 {
        Y[i, k] = T[k]
      }
    }
  }
}
)"),
            R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  for i in 4 {
    if i < 3 {
      alloc T: f32[8]
      for j in 8 {
        T[j] = A[i, j]
      }
      for k in 8 {
        Y[i, k] = T[k]
      }
    }
  }
}
)");
}

TEST(HoistGuards, ConditionsOnValuesAndOtherGuardsStay) {
  const std::string text = R"(func f(A: f32[4,8], out Y: f32[4,8]) {
  for i in 4 {
    for j in 8 {
      if A[i, 0] < 3.0 {
        Y[i, j] = A[i, j]
      }
    }
    for k in 8 {
      if k < i {
        Y[i, k] = 0.0
      }
    }
  }
}
)";
  EXPECT_EQ(after("hoist_guards", text), text);
}

}  // namespace
}  // namespace tilewright::lower
