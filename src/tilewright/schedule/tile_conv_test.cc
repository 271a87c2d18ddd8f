// A convolution on tiles, scheduled for a matrix unit step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/schedule/testing/oracle.h"
#include "tilewright/schedule/testing/property.h"

namespace tilewright::schedule {
namespace {

using ::testing::HasSubstr;

const char* const kTileConv = R"(
func tile_conv(X: i8[1,2,4,4,1,4], const Wt: i8[4,2,3,3,4,4], bias: i32[1,4,1,1,1,4], out Y: i8[1,4,4,4,1,4]) {
  alloc P: i8[1,2,6,6,1,4]
  for P.n in 1, P.c in 2, P.h in 6, P.w in 6, P.b in 1, P.i in 4 {
    block P(n: space 1 = P.n, c: space 2 = P.c, h: space 6 = P.h, w: space 6 = P.w, b: space 1 = P.b, i: space 4 = P.i) {
      P[n, c, h, w, b, i] = select(1 <= h && h < 5 && 1 <= w && w < 5, X[n, c, h - 1, w - 1, b, i], 0i8)
    }
  }
  alloc C: i32[1,4,4,4,1,4]
  for C.init.n in 1, C.init.o in 4, C.init.h in 4, C.init.w in 4, C.init.b in 1, C.init.co in 4 {
    block C.init(n: space 1 = C.init.n, o: space 4 = C.init.o, h: space 4 = C.init.h, w: space 4 = C.init.w, b: space 1 = C.init.b, co: space 4 = C.init.co) {
      C[n, o, h, w, b, co] = 0i32
    }
  }
  for C.n in 1, C.o in 4, C.h in 4, C.w in 4, C.b in 1, C.co in 4, C.ci in 2, C.r in 3, C.s in 3, C.bi in 4 {
    block C(n: space 1 = C.n, o: space 4 = C.o, h: space 4 = C.h, w: space 4 = C.w, b: space 1 = C.b, co: space 4 = C.co, ci: reduce 2 = C.ci, r: reduce 3 = C.r, s: reduce 3 = C.s, bi: reduce 4 = C.bi) {
      C[n, o, h, w, b, co] += i32(P[n, ci, h + r, w + s, b, bi]) * i32(Wt[o, ci, r, s, co, bi])
    }
  }
  for Y.n in 1, Y.o in 4, Y.h in 4, Y.w in 4, Y.b in 1, Y.co in 4 {
    block Y(n: space 1 = Y.n, o: space 4 = Y.o, h: space 4 = Y.h, w: space 4 = Y.w, b: space 1 = Y.b, co: space 4 = Y.co) {
      Y[n, o, h, w, b, co] = i8(min(max(C[n, o, h, w, b, co] + bias[0, o, 0, 0, b, co] >> 2i32, 0i32), 127i32))
    }
  }
}
)";

const char* const kTileConvTrace = R"(
split(loop=C.h, factor=2)
split(loop=C.o, factor=2)
split(loop=C.o.i, factor=1)
reorder(loops=[C.n, C.h.o, C.o.o, C.o.i.o, C.ci, C.r, C.s, C.o.i.i, C.h.i, C.w, C.b, C.co, C.bi])
compute_at(block=C.init, loop=C.o.i.o)
reverse_compute_at(block=Y, loop=C.o.i.o)
set_scope(buffer=C, scope=vta.acc)
compute_at(block=P, loop=C.ci)
set_scope(buffer=P, scope=vta.inp)
cache_read(block=C, buffer=Wt, copy=Wt.wgt, loop=C.ci)
set_scope(buffer=Wt.wgt, scope=vta.wgt)
cache_read(block=Y, buffer=bias, copy=bias.acc, loop=C.o.i.o)
set_scope(buffer=bias.acc, scope=vta.acc)
tensorize(loop=C.b, intrinsic="func vta.gemm(inout acc: i32[1,4], inp: i8[1,4], wgt: i8[4,4]) { for b in 1, o in 4, i in 4 { block g(b: space 1 = b, o: space 4 = o, i: reduce 4 = i) { acc[b, o] += i32(inp[b, i]) * i32(wgt[o, i]) } } }")
cut(loop=C.h.o, parts=[1, 1])
)";

