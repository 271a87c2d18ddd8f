// Whole Funcs: interpreter against functional simulator, bit for bit.
#include "tilewright/codegen/vta/vta.h"

#include <gmock/gmock.h>

#include "tilewright/codegen/vta/test_util.h"

namespace tilewright::codegen::vta_code {
namespace {

using ::testing::HasSubstr;

Conv base_conv(int log_batch = 0, int log_block = 2) {
  Conv c;
  c.config = small_config(log_batch, log_block);
  return c;
}

size_t count(const vta::Program& p, const std::string& what) {
  size_t n = 0;
  if (p.runs.empty()) return 0;
  for (const vta::Insn& i : p.runs[0].insns)
    n += vta::disassemble(p.config, i).find(what) != std::string::npos;
  return n;
}

TEST(EmitVta, ConvolutionTileByTile) {
  const Conv c = base_conv();
  const Build b = run_both(conv_text(c), c.config);
  // Two tiles of rows and two of channels; each loads padded rows for two input blocks.
  EXPECT_EQ(count(b.program, "load.inp"), 8u);
  EXPECT_EQ(count(b.program, "gemm.reset"), 4u);
  EXPECT_EQ(count(b.program, "gemm  "), 8u);
  EXPECT_EQ(count(b.program, "store.out"), 4u);
}

TEST(EmitVta, ConvolutionShapes) {
  const Conv base = base_conv();
  Conv cut = base;  // tiles that do not divide the output
  cut.h = 7, cut.w = 9, cut.th = 3, cut.tw = 4, cut.co = 3, cut.tco = 2, cut.ci = 3, cut.tci = 2;
  Conv stride = base;
  stride.h = stride.w = 11, stride.stride = 2, stride.th = 3, stride.tw = 4, stride.tco = 2;
  Conv pointwise = base;
  pointwise.k = 1, pointwise.pad = 0, pointwise.tco = 2, pointwise.tci = 2;
  Conv strided_pointwise = pointwise;
  strided_pointwise.stride = 2, strided_pointwise.h = 9;
  Conv wide_pad = base;
  wide_pad.k = 5, wide_pad.pad = 2, wide_pad.th = 2, wide_pad.tw = 3;
  Conv no_bias = base;
  no_bias.bias = false;
  Conv residual = cut;
  residual.residual = true;
  Conv large_residual = residual;
  large_residual.residual_shift = 9;
  for (const Conv& c :
       {cut, stride, pointwise, strided_pointwise, wide_pad, no_bias, residual, large_residual}) {
    SCOPED_TRACE(conv_text(c));
    run_both(conv_text(c), c.config);
    run_both(conv_text(c), c.config, {.copies = 1});
    run_both(conv_text(c), c.config, {.copies = 3});
  }
}

TEST(EmitVta, ConvolutionOnOtherConfigurations) {
  for (const auto& [log_batch, log_block] : {std::pair(1, 2), {0, 4}, {2, 3}, {1, 4}}) {
    Conv c = base_conv(log_batch, log_block);
    c.h = 5, c.w = 6, c.th = 2, c.tw = 6, c.residual = true;
    SCOPED_TRACE(fmt::format("batch {} block {}", c.config.batch(), c.config.block_out()));
    run_both(conv_text(c), c.config, {}, 30);
  }
}

TEST(EmitVta, TinyTilesKeepEqualDestinationsApart) {
  for (int tw = 1; tw <= 3; ++tw) {
    Conv c = base_conv();
    c.h = c.w = 4, c.th = 1, c.tw = tw;
    SCOPED_TRACE(tw);
    run_both(conv_text(c), c.config);  // the checker objects to steps too close
  }
}

TEST(EmitVta, ResetMovesIntoTheFirstAccumulation) {
  Conv c = base_conv();
  c.config.extensions.fused_reset = true;
  for (const int tci : {1, 2})
    for (const int k : {1, 3}) {
      c.tci = tci, c.k = k, c.pad = k / 2;
      const Build b = run_both(conv_text(c), c.config);
      EXPECT_EQ(count(b.program, "gemm.reset"), 0u) << listing(b.program);
    }
}

/// Elements of 4 channels; X is padded where `fill` is given.
std::string pool_text(const std::string& fill, const std::string& init, const std::string& combine,
                      const std::string& epilogue) {
  return fmt::format(R"(
func pool(X: i8[7,8,1,4], out Y: i8[4,4,1,4]) {{
  for h.o in 2 {{
    alloc X.inp: i8[7,8,1,4] vta.inp
    for X.h in 5, X.w in 8, X.c in 4 {{
      block X.inp(h: space 7 = h.o * 4 - 1 + X.h, w: space 8 = X.w, c: space 4 = X.c) where
          0 <= h.o * 4 - 1 + X.h && h.o * 4 - 1 + X.h < 7 {{ X.inp[h, w, 0, c] = X[h, w, 0, c] }}
    }}
    alloc A: i32[9,9,1,4] vta.acc
    for A.h in 5, A.w in 9, A.c in 4 {{
      block A(h: space 9 = h.o * 4 + A.h, w: space 9 = A.w, c: space 4 = A.c) {{
        A[h, w, 0, c] = select(1 <= h && h < 8 && 1 <= w && w < 9, i32(X.inp[h - 1, w - 1, 0, c]), {0}) }}
    }}
    alloc P: i32[4,4,1,4] vta.acc
    for P.init.h in 2, P.init.w in 4, P.init.c in 4 {{
      block P.init(h: space 4 = h.o * 2 + P.init.h, w: space 4 = P.init.w, c: space 4 = P.init.c) {{
        P[h, w, 0, c] = {1} }}
    }}
    for P.h in 2, P.w in 4, P.c in 4, P.r in 3, P.s in 3 {{
      block P(h: space 4 = h.o * 2 + P.h, w: space 4 = P.w, c: space 4 = P.c, r: reduce 3 = P.r,
              s: reduce 3 = P.s) {{ P[h, w, 0, c] {2} A[h * 2 + r, w * 2 + s, 0, c] }}
    }}
    for Y.h in 2, Y.w in 4, Y.c in 4 {{
      block Y(h: space 4 = h.o * 2 + Y.h, w: space 4 = Y.w, c: space 4 = Y.c) {{
        Y[h, w, 0, c] = i8({3}) }}
    }}
  }}
}})",
                     fill, init, combine, epilogue);
}

TEST(EmitVta, MaxPoolWithPaddingInTheAccumulator) {
  const vta::Config c = small_config(0, 2);
  const Build b = run_both(pool_text("-128i32", "-128i32", "max=", "P[h, w, 0, c]"), c);
  EXPECT_EQ(count(b.program, "alu.shr"), 0u);  // MAX wrote what is stored
  run_both(pool_text("0i32", "0i32", "max=", "P[h, w, 0, c]"), c);
  run_both(pool_text("100000i32", "100000i32", "min=", "P[h, w, 0, c] >> 3i32"), c);
}

TEST(EmitVta, AveragePool) {
  run_both(pool_text("0i32", "5i32", "+=", "(P[h, w, 0, c] + 4i32) >> 3i32"), small_config(0, 2));
}

/// One block `Y` over a residual-like sum, staged into an accumulator first.
std::string elementwise_text(const std::string& staged, const std::string& stored) {
  return fmt::format(R"(
func add(A: i8[3,5,4], B: i8[3,5,4], M: i32[3,4], out Y: i8[3,5,4]) {{
  for o in 3 {{
    alloc a: i8[3,5,4] vta.inp
    for a.w in 5, a.c in 4 {{ block a(o: space 3 = o, w: space 5 = a.w, c: space 4 = a.c) {{
      a[o, w, c] = A[o, w, c] }} }}
    alloc b: i8[3,5,4] vta.inp
    for b.w in 5, b.c in 4 {{ block b(o: space 3 = o, w: space 5 = b.w, c: space 4 = b.c) {{
      b[o, w, c] = B[o, w, c] }} }}
    alloc m: i32[3,4] vta.acc
    for m.c in 4 {{ block m(o: space 3 = o, c: space 4 = m.c) {{ m[o, c] = M[o, c] }} }}
    alloc T: i32[3,5,4] vta.acc
    for T.w in 5, T.c in 4 {{ block T(o: space 3 = o, w: space 5 = T.w, c: space 4 = T.c) {{
      T[o, w, c] = {} }} }}
    for Y.w in 5, Y.c in 4 {{ block Y(o: space 3 = o, w: space 5 = Y.w, c: space 4 = Y.c) {{
      Y[o, w, c] = {} }} }}
  }}
}})",
                     staged, stored);
}

