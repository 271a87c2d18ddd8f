// Programs in canonical text that tests of several layers share.
#pragma once

#include <array>
#include <string_view>

namespace tilewright::testing {

inline constexpr std::string_view kMatmul =
    R"(func matmul(A: i8[6,4], B: i8[4,5], out C: i32[6,5]) {
  for C.init.i in 6, C.init.j in 5 {
    block C.init(i: space 6 = C.init.i, j: space 5 = C.init.j) {
      C[i, j] = 0i32
    }
  }
  for C.i in 6, C.j in 5, C.k in 4 {
    block C(i: space 6 = C.i, j: space 5 = C.j, k: reduce 4 = C.k) {
      C[i, j] += i32(A[i, k]) * i32(B[k, j])
    }
  }
}
)";

inline constexpr std::string_view kConv =
    R"(func conv(X: f32[4,8,9], const W: f32[6,4,3,3], bias: f32[6], out Y: f32[6,8,9]) {
  alloc P: f32[4,10,11]
  for P.c in 4, P.h in 10, P.w in 11 {
    block P(c: space 4 = P.c, h: space 10 = P.h, w: space 11 = P.w) {
      P[c, h, w] = select(1 <= h && h < 9 && 1 <= w && w < 10, X[c, h - 1, w - 1], 0.0)
    }
  }
  alloc C: f32[6,8,9]
  for C.init.k in 6, C.init.h in 8, C.init.w in 9 {
    block C.init(k: space 6 = C.init.k, h: space 8 = C.init.h, w: space 9 = C.init.w) {
      C[k, h, w] = 0.0
    }
  }
  for C.k in 6, C.h in 8, C.w in 9, C.c in 4, C.r in 3, C.s in 3 {
    block C(k: space 6 = C.k, h: space 8 = C.h, w: space 9 = C.w, c: reduce 4 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s) {
      C[k, h, w] += P[c, h + r, w + s] * W[k, c, r, s]
    }
  }
  for Y.k in 6, Y.h in 8, Y.w in 9 {
    block Y(k: space 6 = Y.k, h: space 8 = Y.h, w: space 9 = Y.w) {
      Y[k, h, w] = max(C[k, h, w] + bias[k], 0.0)
    }
  }
}
)";

/// The convolution, tiled by rows with a cut over the width, in registers, vector and parallel.
inline constexpr std::string_view kConvScheduled =
    R"(func conv(X: f32[4,8,9], const W: f32[6,4,3,3], bias: f32[6], out Y: f32[6,8,9]) {
  for C.h.o in 4 parallel @(align=64) {
    alloc P: f32[4,10,11] @(partition=cyclic)
    for P.c in 4, P.h in 4, P.w in 11 vector {
      block P(c: space 4 = P.c, h: space 10 = C.h.o * 2 + P.h, w: space 11 = P.w) {
        P[c, h, w] = select(1 <= h && h < 9 && 1 <= w && w < 10, X[c, h - 1, w - 1], 0.0)
      }
    }
    for C.h.i in 2, C.w.o in 3 @(pipeline=dataflow) {
      alloc C: f32[6,8,9] local
      for C.init.w in 4 unroll, C.init.k in 6 vector {
        block C.init(k: space 6 = C.init.k, h: space 8 = C.h.o * 2 + C.h.i, w: space 9 = C.w.o * 4 + C.init.w) where C.w.o * 4 + C.init.w < 9 {
          C[k, h, w] = 0.0
        }
      }
      for C.c in 4, C.r in 3, C.s in 3 @(ii=2), C.w.i in 4 unroll, C.k in 6 vector {
        block C(k: space 6 = C.k, h: space 8 = C.h.o * 2 + C.h.i, w: space 9 = C.w.o * 4 + C.w.i, c: reduce 4 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s) where C.w.o * 4 + C.w.i < 9 @(async, prefetch=3) {
          C[k, h, w] += P[c, h + r, w + s] * W[k, c, r, s]
        }
      }
      for Y.w in 4 unroll, Y.k in 6 vector {
        block Y(k: space 6 = Y.k, h: space 8 = C.h.o * 2 + C.h.i, w: space 9 = C.w.o * 4 + Y.w) where C.w.o * 4 + Y.w < 9 {
          Y[k, h, w] = max(C[k, h, w] + bias[k], 0.0)
        }
      }
    }
  }
}
)";

