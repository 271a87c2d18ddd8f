// Runs a scheduled Func both ways: on the interpreter, and as a VTA program on
// fsim.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/footprint.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/codegen/vta/emitter.h"
#include "tilewright/codegen/vta/vta.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::codegen::vta_code {

/// The intrinsic on one element, for a configuration.
inline std::string gemm_text(const vta::Config& c) {
  return fmt::format(
      R"(func vta.gemm(inout C: i32[{0},{1}], X: i8[{0},{2}], W: i8[{1},{2}]) {{
  for g.b in {0}, g.o in {1}, g.i in {2} {{
    block g(b: space {0} = g.b, o: space {1} = g.o, i: reduce {2} = g.i) {{
      C[b, o] += i32(X[b, i]) * i32(W[o, i])
    }}
  }}
}}
)",
      c.batch(), c.block_out(), c.block_in());
}

inline vta::Config small_config(int log_batch, int log_block) {
  vta::Config c;
  c.log_batch = log_batch;
  c.log_block_in = c.log_block_out = log_block;
  c.log_uop_buff = 13;
  c.log_inp_buff = 13 + log_batch;
  c.log_wgt_buff = 14;
  c.log_acc_buff = 14 + log_batch;
  return c;
}

/// The elements of `dense` where `strides` put them; what is between is garbage.
inline Array strided(const Array& dense, const std::vector<Expr>& strides) {
  const std::vector<int64_t> steps = dense_strides(dense.shape());
  auto at = [&](int64_t i) {
    int64_t out = 0;
    for (size_t d = 0; d < steps.size(); ++d)
      out += i / steps[d] % dense.shape()[d] * *as_int(strides[d]);
    return out;
  };
  Array out(dense.dtype(), {at(dense.size() - 1) + 1});
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, 99);
  for (int64_t i = 0; i < dense.size(); ++i) out.set_int(at(i), dense.get_int(i));
  return out;
}

/// Elements of each on-chip memory that `func` needs.
struct Use {
  int64_t inp = 0, wgt = 0, acc = 0;
};
inline Use use_of(const Func& func, const vta::Config& config, const VtaOptions& options) {
  auto use = Emitter(func, config, options).measure();
  if (!use) {
    ADD_FAILURE() << to_string(use.error());
    return {};
  }
  return {(*use)[vta::number(vta::Mem::Inp)], (*use)[vta::number(vta::Mem::Wgt)],
          (*use)[vta::number(vta::Mem::Acc)]};
}

struct Build {
  vta::Program program;
  std::map<std::string, Array> expected;
};

/// Random inputs, the interpreter's outputs, and the program. `limit`: of input
/// values.
inline Result<Build> build(const std::string& text, const vta::Config& config,
                           const VtaOptions& options = {}, int limit = 127) {
  const Func func = TW_TRY(parse_func(text));
  TW_TRY_STATUS(verify(func, Stage::Scheduled));
  TW_TRY_STATUS(vta::check(config));
  vta::Builder builder(config);
  std::vector<uint64_t> addresses;
  interp::Arguments arguments;
  std::mt19937 random(7);
  for (const Param& p : func.params) {
    Shape shape;
    for (const Expr& e : p.buffer.shape()) shape.push_back(*as_int(e));
    Array array(p.buffer.dtype(), shape);
    const int range = p.buffer.dtype() == DType::I32 ? 20000 : limit;
    std::uniform_int_distribution<int> any(-range, range);
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, any(random));
    const Array image = p.strides.empty() ? array : strided(array, p.strides);
    const auto bytes = static_cast<uint64_t>(image.bytes());
    addresses.push_back(TW_TRY(builder.allocate(p.buffer.name(), bytes)));
    const vta::Region region{p.buffer.name(), addresses.back(), bytes};
    if (p.mode == ParamMode::Out) {
      builder.add_output(region);
      continue;
    }
    builder.write(addresses.back(), {static_cast<const char*>(image.data()), bytes});
    builder.add_input(region);
    arguments.arrays[p.buffer.name()] = array;
  }
  builder.begin_span(func.name);
  TW_TRY_STATUS(emit_vta(func, addresses, options, builder));
  Build out;
  out.program = TW_TRY(builder.finish());
  interp::Options check;
  check.check = true;
  auto outcome = TW_TRY(interp::run(func, arguments, check));
  for (const auto& f : outcome.findings)
    return fail(ErrorKind::Invalid, "The test program is wrong: " + f.text);
  out.expected = outcome.outputs;
  return out;
}

/// The instructions as text, for messages.
inline std::string listing(const vta::Program& p) {
  std::string out;
  for (const vta::Insn& i : p.runs[0].insns) out += vta::disassemble(p.config, i) + "\n";
  return out;
}