TEST(EmitVta, ElementwiseExpressions) {
  const vta::Config c = small_config(0, 2);
  const std::string t = "T[o, w, c]", a = "i32(a[o, w, c])", b = "i32(b[o, w, c])";
  const std::string clip = "i8(min(max(T[o, w, c] >> 3i32, -128i32), 127i32))";
  for (const std::string& staged : std::vector<std::string>{
           a, "(" + a + " << 2i32) + (" + b + " << 5i32)", a + " - " + b + " * 3i32",
           a + " * 300i32 + 7i32", "(" + a + " << 20i32)", a + " * 32767i32", "-" + a,
           "max(" + a + " * 10000i32, 0i32) + 1000i32", "max(m[o, c], 0i32)",
           "(m[o, c] + m[o, c]) + " + a, "min(" + a + " + m[o, c], 99i32)",
           "i32(i8(" + a + " * 5i32)) + " + b, "(" + a + " / 4i32) << 17i32", "100000i32",
           "(" + a + " << 3i32) * 8i32 - 40000i32"})
    run_both(elementwise_text(staged, clip), c);
  for (const std::string& stored : std::vector<std::string>{
           "i8(" + t + ")", "i8(" + t + " >> 31i32)", "max(i8(" + t + " >> 1i32), 0i8)",
           "i8(max(" + t + ", m[o, c]) >> 2i32)", "i8((" + t + " + " + b + " * -129i32) >> 7i32)",
           "i8(min(" + t + " + m[o, c] + 3i32, 127i32))"})
    run_both(elementwise_text(a + " * 77i32", stored), c);
}

