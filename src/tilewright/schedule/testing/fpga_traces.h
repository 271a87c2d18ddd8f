// For tests: sums of products scheduled for an FPGA from a few decisions, by
// steps alone.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/schedule/step.h"

namespace tilewright::schedule::testing {

/// What a search would decide of a convolution: tiles of output channels, input
/// channels, rows and pixels; how many of each work side by side; blocks of
/// each channel.
struct FpgaConv {
  int64_t to = 4, tc = 2, th = 3, tw = 6;
  int64_t uo = 2, ui = 2, us = 1;
  int64_t slots_x = 2, slots_w = 2, slots_y = 2;
  std::string tiles = "C.k.o, C.h.o, C.w.o";  ///< loops over tiles of the
                                              ///< result, outermost first
  std::string outermost = "C.k.o";            ///< of those
  std::string innermost = "C.w.o";
};

/// Of a Func with blocks P (padded input), C.init, C over k, h, w, c, r, s, and
/// Y.
inline std::string conv_trace(const FpgaConv& d) {
  return fmt::format(
      R"(split(loop=C.k, factor={to})
split(loop=C.h, factor={th})
split(loop=C.w, factor={tw})
split(loop=C.c, factor={tc})
split(loop=C.k.i, factor={uo})
split(loop=C.c.i, factor={ui})
split(loop=C.w.i, factor={us})
reorder(loops=[{tiles}, C.c.o, C.k.i.o, C.c.i.o, C.r, C.s, C.h.i, C.w.i.o, C.k.i.i, C.c.i.i, C.w.i.i])
compute_at(block=C.init, loop={last})
reverse_compute_at(block=Y, loop={last})
set_scope(buffer=C, scope=fpga.bram)
mark(target=C, mark=slots, value={sy})
compute_at(block=P, loop=C.c.o)
set_scope(buffer=P, scope=fpga.bram)
mark(target=P, mark=slots, value={sx})
buffer(block=C, buffer=W, copy=W.t, loop=C.c.o, memory=lutram, slots={sw})
unroll(loop=C.k.i.i)
unroll(loop=C.c.i.i)
unroll(loop=C.w.i.i)
mark(target=C.w.i.o, mark=ii, value=1)
partition(buffer=C, factors=c{uo}_c1_c{us})
partition(buffer=P, factors=c{ui}_c1_c{us})
partition(buffer=W.t, factors=c{uo}_c{ui}_c1_c1)
dataflow(loop={first})
)",
      fmt::arg("to", d.to), fmt::arg("tc", d.tc), fmt::arg("th", d.th), fmt::arg("tw", d.tw),
      fmt::arg("uo", d.uo), fmt::arg("ui", d.ui), fmt::arg("us", d.us), fmt::arg("sx", d.slots_x),
      fmt::arg("sw", d.slots_w), fmt::arg("sy", d.slots_y), fmt::arg("tiles", d.tiles),
      fmt::arg("first", d.outermost), fmt::arg("last", d.innermost));
}

/// A product: tiles of rows, columns and the sum; columns side by side.
struct FpgaProduct {
  int64_t ti = 2, tj = 4, tk = 3, uj = 2;
  int64_t slots_a = 2, slots_b = 2, slots_c = 2;
};

/// Of a Func with blocks C.init and C over i, j, k.
inline std::string product_trace(const FpgaProduct& d) {
  return fmt::format(
      R"(split(loop=C.i, factor={ti})
split(loop=C.j, factor={tj})
split(loop=C.k, factor={tk})
split(loop=C.j.i, factor={uj})
reorder(loops=[C.i.o, C.j.o, C.k.o, C.k.i, C.i.i, C.j.i.o, C.j.i.i])
buffer(block=C, buffer=C, copy=C.t, loop=C.j.o, memory=bram, slots={sc})
compute_at(block=C.init, loop=C.j.o)
buffer(block=C, buffer=A, copy=A.t, loop=C.k.o, memory=reg, slots={sa})
buffer(block=C, buffer=B, copy=B.t, loop=C.k.o, memory=bram, slots={sb})
unroll(loop=C.j.i.i)
mark(target=C.j.i.o, mark=ii, value=1)
partition(buffer=C.t, factors=c1_c{uj})
partition(buffer=B.t, factors=c1_c{uj})
dataflow(loop=C.i.o)
)",
      fmt::arg("ti", d.ti), fmt::arg("tj", d.tj), fmt::arg("tk", d.tk), fmt::arg("uj", d.uj),
      fmt::arg("sa", d.slots_a), fmt::arg("sb", d.slots_b), fmt::arg("sc", d.slots_c));
}