/// Bit-exact with the interpreter, and nothing for the checker to object to.
inline void expect_right(const Build& b) {
  for (const vta::Finding& f : vta::check_program(b.program)) ADD_FAILURE() << f.text;
  const auto device = vta::make_fsim(b.program.config, b.program.end());
  const auto report = vta::execute(*device, b.program);
  ASSERT_TRUE(report) << to_string(report.error()) << "\n" << listing(b.program);
  for (const vta::Region& region : b.program.outputs) {
    const Array& expected = b.expected.at(region.name);
    Array got(expected.dtype(), expected.shape());
    ASSERT_TRUE(device->read(region.address, static_cast<char*>(got.data()), region.bytes));
    if (identical(got, expected)) continue;
    int64_t first = 0, wrong = 0;
    for (int64_t i = 0; i < got.size(); ++i)
      if (got.get_int(i) != expected.get_int(i) && wrong++ == 0) first = i;
    ADD_FAILURE() << fmt::format("{}: {} of {} differ, first at {}: {} for {}\n", region.name,
                                 wrong, got.size(), first, got.get_int(first),
                                 expected.get_int(first))
                  << listing(b.program);
  }
}

inline Build run_both(const std::string& text, const vta::Config& config,
                      const VtaOptions& options = {}, int limit = 127) {
  auto b = build(text, config, options, limit);
  if (!b) {
    ADD_FAILURE() << to_string(b.error()) << "\n" << text;
    return {};
  }
  expect_right(*b);
  return *std::move(b);
}

/// A tiled convolution with bias, residual, rounding shift and clip.
struct Conv {
  vta::Config config;
  int ci = 2, co = 2, h = 8, w = 8, k = 3, stride = 1, pad = 1;
  int tco = 1, tci = 1, th = 4, tw = 8;  ///< tile
  bool bias = true, residual = false;
  int residual_shift = 3, shift = 8;
  int oh() const { return (h + 2 * pad - k) / stride + 1; }
  int ow() const { return (w + 2 * pad - k) / stride + 1; }
};

