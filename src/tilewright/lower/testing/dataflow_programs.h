// For tests: programs whose outermost loops are cut into processes, and some that cannot be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::lower::testing {

/// Read and write, with one channel between.
inline constexpr std::string_view kTwice = R"(
func twice(X: f32[64], out Y: f32[64]) {
  for t in 4 @(pipeline=dataflow) {
    alloc T: f32[16] fpga.bram @(slots=2)
    for i in 16 { block T(a: space 64 = t * 16 + i, b: space 16 = i) { T[b] = X[a] } }
    for j in 16 { block Y(a: space 64 = t * 16 + j, b: space 16 = j) { Y[a] = T[b] * 2.0 } }
  }
}
)";

/// A 3x3 convolution of 8 to 8 channels in tiles, with a bias: the shape of most programs.
inline constexpr std::string_view kTiledConv = R"(
func conv(X: f32[8,6,6], W: f32[8,8,3,3], bias: f32[8], out Y: f32[8,4,4]) {
  for k in 2 @(pipeline=dataflow), h in 2 {
    alloc C: f32[4,2,4] fpga.bram @(slots=2, partition=c4_c1_c1)
    for ci0 in 4, ci1 in 2, ci2 in 4 {
      block C.init(a: space 4 = ci0, b: space 2 = ci1, d: space 4 = ci2) { C[a, b, d] = 0.0 }
    }
    for c in 2 {
      alloc X.t: f32[4,4,6] fpga.bram @(slots=2, partition=c2_c1_c1)
      alloc W.t: f32[4,4,3,3] fpga.lutram @(slots=2, partition=f_c2_c1_c1)
      for x0 in 4, x1 in 4, x2 in 6 {
        block X.t(a: space 4 = x0, b: space 4 = x1, d: space 6 = x2, c: space 8 = c * 4 + x0,
                  y: space 6 = h * 2 + x1) { X.t[a, b, d] = X[c, y, d] }
      }
      for w0 in 4, w1 in 4, w2 in 3, w3 in 3 {
        block W.t(a: space 4 = w0, b: space 4 = w1, r: space 3 = w2, s: space 3 = w3,
                  k: space 8 = k * 4 + w0, c: space 8 = c * 4 + w1) {
          W.t[a, b, r, s] = W[k, c, r, s]
        }
      }
      for co in 2, r in 3, s in 3, y in 2, x in 4 @(ii=1), u in 4 unroll, v in 2 unroll {
        block C(a: space 4 = u, b: space 2 = y, d: space 4 = x, c: reduce 4 = co * 2 + v,
                r: reduce 3 = r, s: reduce 3 = s) {
          C[a, b, d] += X.t[c, b + r, d + s] * W.t[a, c, r, s]
        }
      }
    }
    for y0 in 4, y1 in 2, y2 in 4 {
      block Y(a: space 4 = y0, b: space 2 = y1, d: space 4 = y2, k: space 8 = k * 4 + y0,
              h: space 4 = h * 2 + y1) { Y[k, h, d] = max(C[a, b, d] + bias[k], 0.0) }
    }
  }
}
)";

/// A product, then sums of neighbours of its rows: a process more.
inline constexpr std::string_view kTwoStages = R"(
func stages(A: f32[8,4], B: f32[4,8], out Y: f32[8,4]) {
  for t in 4 @(pipeline=dataflow) {
    alloc C: f32[2,8] fpga.bram @(slots=1)
    alloc At: f32[2,4] fpga.reg @(slots=2)
    alloc Bt: f32[4,8] fpga.bram @(slots=3)
    for a0 in 2, a1 in 4 {
      block At(i: space 2 = a0, k: space 4 = a1, r: space 8 = t * 2 + a0) { At[i, k] = A[r, k] }
    }
    for b0 in 4, b1 in 8 {
      block Bt(k: space 4 = b0, j: space 8 = b1) { Bt[k, j] = B[k, j] }
    }
    for i0 in 2, j0 in 8 { block C.init(i: space 2 = i0, j: space 8 = j0) { C[i, j] = 0.0 } }
    for k in 4, i in 2, j in 8 @(ii=1) {
      block C(i: space 2 = i, j: space 8 = j, k: reduce 4 = k) { C[i, j] += At[i, k] * Bt[k, j] }
    }
    alloc P: f32[2,4] fpga.lutram @(slots=2)
    for p0 in 2, p1 in 4 {
      block P.init(i: space 2 = p0, j: space 4 = p1) { P[i, j] = 0.0 }
    }
    for p2 in 2, p3 in 4, p4 in 2 {
      block P(i: space 2 = p2, j: space 4 = p3, q: reduce 2 = p4) { P[i, j] += C[i, 2 * j + q] }
    }
    for y0 in 2, y1 in 4 {
      block Y(i: space 2 = y0, j: space 4 = y1, r: space 8 = t * 2 + y0) { Y[r, j] = P[i, j] }
    }
  }
}
)";

