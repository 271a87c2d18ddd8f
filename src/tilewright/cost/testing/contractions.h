// Contractions that several tests look at.
#pragma once

#include "tilewright/cost/contraction.h"

namespace tilewright::cost {

/// An index that is one axis.
inline Index plain(int axis, int64_t extent) { return {{{axis, 1, 1, 0}}, extent}; }

/// C[m, n] += A[m, k] * B[n / 16, k, n % 16].
inline Contraction matmul(int64_t m, int64_t n, int64_t k) {
  Contraction c;
  c.axes = {{"m", m, false}, {"n", n, false}, {"k", k, true}};
  c.operands = {{{plain(0, m), plain(2, k)}, 4, false},
                {{{{{1, 1, 16, 0}}, n / 16}, plain(2, k), {{{1, 1, 1, 16}}, 16}}, 4, true},
                {{plain(0, m), plain(1, n)}, 4, false}};
  c.rows = 0, c.lanes = 1;
  return c;
}

}  // namespace tilewright::cost
