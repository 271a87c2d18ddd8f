#include "tilewright/ir/separate_nests.h"

#include <gtest/gtest.h>

#include <string>

#include "tilewright/ir/text.h"
#include "tilewright/ir/unique_names.h"
#include "tilewright/ir/verify.h"

namespace tilewright {
namespace {

Func read_func(const std::string& text) {
  auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return func ? *std::move(func) : Func{};
}

std::string separated(const std::string& text) { return print(separate_nests(read_func(text))); }

TEST(SeparateNests, ASumAndWhatBeginsIt) {
  EXPECT_EQ(separated(R"(
func mm(A: f32[4,8], B: f32[8,6], out C: f32[4,6]) {
  for i in 4, j in 6 {
    block init(i: space 4 = i, j: space 6 = j) { C[i, j] = 0.0 }
    for k in 8 {
      block mm(i: space 4 = i, j: space 6 = j, k: reduce 8 = k) { C[i, j] += A[i, k] * B[k, j] }
    }
  }
}
)"),
            print(read_func(R"(
func mm(A: f32[4,8], B: f32[8,6], out C: f32[4,6]) {
  for i in 4, j in 6 {
    block init(i: space 4 = i, j: space 6 = j) { C[i, j] = 0.0 }
  }
  for i in 4, j in 6, k in 8 {
    block mm(i: space 4 = i, j: space 6 = j, k: reduce 8 = k) { C[i, j] += A[i, k] * B[k, j] }
  }
}
)")));
}

/// Printed programs do not show whether a loop's variable is the one that is meant.
TEST(SeparateNests, EveryNestHasItsOwnVariable) {
  const Func separate = with_unique_names(separate_nests(read_func(R"(
func f(A: f32[8], out B: f32[8], out C: f32[8]) {
  for i in 8 {
    block a(i: space 8 = i) { B[i] = A[i] }
    block b(i: space 8 = i) { C[i] = B[i] }
  }
}
)")));
  const Status ok = verify(separate, Stage::Tensor);
  EXPECT_TRUE(ok) << to_string(ok.error());
}

/// Two blocks in one loop; `first` and `second` are what they do.
std::string two(const std::string& first, const std::string& second, const char* kind = "") {
  return "func f(A: f32[9], inout B: f32[9], out C: f32[9]) {\n  for i in 8 " + std::string(kind) +
         "{\n    block a(i: space 8 = i) { " + first + " }\n    block b(i: space 8 = i) { " +
         second + " }\n  }\n}\n";
}

TEST(SeparateNests, OnlyWhereIterationsDoNotMeet) {
  const auto stays = [](const std::string& text) {
    return separated(text) == print(read_func(text));
  };
  EXPECT_FALSE(stays(two("B[i] = A[i]", "C[i] = B[i]")));
  EXPECT_FALSE(stays(two("B[i] = A[i]", "C[i] = A[i + 1]"))) << "nobody writes A";
  EXPECT_TRUE(stays(two("B[i] = A[i]", "C[i] = B[i + 1]"))) << "before it is overwritten";
  EXPECT_TRUE(stays(two("B[i] = A[i]", "C[i] = B[i] + B[i + 1]"))) << "the same";
  EXPECT_TRUE(stays(two("C[i] = B[0]", "B[i] = A[i]"))) << "b changes what a reads later";
  EXPECT_TRUE(stays(two("B[0] = A[i]", "C[i] = B[0]"))) << "one element for all iterations";
  EXPECT_TRUE(stays(two("B[i] = A[i]", "B[8 - i] = A[i]"))) << "the last one counts";
  EXPECT_TRUE(stays(two("B[i] = A[i]", "C[i] = B[i]", "unroll "))) << "somebody scheduled it";
}

TEST(SeparateNests, MemoryOfAnIterationKeepsItTogether) {
  const std::string text = R"(
func f(A: f32[8,4], out C: f32[8]) {
  for i in 8 {
    alloc t: f32[1]
    block begin(i: space 8 = i) { t[0] = 0.0 }
    for k in 4 {
      block sum(i: space 8 = i, k: reduce 4 = k) { t[0] += A[i, k] }
    }
    block end(i: space 8 = i) { C[i] = t[0] }
  }
}
)";
  EXPECT_EQ(separated(text), print(read_func(text)));
  const std::string whole = R"(
func f(A: f32[8], out C: f32[8]) {
  for i in 8 {
    alloc t: f32[8]
    block begin(i: space 8 = i) { t[i] = A[i] }
    block end(i: space 8 = i) { C[i] = t[i] }
  }
}
)";
  EXPECT_EQ(separated(whole), print(read_func(whole)));
}

TEST(SeparateNests, IntrinsicsStayWhereTheyAre) {
  const std::string text = R"(
func g(X: f32[1], out Y: f32[1]) {
  block g(i: space 1 = 0) { Y[i] = X[i] }
}
func f(A: f32[8], out B: f32[8], out C: f32[8]) {
  for i in 8 {
    call g(A[i:+1], B[i:+1])
    block b(i: space 8 = i) { C[i] = A[i] }
  }
}
)";
  EXPECT_EQ(separated(text), print(read_func(text)));
}

}  // namespace
}  // namespace tilewright