/// Operands that stay while others pass: X of each row block, W of all of them.
inline constexpr std::string_view kStays = R"(
func stays(X: f32[8,4], W: f32[4,6], b: f32[6], out Y: f32[8,6]) {
  for once in 1 @(pipeline=dataflow) {
    alloc B: f32[6] fpga.reg @(slots=1)
    for b0 in 6 { block B(j: space 6 = b0) { B[j] = b[j] } }
    for t in 4 {
      alloc Xt: f32[2,4] fpga.bram @(slots=2)
      for x0 in 2, x1 in 4 {
        block Xt(i: space 2 = x0, k: space 4 = x1, r: space 8 = t * 2 + x0) { Xt[i, k] = X[r, k] }
      }
      for u in 3 {
        alloc Wt: f32[4,2] fpga.lutram @(slots=2)
        for w0 in 4, w1 in 2 {
          block Wt(k: space 4 = w0, j: space 2 = w1, c: space 6 = u * 2 + w1) {
            Wt[k, j] = W[k, c]
          }
        }
        alloc C: f32[2,2] fpga.reg @(slots=2)
        for i0 in 2, j0 in 2 {
          block C.init(i: space 2 = i0, j: space 2 = j0, c: space 6 = u * 2 + j0) {
            C[i, j] = B[c]
          }
        }
        for k in 4, i in 2, j in 2 {
          block C(i: space 2 = i, j: space 2 = j, k: reduce 4 = k) { C[i, j] += Xt[i, k] * Wt[k, j] }
        }
        for y0 in 2, y1 in 2 {
          block Y(i: space 2 = y0, j: space 2 = y1, r: space 8 = t * 2 + y0, c: space 6 = u * 2 + y1) {
            Y[r, c] = C[i, j]
          }
        }
      }
    }
  }
}
)";

/// A read that keeps rows of its own before it hands them on.
inline constexpr std::string_view kRows = R"(
func rows(X: i32[10,4], out Y: i32[8,4]) {
  for once in 1 @(pipeline=dataflow) {
    alloc R: i32[10,4] fpga.bram
    for t in 8 {
      for r0 in 3, r1 in 4 {
        block R(i: space 10 = t + r0, j: space 4 = r1) where t == 0 || r0 >= 2 { R[i, j] = X[i, j] }
      }
      alloc T: i32[3,4] fpga.bram @(slots=2)
      for t0 in 3, t1 in 4 {
        block T(a: space 3 = t0, j: space 4 = t1, i: space 10 = t + t0) { T[a, j] = R[i, j] }
      }
      for y0 in 4 { block Y.init(i: space 8 = t, j: space 4 = y0) { Y[i, j] = 0i32 } }
      for y1 in 4, y2 in 3 {
        block Y(i: space 8 = t, j: space 4 = y1, a: reduce 3 = y2) { Y[i, j] += T[a, j] }
      }
    }
  }
}
)";

/// The programs above.
inline std::vector<std::string_view> dataflow_programs() {
  return {kTwice, kTiledConv, kTwoStages, kStays, kRows};
}

/// A program that breaks one requirement of the step `dataflow`, and words of the message.
struct Refused {
  int requirement;
  std::string_view text, words;
};

/// `body` inside of `for t in 4 @(pipeline=dataflow)`.
#define TW_TILES(body)                                                       \
  "func f(X: f32[4,2], Z: f32[4,2], out Y: f32[4,2], inout S: f32[4,2]) {\n" \
  "for t in 4 @(pipeline=dataflow) {\n" body "\n}\n}"
#define TW_COPY(name, loop, to, from)                                                          \
  "for " loop " in 2 { block " name "(t: space 4 = t, i: space 2 = " loop ") { " to " = " from \
  " } }\n"