TEST(EmitVta, MultiplicationWhereTheConfigurationHasIt) {
  vta::Config c = small_config(0, 2);
  const std::string staged = "i32(a[o, w, c]) * 77i32";
  const std::string text =
      elementwise_text(staged, "i8(min(max(T[o, w, c] * m[o, c] * 3i32 >> 16i32, -9i32), 9i32))");
  const auto refused = build(text, c);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, HasSubstr("has_mul"));
  c.has_mul = true;
  const auto b = build(text, c);
  ASSERT_TRUE(b) << to_string(b.error());
  vta::CheckOptions beyond;
  beyond.portable = false;
  EXPECT_TRUE(vta::check_program(b->program, beyond).empty());
}

TEST(EmitVta, WhatItCannotDoIsAnErrorWithTheBlock) {
  const vta::Config c = small_config(0, 2);
  const std::string a = "i32(a[o, w, c])", t = "T[o, w, c]";
  auto error = [&](const std::string& staged, const std::string& stored) {
    const auto b = build(elementwise_text(staged, stored), c);
    return b ? std::string("no error") : to_string(b.error());
  };
  EXPECT_THAT(error(a + " / 3i32", "i8(" + t + ")"), HasSubstr("powers of two"));
  EXPECT_THAT(error(a + " / 3i32", "i8(" + t + ")"), HasSubstr("block `T`"));
  EXPECT_THAT(error(a, "i8(max(" + t + ", " + t + " >> 3i32))"), HasSubstr("block `Y`"));
  EXPECT_THAT(error(a, "i8(" + a + ")"), HasSubstr("accumulator it may overwrite"));
  EXPECT_THAT(error("min(" + a + ", 40000i32)", "i8(" + t + ")"), HasSubstr("40000"));
  EXPECT_THAT(error(a + " * (m[o, c] + 1i32)", "i8(" + t + ")"), HasSubstr("accumulator"));
  EXPECT_THAT(error("i32(a[o, w, 3 - c])", "i8(" + t + ")"), HasSubstr("within an element"));
  // Written as all other errors: small letters, no full stops.
  EXPECT_EQ(error(a, "i8(" + a + ")"),
            "error: nothing that it reads is an accumulator it may overwrite\n  at:  block `Y`\n"
            "  fix: compute its value into a vta.acc buffer first\n");
}

