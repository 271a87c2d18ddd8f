#include "tilewright/ir/join_axes.h"

#include <gtest/gtest.h>

#include <string>

#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright {
namespace {

Func func_of(const std::string& text) {
  auto func = parse_func(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return func ? *std::move(func) : Func{};
}

std::string with_joined_axes(const std::string& text, Stage stage = Stage::Tensor) {
  const Func joined = join_axes(func_of(text));
  const Status ok = verify(joined, stage);
  EXPECT_TRUE(ok) << to_string(ok.error());
  return print(joined);
}

bool stays(const std::string& text, Stage stage = Stage::Tensor) {
  return with_joined_axes(text, stage) == print(func_of(text));
}

TEST(JoinAxes, PixelsOfAProductAreOneAxis) {
  EXPECT_EQ(with_joined_axes(R"(
func f(x: f32[2,7,5,3], const W: f32[3,4], b: f32[4], out y: f32[2,4,7,5]) {
  alloc s: f32[2,7,5,4]
  for i in 2, h in 7, w in 5, n in 4 {
    block start(i: space 2 = i, h: space 7 = h, w: space 5 = w, n: space 4 = n) { s[i, h, w, n] = 0.0 }
  }
  for i2 in 2, h2 in 7, w2 in 5, n2 in 4, k2 in 3 {
    block sum(i: space 2 = i2, h: space 7 = h2, w: space 5 = w2, n: space 4 = n2, k: reduce 3 = k2) {
      s[i, h, w, n] += x[i, h, w, k] * W[k, n]
    }
  }
  for i3 in 2, n3 in 4, h3 in 7, w3 in 5 {
    block end(i: space 2 = i3, n: space 4 = n3, h: space 7 = h3, w: space 5 = w3) {
      y[i, n, h, w] = s[i, h, w, n] + b[n]
    }
  }
}
)"),
            print(func_of(R"(
func f(x: f32[2,35,3], const W: f32[3,4], b: f32[4], out y: f32[2,4,35]) {
  alloc s: f32[2,35,4]
  for i in 2, w in 35, n in 4 {
    block start(i: space 2 = i, w: space 35 = w, n: space 4 = n) { s[i, w, n] = 0.0 }
  }
  for i2 in 2, w2 in 35, n2 in 4, k2 in 3 {
    block sum(i: space 2 = i2, w: space 35 = w2, n: space 4 = n2, k: reduce 3 = k2) {
      s[i, w, n] += x[i, w, k] * W[k, n]
    }
  }
  for i3 in 2, n3 in 4, w3 in 35 {
    block end(i: space 2 = i3, n: space 4 = n3, w: space 35 = w3) {
      y[i, n, w] = s[i, w, n] + b[n]
    }
  }
}
)"))) << "images and pixels are side by side in s, not in y";
}

/// y[h, w] from `value`, with an x of 7x5, a b of 5 and an r of 5x7.
std::string pixels(const std::string& value, const std::string& loops = "for h in 7, w in 5") {
  return "func f(x: f32[7,5], b: f32[5], r: f32[5,7], out y: f32[7,5]) {\n  " + loops +
         " {\n    block p(h: space 7 = h, w: space 5 = w) { y[h, w] = " + value + " }\n  }\n}\n";
}

TEST(JoinAxes, OnlyWhatIsAlwaysTogether) {
  EXPECT_FALSE(stays(pixels("x[h, w]")));
  EXPECT_FALSE(stays(pixels("x[h, w] + b[0]")));
  EXPECT_TRUE(stays(pixels("x[h, w] + b[w]"))) << "one of them alone";
  EXPECT_TRUE(stays(pixels("x[h, w] + r[w, h]"))) << "in another order";
  EXPECT_TRUE(stays(pixels("x[h, (w + 1) % 5]"))) << "a neighbour";
  EXPECT_TRUE(stays(pixels("x[h, w] + f32(w)"))) << "its number is a value";
  EXPECT_TRUE(stays(pixels("x[h, w]", "for w in 5, h in 7"))) << "loops in another order";
  EXPECT_TRUE(stays(pixels("x[h, w]", "for h in 7 parallel, w in 5"), Stage::Scheduled))
      << "somebody scheduled it";
  EXPECT_TRUE(stays(pixels("select(h < 3, x[h, w], 0.0)"))) << "rows differ";
}

TEST(JoinAxes, ALoopThatRunsTwoIterationsStays) {
  EXPECT_TRUE(stays(R"(
func f(x: f32[7,5], b: f32[5], out y: f32[7,5]) {
  for h in 7, w in 5 {
    block p(h: space 7 = h, w: space 5 = w, v: space 5 = w) { y[h, w] = x[h, w] + b[v] }
  }
}
)",
                    Stage::Scheduled));
}

TEST(JoinAxes, AxesBesideThoseThatAGuardNames) {
  const auto joined = [](const std::string& guard) {
    return !stays(R"(
func f(x: f32[7,5,2,3], const W: f32[2,3], out y: f32[7,5]) {
  for i in 7, j in 5 {
    block start(h: space 7 = i, w: space 5 = j) { y[h, w] = 0.0 }
  }
  for i2 in 7, j2 in 5, o in 2, c in 3 {
    block sum(h: space 7 = i2, w: space 5 = j2, r: reduce 2 = o, s: reduce 3 = c) where )" +
                  guard + R"( {
      y[h, w] += x[h, w, r, s] * W[r, s]
    }
  }
}
)");
  };
  EXPECT_TRUE(joined("o * 3 + c < 4"));     // pixels
  EXPECT_TRUE(joined("i2 * 5 + j2 < 33"));  // terms
  EXPECT_FALSE(joined("i2 + o < 8"));
}

TEST(JoinAxes, WholeAxesOnly) {
  EXPECT_TRUE(stays(R"(
func f(x: f32[7,6], out y: f32[7,5]) {
  for h in 7, w in 5 {
    block p(h: space 7 = h, w: space 5 = w) { y[h, w] = x[h, w] }
  }
}
)"));
}

TEST(JoinAxes, WhatOneNestNeedsApartStaysApartInAll) {
  EXPECT_TRUE(stays(R"(
func f(x: f32[7,5], out y: f32[7,5], out z: f32[7]) {
  alloc t: f32[7,5]
  for h in 7, w in 5 {
    block a(h: space 7 = h, w: space 5 = w) { t[h, w] = x[h, w] }
  }
  for h2 in 7, w2 in 5 {
    block b(h: space 7 = h2, w: space 5 = w2) { y[h, w] = t[h, w] }
  }
  for h3 in 7 {
    block c(h: space 7 = h3) { z[h] = t[h, 2] }
  }
}
)"));
}

TEST(JoinAxes, SumsOverWholePlanes) {
  EXPECT_EQ(with_joined_axes(R"(
func f(x: f32[3,7,5], inout s: f32[3]) {
  for c in 3, h in 7, w in 5 {
    block sum(c: space 3 = c, h: reduce 7 = h, w: reduce 5 = w) { s[c] += x[c, h, w] }
  }
}
)"),
            print(func_of(R"(
func f(x: f32[3,35], inout s: f32[3]) {
  for c in 3, w in 35 {
    block sum(c: space 3 = c, w: reduce 35 = w) { s[c] += x[c, w] }
  }
}
)")));
}

}  // namespace
}  // namespace tilewright