inline std::vector<Refused> refused_programs() {
  return {
      {1,
       "func f(X: f32[4], out Y: f32[4]) { for t in 4 parallel @(pipeline=dataflow) { alloc T: "
       "f32[1] fpga.reg @(slots=1)\nblock T(t: space 4 = t) { T[0] = X[t] }\n"
       "block Y(t: space 4 = t) { Y[t] = T[0] } } }",
       "loop t is parallel"},
      {1,
       "func f(X: f32[4], out Y: f32[4]) { for v in 2 vector { for t in 2 @(pipeline=dataflow) { "
       "alloc T: f32[1] fpga.reg @(slots=1)\nblock T(t: space 4 = v * 2 + t) { T[0] = X[t] }\n"
       "block Y(t: space 4 = v * 2 + t) { Y[t] = T[0] } } } }",
       "loop t is not outermost"},
      {1,
       "func f(X: f32[4], out Y: f32[4]) { for u in 2 @(pipeline=dataflow) { for t in 2 "
       "@(pipeline=dataflow) { block Y(t: space 4 = u * 2 + t) { Y[t] = X[t] } } } }",
       "loops u and t are in one nest"},
      {2, TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\n" TW_COPY("T", "a", "T[i]", "X[t, i]")),
       "is read by no other process"},
      {2,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\n"  //
                TW_COPY("T", "a", "T[i]", "X[t, i]")      //
                TW_COPY("Y", "b", "Y[t, i]", "T[i]")      //
                TW_COPY("S", "c", "S[t, i]", "T[i]")),
       "T, written by the process of block T, is read by the process of block Y and by the process "
       "of block S"},
      {2,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\nalloc U: f32[2] fpga.bram\n"  //
                TW_COPY("U", "a", "U[i]", "X[t, i]")                                 //
                TW_COPY("T", "b", "T[i]", "U[i]")                                    //
                TW_COPY("Y", "c", "Y[t, i]", "T[i] + U[i]")),
       "is read by no other process"},
      {3,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\nfor i in 2 {\n"
                "block T(t: space 4 = t, i: space 2 = i) { T[i] = X[t, i] }\n"
                "block Y(t: space 4 = t, i: space 2 = i) { Y[t, i] = T[i] } }"),
       "loop i, inside of the life of T, holds both block T, which writes it, and block Y"},
      {3,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\n"  //
                TW_COPY("T0", "a", "T[i]", "X[t, i]")     //
                TW_COPY("Y", "b", "Y[t, i]", "T[i]")      //
                TW_COPY("T1", "c", "T[i]", "Z[t, i]")),
       "block Y reads T before block T1 writes it"},
      {4,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\n"  //
                TW_COPY("T", "a", "T[i]", "X[t, i]")      //
                TW_COPY("S", "b", "S[t, i]", "T[i]")      //
                TW_COPY("Y", "c", "Y[t, i]", "S[t, i]")),
       "block Y reads S, which the process of block S writes"},
      {5,
       TW_TILES("alloc U: f32[2] fpga.reg\n"          //
                TW_COPY("U", "a", "U[i]", "X[t, i]")  //
                "if U[0] > 0.0 {\nalloc T: f32[2] fpga.bram @(slots=2)\n" TW_COPY("T", "b", "T[i]",
                                                                                  "X[t, i]")  //
                TW_COPY("Y", "c", "Y[t, i]", "T[i]") "}"),
       "T is allocated under a condition that reads U"},
      {6,
       TW_TILES("alloc T: f32[2] fpga.bram @(slots=2)\nalloc U: f32[2] fpga.bram @(slots=2)\n"
                "alloc L: f32[2] fpga.reg\n"          //
                TW_COPY("L", "a", "L[i]", "X[t, i]")  //
                TW_COPY("T", "b", "T[i]", "L[i]")     //
                TW_COPY("U", "c", "U[i]", "T[i]")     //
                TW_COPY("Y", "d", "Y[t, i]", "U[i] + L[i]")),
       "channels T, U lead round in a circle"},
      // The consumer waits for A until the tile ends, and so does not empty B.
      {7,
       TW_TILES("alloc A: f32[2] fpga.bram @(slots=2)\n"  //
                TW_COPY("A", "a", "A[i]", "X[t, i]")      //
                "alloc P: f32[] fpga.reg\nblock P() { P[] = 0.0 }\n"
                "for b in 2 {\nalloc B: f32[] fpga.reg @(slots=1)\n"
                "block B(t: space 4 = t, i: space 2 = b) { B[] = X[t, i] }\n"
                "block P.sum(b: reduce 2 = b) { P[] += B[] } }\n" TW_COPY("Y", "c", "Y[t, i]",
                                                                          "P[] + A[i]")),
       "the process of block P waits for A as long as the process of block A is in the same life"},
  };
}
#undef TW_TILES
#undef TW_COPY

}  // namespace tilewright::lower::testing
