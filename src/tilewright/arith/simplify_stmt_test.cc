#include <gtest/gtest.h>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/text.h"

namespace tilewright::arith {
namespace {

/// Simplifies the body of a function given as text; compares it with another text.
void expect_simplified(const std::string& from, const std::string& to) {
  const auto f = parse_func(from), want = parse_func(to);
  ASSERT_TRUE(f.has_value()) << to_string(f.error());
  ASSERT_TRUE(want.has_value()) << to_string(want.error());
  Func got = *f;
  got.body = simplify(f->body, Bounds(*f));
  EXPECT_TRUE(equal(got, *want)) << print(got) << "wanted\n" << print(*want);
  EXPECT_EQ(simplify(got.body, Bounds(got)).get(), got.body.get()) << "not stable";
}

TEST(SimplifyStmt, LoopsGiveRanges) {
  expect_simplified(R"(
func f(A: f32[64], out B: f32[64]) {
  for i in 16, j in 4 {
    block B(x: space 64 = (i * 4 + j) / 4 * 4 + (i * 4 + j) % 4) { B[x] = A[x + 0] + 0.0 }
  }
})",
                    R"(
func f(A: f32[64], out B: f32[64]) {
  for i in 16, j in 4 {
    block B(x: space 64 = i * 4 + j) { B[x] = A[x] + 0.0 }
  }
})");
}

TEST(SimplifyStmt, GuardsGiveFacts) {
  expect_simplified(R"(
func f(n: int in 1..64, A: f32[n], out B: f32[n]) {
  for i in (n + 3) / 4, j in 4 {
    block B(x: space n = min(i * 4 + j, n - 1)) where i * 4 + j < n { B[x] = A[min(x, n - 1)] }
  }
})",
                    R"(
func f(n: int in 1..64, A: f32[n], out B: f32[n]) {
  for i in (n + 3) / 4, j in 4 {
    block B(x: space n = i * 4 + j) where i * 4 + j < n { B[x] = A[x] }
  }
})");
}

TEST(SimplifyStmt, DecidedConditionsAndGuards) {
  expect_simplified(R"(
func f(A: f32[8], out B: f32[8]) {
  for i in 8 {
    if i < 8 {
      block B(x: space 8 = i) where i >= 0 { B[x] = select(x < 8, A[x], 0.0) }
    } else {
      block C(x: space 8 = i) { B[x] = 1.0 }
    }
  }
})",
                    R"(
func f(A: f32[8], out B: f32[8]) {
  for i in 8 {
    block B(x: space 8 = i) { B[x] = A[x] }
  }
})");
}

TEST(SimplifyStmt, BranchesKnowTheConditionAndBlocksTheirBindings) {
  expect_simplified(R"(
func f(A: f32[8], out B: f32[8]) {
  for i in 8 {
    if i < 3 {
      block B(x: space 8 = i) where i < 5 { B[x] = A[min(x, 3)] }
    } else {
      block C(x: space 8 = i) where i > 2 { B[x] = A[max(x, 3)] }
    }
  }
})",
                    R"(
func f(A: f32[8], out B: f32[8]) {
  for i in 8 {
    if i < 3 {
      block B(x: space 8 = i) { B[x] = A[x] }
    } else {
      block C(x: space 8 = i) { B[x] = A[x] }
    }
  }
})");
}

TEST(SimplifyStmt, NothingToDoKeepsTheHandle) {
  const auto f = parse_func(R"(
func f(A: f32[8, 8], out B: f32[8, 8]) {
  for i in 8, j in 8 {
    block B(x: space 8 = i, y: space 8 = j) { B[x, y] = A[y, x] * 0.0 }
  }
})");
  ASSERT_TRUE(f.has_value()) << to_string(f.error());
  EXPECT_EQ(simplify(f->body).get(), f->body.get());
}

}  // namespace
}  // namespace tilewright::arith
