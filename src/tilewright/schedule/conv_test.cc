// A whole schedule by hand: the CPU convolution, kept correct step by step.
#include <gtest/gtest.h>

#include "tilewright/schedule/step.h"
#include "tilewright/schedule/testing/oracle.h"

namespace tilewright::schedule {
namespace {

/// Convolution 3x3 with padding, bias and ReLU in channel blocks of 4.
constexpr const char* kConv = R"(
func conv(X: f32[2, 12, 11, 4], const W: f32[16, 8, 3, 3], bias: f32[16], out Y: f32[4, 12, 11, 4]) {
  alloc P: f32[2, 14, 13, 4]
  for P.c in 2, P.h in 14, P.w in 13, P.ci in 4 {
    block P(c: space 2 = P.c, h: space 14 = P.h, w: space 13 = P.w, ci: space 4 = P.ci) {
      P[c, h, w, ci] = select(1 <= h && h < 13 && 1 <= w && w < 12, X[c, h - 1, w - 1, ci], 0.0)
    }
  }
  alloc C: f32[4, 12, 11, 4]
  for C.init.ko in 4, C.init.h in 12, C.init.w in 11, C.init.ki in 4 {
    block C.init(ko: space 4 = C.init.ko, h: space 12 = C.init.h, w: space 11 = C.init.w, ki: space 4 = C.init.ki) {
      C[ko, h, w, ki] = 0.0
    }
  }
  for C.ko in 4, C.h in 12, C.w in 11, C.ki in 4, C.c in 2, C.r in 3, C.s in 3, C.ci in 4 {
    block C(ko: space 4 = C.ko, h: space 12 = C.h, w: space 11 = C.w, ki: space 4 = C.ki, c: reduce 2 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s, ci: reduce 4 = C.ci) {
      C[ko, h, w, ki] += P[c, h + r, w + s, ci] * W[ko * 4 + ki, c * 4 + ci, r, s]
    }
  }
  for Y.ko in 4, Y.h in 12, Y.w in 11, Y.ki in 4 {
    block Y(ko: space 4 = Y.ko, h: space 12 = Y.h, w: space 11 = Y.w, ki: space 4 = Y.ki) {
      Y[ko, h, w, ki] = max(C[ko, h, w, ki] + bias[ko * 4 + ki], 0.0)
    }
  }
}
)";

constexpr const char* kTrace = R"(
cache_read(block=C, buffer=W, copy=Wp, loop="")
split(loop=C.ko, factor=2)
split(loop=C.h, factor=3)
split(loop=C.w, factor=4)
reorder(loops=[C.h.o, C.h.i, C.ko.o, C.w.o, C.c, C.r, C.s, C.ci, C.w.i, C.ko.i, C.ki])
compute_at(block=C.init, loop=C.w.o)
reverse_compute_at(block=Y, loop=C.w.o)
set_scope(buffer=C, scope=local)
compute_at(block=P, loop=C.h.i)
parallel(loop=C.h.o)
vectorize(loop=C.ki)
vectorize(loop=C.init.ki)
vectorize(loop=Y.ki)
vectorize(loop=P.ci)
unroll(loop=C.ko.i)
unroll(loop=C.w.i)
unroll(loop=C.init.ko)
unroll(loop=C.init.w)
unroll(loop=Y.ko)
unroll(loop=Y.w)
cut(loop=C.w.o, parts=[2, 1])
)";

TEST(ConvSlow, ScheduleKeepsItsMeaningStepByStep) {
  const auto func = parse_func(kConv);
  ASSERT_TRUE(func) << to_string(func.error());
  const auto trace = parse_trace(kTrace);
  ASSERT_TRUE(trace) << to_string(trace.error());
  Func now = *func;
  for (const Step& step : *trace) {
    const auto next = schedule::apply(step, now);
    ASSERT_TRUE(next) << to_string(next.error()) << "\n" << tilewright::print(now);
    now = *next;
    ASSERT_EQ(testing::difference(*func, now, 7), "") << print(step) << "\n"
                                                      << tilewright::print(now);
  }
  // The width of 11 is two tiles of 4 and one of exactly 3, none of them guarded.
  const std::string text = tilewright::print(now);
  EXPECT_NE(text.find("C.w.i@0 in 4 unroll, C.ko.i@0 in 2 unroll, C.ki@0 in 4 vector"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("C.w.i@1 in 3 unroll, C.ko.i@1 in 2 unroll, C.ki@1 in 4 vector"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find(" where "), std::string::npos) << text;
}

TEST(Conv, SlidesItsPaddingDownTheRows) {
  const auto func = parse_func(kConv);
  ASSERT_TRUE(func) << to_string(func.error());
  const auto trace = parse_trace(
      "split(loop=C.h, factor=3)\n"
      "reorder(loops=[C.h.o, C.h.i, C.ko])\n"
      "compute_at(block=C.init, loop=C.h.i)\n"
      "reverse_compute_at(block=Y, loop=C.h.i)\n"
      "compute_at(block=P, loop=C.h.i)\n"
      "slide(block=P, loop=C.h.i, iter=h)\n"
      "parallel(loop=C.h.o)\n");
  ASSERT_TRUE(trace) << to_string(trace.error());
  const auto done = replay(*func, *trace);
  ASSERT_TRUE(done) << to_string(done.error());
  const std::string text = tilewright::print(*done);
  EXPECT_EQ(testing::difference(*func, *done, 7), "") << text;
  // One line buffer per thread; after its first three rows each iteration makes one.
  EXPECT_NE(text.find("where C.h.i == 0 || P.h >= 2"), std::string::npos) << text;
  EXPECT_LT(text.find("for C.h.o in 4 parallel"), text.find("alloc P")) << text;
  EXPECT_LT(text.find("alloc P"), text.find("for C.h.i in 3")) << text;
}

}  // namespace
}  // namespace tilewright::schedule