TEST(EmitVta, AccumulatorsDieWhereTheyAreStored) {
  const std::string text = R"(
func twice(A: i32[5,4], out Y: i8[5,4], out Z: i8[5,4]) {
  alloc T: i32[5,4] vta.acc
  for T.w in 5, T.c in 4 { block T(w: space 5 = T.w, c: space 4 = T.c) { T[w, c] = A[w, c] } }
  for Y.w in 5, Y.c in 4 { block Y(w: space 5 = Y.w, c: space 4 = Y.c) { Y[w, c] = i8(T[w, c] >> 8i32) } }
  for Z.w in 5, Z.c in 4 { block Z(w: space 5 = Z.w, c: space 4 = Z.c) { Z[w, c] = i8(T[w, c]) } }
})";
  const auto b = build(text, small_config(0, 2));
  ASSERT_FALSE(b);
  EXPECT_THAT(b.error().what, HasSubstr("`T` is used again"));
}

TEST(EmitVta, CapacityErrorsHaveTheNumbers) {
  Conv c = base_conv();
  c.h = c.w = 40, c.th = c.tw = 40, c.tco = 2;
  const auto b = build(conv_text(c), c.config);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(b.error().what, HasSubstr("3528 elements needed, 2048 there"));
}

TEST(EmitVta, UseCountsCopiesOfWhatIsAllocatedAgain) {
  Conv c = base_conv();
  c.residual = true;
  const auto func = parse_func(conv_text(c));
  ASSERT_TRUE(func);
  const auto one = use_of(*func, c.config, {.copies = 1});
  const auto two = use_of(*func, c.config, {.copies = 2});
  EXPECT_EQ(one.inp, 6 * 10 + 4 * 8);
  EXPECT_EQ(one.wgt, 9 + 1);  // and a diagonal
  EXPECT_EQ(one.acc, 4 * 8 + 1);
  EXPECT_EQ(two.inp, 2 * one.inp);
  EXPECT_EQ(two.wgt, 2 * 9 + 1);
  EXPECT_EQ(two.acc, 2 * one.acc);
}

TEST(EmitVta, AMarkGivesAnAllocationItsOwnCopies) {
  Conv c = base_conv();
  std::string text = conv_text(c);
  const std::string alloc = "vta.inp\n";
  text.replace(text.find(alloc), alloc.size(), "vta.inp @(copies=3)\n");
  run_both(text, c.config);
  EXPECT_EQ(use_of(*parse_func(text), c.config, {.copies = 1}).inp, 3 * 6 * 10);
}

TEST(EmitVta, ACallThatFillsIsAReset) {
  const Conv c = base_conv();
  std::string text =
      "func zero(out Z: i32[1,4]) {\n  for z.b in 1, z.c in 4 {\n    block z(b: "
      "space 1 = z.b, c: space 4 = z.c) {\n      Z[b, c] = 0i32\n    }\n  }\n}\n" +
      conv_text(c);
  const std::string lanes = ", C.init.b in 1, C.init.c in 4 {";
  text.replace(text.find(lanes), lanes.size(), " {");
  const std::string iters = ", b: space 1 = C.init.b, c: space 4 = C.init.c)";
  text.replace(text.find(iters), iters.size(), ")");
  const std::string body = "C[k, h, w, b, c] = 0i32";
  text.replace(text.find(body), body.size(), "call zero(C[k:+1, h:+1, w:+1, 0:+1, 0:+4])");
  EXPECT_EQ(count(run_both(text, c.config).program, "gemm.reset"), 4u);
  // The mark of a block speaks for its buffer.
  text.replace(text.find(" { call zero"), 1, " @(copies=4) ");
  EXPECT_EQ(use_of(*parse_func(text), c.config, {.copies = 1}).acc, 4 * 4 * 8 + 1);
}

TEST(EmitVta, PartsOfACutLoopShareTheirRoom) {
  constexpr const char* part = R"(
  for i@{0} in {1} {{
    alloc T@{0}: i32[12,4] vta.acc
    for T.w@{0} in {2}, T.c@{0} in 4 {{ block T@{0}(w: space 12 = {3} + i@{0} * {2} + T.w@{0}, c: space 4 = T.c@{0}) {{ T@{0}[w, c] = A[w, c] }} }}
    for Y.w@{0} in {2}, Y.c@{0} in 4 {{ block Y@{0}(w: space 12 = {3} + i@{0} * {2} + Y.w@{0}, c: space 4 = Y.c@{0}) {{ Y[w, c] = i8(T@{0}[w, c] >> 8i32) }} }}
  }}
)";
  const std::string text = "func f(A: i32[12,4], out Y: i8[12,4]) {" +
                           fmt::format(part, 0, 2, 4, 0) + fmt::format(part, 1, 2, 2, 8) + "}";
  const vta::Config c = small_config(0, 2);
  run_both(text, c);
  EXPECT_EQ(use_of(*parse_func(text), c, {.copies = 2}).acc, 8);
}