inline constexpr std::string_view kSoftmax =
    R"(func softmax(X: f32[3,7], out Y: f32[3,7]) exact {
  alloc M: f32[3]
  for M.init.i in 3 {
    block M.init(i: space 3 = M.init.i) {
      M[i] = -inf
    }
  }
  for M.i in 3, M.j in 7 {
    block M(i: space 3 = M.i, j: reduce 7 = M.j) {
      M[i] max= X[i, j]
    }
  }
  alloc E: f32[3,7]
  for E.i in 3, E.j in 7 {
    block E(i: space 3 = E.i, j: space 7 = E.j) {
      E[i, j] = exp(X[i, j] - M[i])
    }
  }
  alloc S: f32[3]
  for S.init.i in 3 {
    block S.init(i: space 3 = S.init.i) {
      S[i] = 0.0
    }
  }
  for S.i in 3, S.j in 7 {
    block S(i: space 3 = S.i, j: reduce 7 = S.j) {
      S[i] += E[i, j]
    }
  }
  for Y.i in 3, Y.j in 7 {
    block Y(i: space 3 = Y.i, j: space 7 = Y.j) {
      Y[i, j] = E[i, j] / S[i]
    }
  }
}
)";

/// A recurrence: state over time is an axis, walked by a scan iteration.
inline constexpr std::string_view kLstm =
    R"(func lstm(n: int in 0..8, X: f32[n,3], const W: f32[8,3], const R: f32[8,2], out H: f32[n + 1,2], out C: f32[n + 1,2]) {
  for H.start.j in 2 {
    block H.start(j: space 2 = H.start.j) {
      H[0, j] = 0.0
      C[0, j] = 0.0
    }
  }
  for t in n {
    alloc G: f32[8]
    for G.init.k in 8 {
      block G.init(k: space 8 = G.init.k) {
        G[k] = 0.0
      }
    }
    for G.x.k in 8, G.x.i in 3 {
      block G.x(k: space 8 = G.x.k, i: reduce 3 = G.x.i, t: scan n = t) {
        G[k] += W[k, i] * X[t, i]
      }
    }
    for G.h.k in 8, G.h.i in 2 {
      block G.h(k: space 8 = G.h.k, i: reduce 2 = G.h.i, t: scan n = t) {
        G[k] += R[k, i] * H[t, i]
      }
    }
    for C.j in 2 {
      block C(t: scan n = t, j: space 2 = C.j) {
        C[t + 1, j] = sigmoid(G[4 + j]) * C[t, j] + sigmoid(G[j]) * tanh(G[6 + j])
      }
    }
    for H.j in 2 {
      block H(t: scan n = t, j: space 2 = H.j) {
        H[t + 1, j] = sigmoid(G[2 + j]) * tanh(C[t + 1, j])
      }
    }
  }
}
)";

/// Calls, regions, quoted names, strides, tables, every literal form.
inline constexpr std::string_view kOddities =
    R"(func gemm(k: int in 1..8, A: f32[2,k], B: f32[k,2], inout C: f32[2,2] vta.acc) {
  for i in 2, j in 2, l in k {
    block C(i: space 2 = i, j: space 2 = j, l: reduce k = l) {
      C[i, j] += A[i, l] * B[l, j]
    }
  }
}

func sync.block() exact {
}

func `conv3/odd name`(m: int in -3..9223372036854775807, A: f32[4,1,6], B: f32[6,2] strides [4,2], const T: f64[2,3] = {1.0, -0.0, 1e-05, inf, -inf, nan}, const U: u64[1] = {18446744073709551615}, const Z: bool[2] = {true, false}, const N: bf16[2] = {nan(0xffc1), 3.140625}, const K: i8[0] = {}, inout D: f32[4,2] vta.acc, out S: f64[], out `for`: u8[3]) {
  alloc `a*b`: i16[2,m] local @(partition=4)
  for `conv3/C.h` in 2 bind(block.x), C.h.i@0~x in 1 vector @(prefetch=-2) {
    call gemm(6, A[`conv3/C.h` * 2:+2, 0:+1, 0:+6], B[0:+6, 0:+2], D[`conv3/C.h` * 2:+2, 0:+2])
  }
  call sync.block()
  if m > 3 && !(m == 4) || m % 2 != 0 {
    for `a\`b` in 1 {
    }
  } else {
  }
}
)";

}  // namespace tilewright::testing
