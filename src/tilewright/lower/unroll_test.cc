#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/lower/testing/after.h"

namespace tilewright::lower {
namespace {

using testing::after;
using ::testing::HasSubstr;

TEST(Unroll, CopiesInOrder) {
  EXPECT_EQ(after("unroll", R"(func f(A: f32[6], out Y: f32[6]) {
  for o in 2, i in 3 unroll {
    if i < 2 {
      Y[o * 3 + i] = A[o * 3 + i] * 2.0
    }
  }
}
)"),
            R"(func f(A: f32[6], out Y: f32[6]) {
  for o in 2 {
    Y[o * 3] = A[o * 3] * 2.0
    Y[o * 3 + 1] = A[o * 3 + 1] * 2.0
  }
}
)");
}

TEST(Unroll, ShortensVectorLoopsWhoseLastLanesDoNothing) {
  const std::string out = after("unroll", R"(func f(A: f32[24], out Y: f32[24]) {
  for o in 2 unroll, i in 16 vector {
    if o * 16 + i < 24 {
      Y[o * 16 + i] = A[o * 16 + i]
    }
  }
}
)");
  EXPECT_THAT(out, ::testing::HasSubstr("in 16 vector"));
  EXPECT_THAT(out, ::testing::HasSubstr("in 8 vector"));
  EXPECT_THAT(out, ::testing::Not(::testing::HasSubstr("if ")));
}

TEST(Unroll, CopiesShareTheGuardThatIsLeft) {
  EXPECT_EQ(after("unroll", R"(func f(A: f32[34], N: i64[1], out Y: f32[34]) {
  for t in 9 {
    for i in 4 unroll {
      if t * 4 + i < 34 {
        Y[t * 4 + i] = A[t * 4 + i]
      }
    }
    for j in 2 unroll {
      if N[0] < 3 {
        Y[j] = A[j]
      }
    }
  }
}
)"),
            R"(func f(A: f32[34], N: i64[1], out Y: f32[34]) {
  for t in 9 {
    Y[t * 4] = A[t * 4]
    Y[t * 4 + 1] = A[t * 4 + 1]
    if t < 8 {
      Y[t * 4 + 2] = A[t * 4 + 2]
      Y[t * 4 + 3] = A[t * 4 + 3]
    }
    if N[0] < 3 {
      Y[0] = A[0]
    }
    if N[0] < 3 {
      Y[1] = A[1]
    }
  }
}
)");
}

TEST(Unroll, HugeLoopsStayLoops) {
  const std::string out = after("unroll", R"(func f(A: f32[90000], out Y: f32[90000]) {
  for i in 90000 unroll {
    Y[i] = A[i]
  }
}
)");
  EXPECT_THAT(out, HasSubstr("for i in 90000 {"));
}

}  // namespace
}  // namespace tilewright::lower