TEST(EmitVta, UnrolledLoopsStaySeparateInstructions) {
  Conv c = base_conv();
  std::string text = conv_text(c);
  EXPECT_EQ(count(run_both(text, c.config).program, "store.out"), 4u);
  const size_t at = text.find("Y.h in 4");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, "Y.h in 4 unroll");
  EXPECT_EQ(count(run_both(text, c.config).program, "store.out"), 16u);
}

TEST(EmitVta, RandomConvolutions) {
  std::mt19937 random(17);
  auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  int fitting = 0;
  for (int round = 0; round < 60; ++round) {
    Conv c = base_conv(pick(0, 3) == 0, pick(2, 3));
    c.config.extensions.fused_reset = pick(0, 3) == 0;
    c.config.timing.loop_fill = pick(0, 1) * 5;
    c.ci = pick(1, 4), c.co = pick(1, 4), c.h = pick(3, 9), c.w = pick(3, 9);
    c.k = pick(1, 3), c.stride = pick(1, 2), c.pad = pick(0, c.k - 1);
    c.tci = pick(1, c.ci), c.tco = pick(1, c.co), c.th = pick(1, c.oh()), c.tw = pick(1, c.ow());
    c.bias = pick(0, 2) > 0, c.residual = pick(0, 1), c.residual_shift = pick(0, 8);
    c.shift = pick(1, 10);
    const auto b = build(conv_text(c), c.config, {.copies = pick(1, 3)});
    if (!b) {
      EXPECT_EQ(b.error().kind, ErrorKind::Capacity) << to_string(b.error()) << conv_text(c);
      continue;
    }
    SCOPED_TRACE(conv_text(c));
    expect_right(*b);
    ++fitting;
  }
  EXPECT_GE(fitting, 40);
}

TEST(EmitVta, BlocksOfDifferentSizes) {
  Conv c = base_conv();
  c.config.log_block_in = 1;
  c.config.log_inp_buff = 12;
  const std::string text = R"(
func fc(X: i8[6,1,2], const Wt: i8[3,6,4,2], out Y: i8[3,1,4]) {
  alloc X.inp: i8[6,1,2] vta.inp
  for x.i in 6, x.c in 2 { block X.inp(i: space 6 = x.i, c: space 2 = x.c) { X.inp[i, 0, c] = X[i, 0, c] } }
  alloc C: i32[3,1,4] vta.acc
  for c.o in 3, c.c in 4 { block C.init(o: space 3 = c.o, c: space 4 = c.c) { C[o, 0, c] = 0i32 } }
  for o.o in 3 {
    alloc W: i8[3,6,4,2] vta.wgt
    for w.i in 6, w.n in 4, w.c in 2 { block W(o: space 3 = o.o, i: space 6 = w.i, n: space 4 = w.n, c: space 2 = w.c) {
      W[o, i, n, c] = Wt[o, i, n, c] } }
    for g.i in 6 { block C(o: space 3 = o.o, i: reduce 6 = g.i) {
      call `vta.gemm`(C[o:+1, 0:+1, 0:+4], X.inp[i:+1, 0:+1, 0:+2], W[o:+1, i:+1, 0:+4, 0:+2]) } }
  }
  for y.o in 3, y.c in 4 { block Y(o: space 3 = y.o, c: space 4 = y.c) {
    Y[o, 0, c] = i8(min(max(C[o, 0, c] >> 7i32, -128i32), 127i32)) } }
})";
  const Build b = run_both(gemm_text(c.config) + text, c.config);
  EXPECT_EQ(count(b.program, "gemm  "), 18u);  // one step each: all of a row add to one element
}