inline constexpr std::string_view kFpgaConv = R"(
func conv(X: f32[4,6,6], const W: f32[8,4,3,3], bias: f32[8], out Y: f32[8,6,6]) {
  alloc P: f32[4,8,8]
  for P.c in 4, P.h in 8, P.w in 8 {
    block P(c: space 4 = P.c, h: space 8 = P.h, w: space 8 = P.w) {
      P[c, h, w] = select(1 <= h && h < 7 && 1 <= w && w < 7, X[c, h - 1, w - 1], 0.0)
    }
  }
  alloc C: f32[8,6,6]
  for C.init.k in 8, C.init.h in 6, C.init.w in 6 {
    block C.init(k: space 8 = C.init.k, h: space 6 = C.init.h, w: space 6 = C.init.w) {
      C[k, h, w] = 0.0
    }
  }
  for C.k in 8, C.h in 6, C.w in 6, C.c in 4, C.r in 3, C.s in 3 {
    block C(k: space 8 = C.k, h: space 6 = C.h, w: space 6 = C.w, c: reduce 4 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s) {
      C[k, h, w] += P[c, h + r, w + s] * W[k, c, r, s]
    }
  }
  for Y.k in 8, Y.h in 6, Y.w in 6 {
    block Y(k: space 8 = Y.k, h: space 6 = Y.h, w: space 6 = Y.w) {
      Y[k, h, w] = max(C[k, h, w] + bias[k], 0.0)
    }
  }
}
)";

inline constexpr std::string_view kFpgaProduct = R"(
func product(A: i8[4,6], B: i8[6,8], out C: i32[4,8]) exact {
  for C.init.i in 4, C.init.j in 8 {
    block C.init(i: space 4 = C.init.i, j: space 8 = C.init.j) {
      C[i, j] = 0i32
    }
  }
  for C.i in 4, C.j in 8, C.k in 6 {
    block C(i: space 4 = C.i, j: space 8 = C.j, k: reduce 6 = C.k) {
      C[i, j] += i32(A[i, k]) * i32(B[k, j])
    }
  }
}
)";

/// The program after all steps.
inline Func scheduled(std::string_view text, const std::string& trace) {
  const auto func = parse_func(text);
  if (!func) throw std::runtime_error(to_string(func.error()));
  const auto after = replay(*func, parse_trace(trace).value());
  if (!after) throw std::runtime_error(to_string(after.error()));
  const Status ok = verify(*after, Stage::Scheduled);
  if (!ok) throw std::runtime_error(to_string(ok.error()) + tilewright::print(*after));
  return *after;
}

inline int64_t divisor(Rng& rng, int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all[static_cast<size_t>(rng.below(std::ssize(all)))];
}

/// Of kFpgaConv.
inline FpgaConv random_conv(Rng& rng) {
  FpgaConv d;
  d.to = divisor(rng, 8), d.tc = divisor(rng, 4), d.th = divisor(rng, 6);
  d.tw = divisor(rng, 6);
  d.uo = divisor(rng, d.to), d.ui = divisor(rng, d.tc), d.us = divisor(rng, d.tw);
  if (rng.chance(0.5))
    d.tiles = "C.h.o, C.w.o, C.k.o", d.outermost = "C.h.o", d.innermost = "C.k.o";
  return d;
}

/// Of kFpgaProduct.
inline FpgaProduct random_product(Rng& rng) {
  FpgaProduct d;
  d.ti = divisor(rng, 4), d.tj = divisor(rng, 8), d.tk = divisor(rng, 6);
  d.uj = divisor(rng, d.tj);
  return d;
}

}  // namespace tilewright::schedule::testing
