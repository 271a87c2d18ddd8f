#include "tilewright/ir/unique_names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tilewright/ir/text.h"

namespace tilewright {
namespace {

std::string renamed(const char* text) {
  const auto func = parse_func(text);
  return func ? print(with_unique_names(*func)) : to_string(func.error());
}

TEST(UniqueNames, LoopsAfterTheirBlocksAndWhatBeginsASum) {
  EXPECT_EQ(renamed(R"(
func f(A: f32[4,8], out C: f32[4], out D: f32[4]) {
  alloc t: f32[4]
  for i in 4 {
    block set(i: space 4 = i) { t[i] = 0.0 }
  }
  for i in 4, k in 8 {
    block sum(i: space 4 = i, k: reduce 8 = k) { t[i] += A[i, k] }
  }
  for i in 4 {
    block set(i: space 4 = i) { C[i] = t[i] }
  }
  for i in 4 {
    block set(i: space 4 = i) { D[i] = t[i] }
  }
}
)"),
            print(*parse_func(R"(
func f(A: f32[4,8], out C: f32[4], out D: f32[4]) {
  alloc t: f32[4]
  for i in 4 {
    block sum.init(i: space 4 = i) { t[i] = 0.0 }
  }
  for sum.i in 4, k in 8 {
    block sum(i: space 4 = sum.i, k: reduce 8 = k) { t[i] += A[i, k] }
  }
  for set.i in 4 {
    block set(i: space 4 = set.i) { C[i] = t[i] }
  }
  for set_2.i in 4 {
    block set_2(i: space 4 = set_2.i) { D[i] = t[i] }
  }
}
)")));
}

TEST(UniqueNames, BuffersOfOneName) {
  EXPECT_EQ(renamed(R"(
func f(A: f32[4], out C: f32[4]) {
  for i in 4 {
    alloc C: f32[1]
    block a(i: space 4 = i) { C[0] = A[i] }
  }
}
)"),
            print(*parse_func(R"(
func f(A: f32[4], out C: f32[4]) {
  for i in 4 {
    alloc C_2: f32[1]
    block a(i: space 4 = i) { C_2[0] = A[i] }
  }
}
)")));
}

/// `begin` sets, `combine` combines, in blocks a and b.
std::string begins_with(const char* begin, const char* combine) {
  return renamed(fmt::format(R"(
func f(A: f32[4,8], out C: f32[4]) {{
  for i in 4 {{
    block a(i: space 4 = i) {{ C[i] = {} }}
  }}
  for j in 4, k in 8 {{
    block b(j: space 4 = j, k: reduce 8 = k) {{ C[j] {} A[j, k] }}
  }}
}}
)",
                             begin, combine)
                     .c_str());
}

TEST(UniqueNames, OnlyNeutralElementsBeginAReduction) {
  using ::testing::HasSubstr;
  for (const auto& [begin, combine] : std::vector<std::pair<const char*, const char*>>{
           {"0.0", "+="}, {"1.0", "*="}, {"-5.0", "max="}, {"5.0", "min="}})
    EXPECT_THAT(begins_with(begin, combine), HasSubstr("block b.init(")) << combine;
  for (const auto& [begin, combine] : std::vector<std::pair<const char*, const char*>>{
           {"1.0", "+="}, {"0.0", "*="}, {"A[i, 0]", "max="}})
    EXPECT_THAT(begins_with(begin, combine), HasSubstr("block a(")) << begin << combine;
}

TEST(UniqueNames, OneBeginningForSeveralSums) {
  EXPECT_THAT(renamed(R"(
func f(A: f32[4,8], out C: f32[4]) {
  for i in 4 {
    block a(i: space 4 = i) { C[i] = 0.0 }
  }
  for j in 4, k in 8 {
    block b(j: space 4 = j, k: reduce 8 = k) { C[j] += A[j, k] }
  }
  for l in 4, m in 8 {
    block c(j: space 4 = l, k: reduce 8 = m) { C[j] += A[j, k] }
  }
}
)"),
              ::testing::AllOf(::testing::HasSubstr("block b.init("),
                               ::testing::Not(::testing::HasSubstr("block c.init("))));
}

TEST(UniqueNames, LoopsAreNoArguments) {
  EXPECT_THAT(renamed(R"(
func f(n: int in 1..8, A: f32[8], out C: f32[8]) {
  for n in 8 {
    block a(i: space 8 = n) { C[i] = A[i] }
  }
}
)"),
              ::testing::HasSubstr("for a.n in 8"));
}

TEST(UniqueNames, NothingChangesWhatIsUnique) {
  const char* text = R"(
func f(n: int in 1..8, A: f32[n,8], out C: f32[n]) {
  for i in n {
    block c.init(i: space n = i) { C[i] = 0.0 }
  }
  for j in n, k in 8 {
    block c(j: space n = j, k: reduce 8 = k) { C[j] += A[j, k] }
  }
}
)";
  const auto func = parse_func(text);
  ASSERT_TRUE(func) << to_string(func.error());
  EXPECT_TRUE(equal(with_unique_names(*func), *func));
}

}  // namespace
}  // namespace tilewright