TEST(EmitVta, GuardsOnTwoLoopsUnrollOne) {
  const std::string text = R"(
func pool(X: i8[6,4], out Y: i8[3,4]) {
  alloc X.inp: i8[6,4] vta.inp
  for X.h in 6, X.c in 4 { block X.inp(h: space 6 = X.h, c: space 4 = X.c) { X.inp[h, c] = X[h, c] } }
  alloc A: i32[6,4] vta.acc
  for A.h in 6, A.c in 4 { block A(h: space 6 = A.h, c: space 4 = A.c) { A[h, c] = i32(X.inp[h, c]) } }
  alloc P: i32[3,4] vta.acc
  for p.h in 3, p.c in 4 { block P.init(h: space 3 = p.h, c: space 4 = p.c) { P[h, c] = -128i32 } }
  for P.h in 3, P.r in 3, P.c in 4 {
    block P(h: space 3 = P.h, r: reduce 3 = P.r, c: space 4 = P.c) where 1 <= P.h * 2 + P.r && P.h * 2 + P.r < 7 {
      P[h, c] max= A[min(max(h * 2 + r - 1, 0), 5), c] }
  }
  for Y.h in 3, Y.c in 4 { block Y(h: space 3 = Y.h, c: space 4 = Y.c) { Y[h, c] = i8(P[h, c]) } }
})";
  const Build b = run_both(text, small_config(0, 2));
  EXPECT_EQ(count(b.program, "alu.max"), 3u);
}

TEST(EmitVta, StridedParametersAndIntermediatesInDram) {
  const std::string text = R"(
func f(X: i8[3,4,4] strides [32,8,1], out Y: i8[3,4,4]) {
  alloc Z: i8[3,4,4]
  for t.h in 3 {
    alloc a: i8[3,4,4] vta.inp
    for a.w in 4, a.c in 4 { block a(h: space 3 = t.h, w: space 4 = a.w, c: space 4 = a.c) { a[h, w, c] = X[h, w, c] } }
    alloc T: i32[3,4,4] vta.acc
    for T.w in 4, T.c in 4 { block T(h: space 3 = t.h, w: space 4 = T.w, c: space 4 = T.c) { T[h, w, c] = i32(a[h, w, c]) << 1i32 } }
    for Z.w in 4, Z.c in 4 { block Z(h: space 3 = t.h, w: space 4 = Z.w, c: space 4 = Z.c) { Z[h, w, c] = i8(T[h, w, c]) } }
  }
  for u.h in 3 {
    alloc b: i8[3,4,4] vta.inp
    for b.w in 4, b.c in 4 { block b(h: space 3 = u.h, w: space 4 = b.w, c: space 4 = b.c) { b[h, w, c] = Z[h, w, c] } }
    alloc U: i32[3,4,4] vta.acc
    for U.w in 4, U.c in 4 { block U(h: space 3 = u.h, w: space 4 = U.w, c: space 4 = U.c) { U[h, w, c] = i32(b[h, w, c]) * 3i32 } }
    for Y.w in 4, Y.c in 4 { block Y(h: space 3 = u.h, w: space 4 = Y.w, c: space 4 = Y.c) { Y[h, w, c] = i8(U[h, w, c] >> 2i32) } }
  }
})";
  run_both(text, small_config(0, 2));
}

TEST(EmitVta, LongPaddingIsLoadedInPieces) {
  const std::string text = R"(
func pad(X: i8[3,3,4], out Y: i8[43,40,4]) {
  for h.o in 1 {
  alloc P: i8[43,40,4] vta.inp
  for P.h in 43, P.w in 40, P.c in 4 { block P(h: space 43 = P.h, w: space 40 = P.w, c: space 4 = P.c) {
    P[h, w, c] = select(20 <= h && h < 23 && (17 <= w && w < 20), X[h - 20, w - 17, c], 0i8) } }
  for o.h in 43 {
    alloc T: i32[43,40,4] vta.acc
    for T.w in 40, T.c in 4 { block T(h: space 43 = o.h, w: space 40 = T.w, c: space 4 = T.c) {
      T[h, w, c] = i32(P[h, w, c]) } }
    for Y.w in 40, Y.c in 4 { block Y(h: space 43 = o.h, w: space 40 = Y.w, c: space 4 = Y.c) {
      Y[h, w, c] = i8(T[h, w, c]) } }
  } }
})";
  run_both(text, small_config(0, 2));
}

}  // namespace
}  // namespace tilewright::codegen::vta_code