TEST(TileConv, ScheduleForAMatrixUnitKeepsItsMeaning) {
  const auto func = parse_func(kTileConv);
  ASSERT_TRUE(func) << to_string(func.error());
  const auto trace = parse_trace(kTileConvTrace);
  ASSERT_TRUE(trace) << to_string(trace.error());
  Func now = *func;
  for (const Step& step : *trace) {
    const auto next = schedule::apply(step, now);
    ASSERT_TRUE(next) << to_string(next.error()) << "\n" << tilewright::print(now);
    now = *next;
    ASSERT_EQ(testing::difference(*func, now, 7), "") << print(step) << "\n"
                                                      << tilewright::print(now);
  }
  const std::string text = tilewright::print(now);
  EXPECT_THAT(text, HasSubstr("C.o.o@0 in 2, C.o.i.o@0 in 2"));
  EXPECT_THAT(text, HasSubstr("call vta.gemm(C@0[n:+1, o:+1, h:+1, w:+1, 0:+1, 0:+4], P@0[n:+1, "
                              "ci:+1, h + r:+1, w + s:+1, 0:+1, 0:+4], Wt.wgt@0[o:+1, ci:+1, "
                              "r:+1, s:+1, 0:+4, 0:+4])"));
}

/// Strides, unit batches that are gone, several elements per call and split channels.
TEST(TileConv, ShapesOfTheMatrixUnit) {
  struct Case {
    const char *index, *loops, *steps, *call;
  };
  const Case cases[] = {
      {"X[ci, h * 2 + r, bi]", "h in 2, ci in 2, r in 2, co in 8, bi in 4",
       "split(loop=co, factor=4) tensorize(loop=co.i, intrinsic=\"{}\")",
       "call vta.gemm(C[h:+1, co * 4:+4], X[ci:+1, h * 2 + r:+1, 0:+4], W[ci:+1, r:+1, co * 4:+4, "
       "0:+4])"},
      {"X[ci, h * 2 + r, bi]", "h in 2, ci in 2, r in 2, bi in 4, co in 8",
       "split(loop=co, factor=4) reorder(loops=[co.o, bi, co.i]) "
       "tensorize(loop=bi, intrinsic=\"{}\")",
       "call vta.gemm(C[h:+1, co * 4:+4], X[ci:+1, h * 2 + r:+1, 0:+4], W[ci:+1, r:+1, co * 4:+4, "
       "0:+4])"},
  };
  const std::string gemm =
      "func vta.gemm(inout acc: i32[1,4], inp: i8[1,4], wgt: i8[4,4]) { for b in 1, o in 4, i in 4 "
      "{ block g(b: space 1 = b, o: space 4 = o, i: reduce 4 = i) { acc[b, o] += i32(inp[b, i]) * "
      "i32(wgt[o, i]) } } }";
  for (const Case& c : cases) {
    const auto func = parse_func(
        std::string("func f(X: i8[2,4,4], W: i8[2,2,8,4], inout C: i32[2,8]) {\n  for ") + c.loops +
        " {\n    block C(h: space 2 = h, co: space 8 = co, ci: reduce 2 = ci, r: reduce 2 = r, bi: "
        "reduce 4 = bi) {\n      C[h, co] += i32(W[ci, r, co, bi]) * i32(" +
        c.index + ")\n    }\n  }\n}\n");
    ASSERT_TRUE(func) << to_string(func.error());
    std::string steps = c.steps;
    steps.replace(steps.find("{}"), 2, gemm);
    const auto trace = parse_trace(steps);
    ASSERT_TRUE(trace) << to_string(trace.error());
    const auto out = replay(*func, *trace);
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_THAT(tilewright::print(*out), HasSubstr(c.call));
    EXPECT_EQ(testing::difference(*func, *out, 5), "");
  }
}

}  // namespace
}  // namespace tilewright::schedule