inline std::string conv_text(const Conv& c) {
  const int b = c.config.batch(), n = c.config.block_out();
  const int ih = (c.th - 1) * c.stride + c.k, iw = (c.tw - 1) * c.stride + c.k;
  const int ph = c.h + 2 * c.pad, pw = c.w + 2 * c.pad;
  auto up = [](int x, int y) { return (x + y - 1) / y; };
  std::string params = fmt::format("X: i8[{},{},{},{},{}], const Wt: i8[{},{},{},{},{},{}]", c.ci,
                                   c.h, c.w, b, n, c.co, c.ci, c.k, c.k, n, n);
  const std::string out_shape = fmt::format("[{},{},{},{},{}]", c.co, c.oh(), c.ow(), b, n);
  if (c.bias) params += fmt::format(", const bias: i32[{},{},{}]", c.co, b, n);
  if (c.residual) params += ", R: i8" + out_shape;
  // Loops over an output tile for a block, and its guard at the cut edges.
  auto tile = [&](const std::string& name, bool lanes) {
    std::string s =
        fmt::format("for {0}.k in {1}, {0}.h in {2}, {0}.w in {3}", name, c.tco, c.th, c.tw);
    if (lanes) s += fmt::format(", {0}.b in {1}, {0}.c in {2}", name, b, n);
    return s + " {\n";
  };
  auto block = [&](const std::string& name) {
    return fmt::format(
        "block {0}(k: space {1} = k.o * {2} + {0}.k, h: space {3} = h.o * {4} "
        "+ {0}.h, w: space "
        "{5} = w.o * {6} + {0}.w, b: space {7} = {0}.b, c: space {8} = {0}.c) "
        "where h.o * {4} + "
        "{0}.h < {3} && w.o * {6} + {0}.w < {5} && k.o * {2} + {0}.k < {1}",
        name, c.co, c.tco, c.oh(), c.th, c.ow(), c.tw, b, n);
  };
  std::string s = gemm_text(c.config);
  s += fmt::format("func conv({}, out Y: i8{}) {{\n", params, out_shape);
  s += fmt::format("for k.o in {}, h.o in {}, w.o in {} {{\nalloc C: i32{} vta.acc\n",
                   up(c.co, c.tco), up(c.oh(), c.th), up(c.ow(), c.tw), out_shape);
  s += tile("C.init", true) + block("C.init") + " { C[k, h, w, b, c] = 0i32 } }\n";
  s += fmt::format("for ci.o in {} {{\n", up(c.ci, c.tci));
  s += fmt::format("alloc X.inp: i8[{},{},{},{},{}] vta.inp\n", c.ci, ph, pw, b, n);
  s += fmt::format("alloc W.wgt: i8[{},{},{},{},{},{}] vta.wgt\n", c.co, c.ci, c.k, c.k, n, n);
  s += fmt::format(
      "for X.i in {0}, X.h in {1}, X.w in {2}, X.b in {3}, X.c in "
      "{4} {{ block X.inp(i: space {5} "
      "= ci.o * {0} + X.i, h: space {6} = h.o * {7} + X.h, w: "
      "space {8} = w.o * {9} + X.w, b: "
      "space {3} = X.b, c: space {4} = X.c) where ci.o * {0} + X.i "
      "< {5} && h.o * {7} + X.h < {6} "
      "&& w.o * {9} + X.w < {8} {{ X.inp[i, h, w, b, c] = "
      "select({10} <= h && h < {11} && {10} <= "
      "w && w < {12}, X[i, h - {10}, w - {10}, b, c], 0i8) }} }}\n",
      c.tci, ih, iw, b, n, c.ci, ph, c.th * c.stride, pw, c.tw * c.stride, c.pad, c.h + c.pad,
      c.w + c.pad);
  s += fmt::format(
      "for W.k in {0}, W.i in {1}, W.r in {2}, W.s in {2}, W.n in "
      "{3}, W.c in {3} {{ block "
      "W.wgt(k: space {4} = k.o * {0} + W.k, i: space {5} = ci.o "
      "* {1} + W.i, r: space {2} = W.r, "
      "s: space {2} = W.s, n: space {3} = W.n, c: space {3} = "
      "W.c) where k.o * {0} + W.k < {4} && "
      "ci.o * {1} + W.i < {5} {{ W.wgt[k, i, r, s, n, c] = Wt[k, "
      "i, r, s, n, c] }} }}\n",
      c.tco, c.tci, c.k, n, c.co, c.ci);
  s += fmt::format(
      "for C.k in {0}, C.h in {1}, C.w in {2}, C.i in {3}, C.r in "
      "{4}, C.s in {4} {{ block C(k: "
      "space {5} = k.o * {0} + C.k, h: space {6} = h.o * {1} + "
      "C.h, w: space {7} = w.o * {2} + "
      "C.w, i: reduce {8} = ci.o * {3} + C.i, r: reduce {4} = "
      "C.r, s: reduce {4} = C.s) where k.o "
      "* {0} + C.k < {5} && h.o * {1} + C.h < {6} && w.o * {2} + "
      "C.w < {7} && ci.o * {3} + C.i < "
      "{8} {{ call `vta.gemm`(C[k:+1, h:+1, w:+1, 0:+{9}, "
      "0:+{10}], X.inp[i:+1, h * {11} + r:+1, "
      "w * {11} + s:+1, 0:+{9}, 0:+{10}], W.wgt[k:+1, i:+1, r:+1, "
      "s:+1, 0:+{10}, 0:+{10}]) }} "
      "}}\n}}\n",
      c.tco, c.th, c.tw, c.tci, c.k, c.co, c.oh(), c.ow(), c.ci, b, n, c.stride);
  std::string value = "C[k, h, w, b, c]";
  if (c.bias) {
    s += fmt::format("alloc b.acc: i32[{},{},{}] vta.acc\n", c.co, b, n);
    s += fmt::format(
        "for b.k in {0}, b.b in {1}, b.c in {2} {{ block b.acc(k: "
        "space {3} = k.o * {0} + b.k, b: "
        "space {1} = b.b, c: space {2} = b.c) where k.o * {0} + "
        "b.k < {3} {{ b.acc[k, b, c] = "
        "bias[k, b, c] }} }}\n",
        c.tco, b, n, c.co);
    value += " + b.acc[k, b, c]";
  }
  if (c.residual) {
    s += fmt::format("alloc r.inp: i8{} vta.inp\n", out_shape);
    s += tile("r.inp", true) + block("r.inp") + " { r.inp[k, h, w, b, c] = R[k, h, w, b, c] } }\n";
    value += fmt::format(" + (i32(r.inp[k, h, w, b, c]) << {}i32)", c.residual_shift);
  }
  value = fmt::format("i8(min(max(({} + {}i32) >> {}i32, -128i32), 127i32))", value,
                      1 << (c.shift - 1), c.shift);
  s += tile("Y", true) + block("Y") + " { Y[k, h, w, b, c] = " + value + " } }\n}\n}\n";
  return s;
}

}  // namespace tilewright::codegen::vta_code
