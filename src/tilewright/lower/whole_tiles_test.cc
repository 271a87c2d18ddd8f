#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::lower {
namespace {

/// The guards that `text` has after the pass.
int guards_left(const std::string& text) {
  const auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  const auto made = run_passes(*func, {"whole_tiles"});
  EXPECT_TRUE(made) << to_string(made.error());
  const std::string printed = print(*made);
  int count = 0;
  for (size_t at = printed.find("if "); at != std::string::npos; at = printed.find("if ", at + 1))
    ++count;
  return count;
}

/// Tiles of 4 sums of 3 products each, with parts that differ from case to case.
std::string program(const std::string& type, const std::string& image, const std::string& begin,
                    const std::string& product) {
  const std::string sums = type == "f32" ? "f32" : "i32";
  return "func f(A: " + type + "[7], B: " + type + "[7,6], out C: " + sums + R"([6]) {
  for t in 2 {
    alloc S: )" +
         sums + R"([4] fpga.bram
    )" + begin +
         R"(
    for r in 3 {
      alloc X: )" +
         type + R"([3] fpga.bram
      )" +
         image + R"(
      alloc W: )" +
         type + R"([3,4] fpga.bram
      for wl in 3, wi in 4 {
        if r * 3 + wl < 7 && t * 4 + wi < 6 {
          W[wl, wi] = B[r * 3 + wl, t * 4 + wi]
        }
      }
      for ci in 4, cl in 3 {
        if t * 4 + ci < 6 && r * 3 + cl < 7 {
          S[ci] += )" +
         product + R"(
        }
      }
    }
    for di in 4 {
      if t * 4 + di < 6 {
        C[t * 4 + di] = S[di]
      }
    }
  }
}
)";
}

const char* const kGuardedBegin = "for si in 4 { if t * 4 + si < 6 { S[si] = 0.0 } }";
const char* const kImage = "for xl in 3 { if r * 3 + xl < 7 { X[xl] = A[r * 3 + xl] } }";

TEST(WholeTiles, OnlyWhatIsWrittenToMemoryKeepsItsGuard) {
  EXPECT_EQ(guards_left(program("f32", kImage, kGuardedBegin, "X[cl] * W[cl, ci]")), 1);
}

TEST(WholeTiles, SumsWithoutTheirOwnBeginningKeepWhatLeavesElementsOut) {
  // All four sums begin: the last two are zero and nobody says that they are not read.
  EXPECT_EQ(guards_left(program("f32", kImage, "for si in 4 { S[si] = 0.0 }", "X[cl] * W[cl, ci]")),
            2);
}

TEST(WholeTiles, ZeroTimesAnUnknownFloatIsNoZero) {
  const char* const whole = "for xl in 3 { X[xl] = A[xl] }";  // filled to the end
  EXPECT_EQ(guards_left(program("f32", whole, kGuardedBegin, "X[cl] * W[cl, ci]")), 2);
  EXPECT_EQ(guards_left(program("i8", whole, "for si in 4 { if t * 4 + si < 6 { S[si] = i32(0) } }",
                                "i32(X[cl]) * i32(W[cl, ci])")),
            1);
}

TEST(WholeTiles, MemoryIsNotReadOutside) {
  EXPECT_EQ(
      guards_left(program("i8", kImage, "for si in 4 { if t * 4 + si < 6 { S[si] = i32(0) } }",
                          "i32(X[cl]) * i32(B[r * 3 + cl, t * 4 + ci])")),
      2);
}

/// Rows of a ring stay from one round to the next: what a round leaves out is the last round's.
TEST(WholeTiles, RingsKeepTheirGuards) {
  EXPECT_EQ(guards_left(R"(
func f(A: f32[9], out C: f32[8]) {
  alloc R: f32[2] fpga.bram
  for t in 8 {
    for s in 2 {
      if t + s < 9 && s < 1 {
        R[s] = A[t + s]
      }
    }
    C[t] = R[0]
  }
}
)"),
            1);
}

}  // namespace
}  // namespace tilewright::lower
