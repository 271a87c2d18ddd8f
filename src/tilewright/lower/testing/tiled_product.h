// For tests: a product in tiles that threads share, as schedules make it.
#pragma once

namespace tilewright::lower::testing {

/// C = relu(A * B) in tiles of 8 x 8, each by 4 x 4 threads with 2 x 2 elements, staged 4 deep.
inline constexpr const char* kTiledProduct = R"(
func product(A: f32[16,8], B: f32[8,24], out D: f32[16,24]) {
  alloc C: f32[16,24] local
  for i.o in 2 bind(block.y), j.o in 3 bind(block.x) {
    for ci in 4 bind(thread.y), cj in 4 bind(thread.x), ci2 in 2 unroll, cj2 in 2 unroll {
      block C.init(i: space 16 = i.o * 8 + ci2 * 4 + ci, j: space 24 = j.o * 8 + cj2 * 4 + cj) {
        C[i, j] = 0.0
      }
    }
    alloc S: f32[16,8] shared
    alloc T: f32[8,24] shared
    for k.o in 2 {
      for s.o in 2, s.y in 4 bind(thread.y), s.x in 4 bind(thread.x) {
        block S(i: space 16 = i.o * 8 + s.o * 4 + s.y, k: space 8 = k.o * 4 + s.x) {
          S[i, k] = A[i, k]
        }
      }
      for t.o in 2, t.y in 4 bind(thread.y), t.x in 4 bind(thread.x) {
        block T(k: space 8 = k.o * 4 + t.y, j: space 24 = j.o * 8 + t.o * 4 + t.x) {
          T[k, j] = B[k, j]
        }
      }
      for i.t in 4 bind(thread.y), j.t in 4 bind(thread.x), k.i in 4, i.i in 2 unroll, j.i in 2 unroll {
        block C(i: space 16 = i.o * 8 + i.i * 4 + i.t, j: space 24 = j.o * 8 + j.i * 4 + j.t, k: reduce 8 = k.o * 4 + k.i) {
          C[i, j] += S[i, k] * T[k, j]
        }
      }
    }
    for di in 4 bind(thread.y), dj in 4 bind(thread.x), di2 in 2, dj2 in 2 {
      block D(i: space 16 = i.o * 8 + di2 * 4 + di, j: space 24 = j.o * 8 + dj2 * 4 + dj) {
        D[i, j] = max(C[i, j], 0.0)
      }
    }
  }
}
)";

}  // namespace tilewright::lower::testing
