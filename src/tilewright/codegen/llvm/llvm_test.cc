#include "tilewright/codegen/llvm/llvm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LlvmSlow, AgreesWithTheInterpreter) {
  const std::vector<testing::Case> cases = testing::standard_cases();
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  LlvmOptions options;
  options.opt_level = 1;
  const auto module = jit(*lowered, options);
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const Status ok = testing::check(cases[i], (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << cases[i].name << "\n" << to_string(ok.error()) << print(cases[i].func);
  }
}

// The row is the same for all lanes, but what it is chosen by may only be read where a lane runs:
// nobody sees that `select` gives an index below 3. The column follows the lane.
TEST(Llvm, RowsThatAreChosenAtRunTimeUnderAMask) {
  const Func func = *parse_func(R"(
func rows(x: f32[4,3], chosen: i64[3], places: i64[2], out y: f32[2,6]) {
  for i in 2, j in 6 vector {
    block y(a: space 2 = i, b: space 6 = j) {
      y[a, b] = select(b < 3, x[min(max(chosen[select(places[a] > 100, 5, a)], 0), 3), b], x[min(max(chosen[select(places[a] > 100, 5, a)] + 1, 0), 3), b - 3])
    }
  }
}
)");
  const testing::Case rows{"rows", func};
  const auto lowered = testing::lower_all({rows});
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = jit(*lowered, {});
  ASSERT_TRUE(module) << to_string(module.error());
  const KernelInfo& info = (*module)->kernels()[0];
  const Status ok = testing::check(rows, (*module)->find(info.symbol), info);
  EXPECT_TRUE(ok) << to_string(ok.error());
}

TEST(Llvm, RowsThatAreChosenAreOnlyLookedUpWhereTheyAreRead) {
  for (const char* kind : {"", " vector"}) {
    const Func func = *parse_func(fmt::format(R"(
func joined(x: f32[5], chosen: i64[2], out y: f32[4]) {{
  for i in 4{} {{
    block y(a: space 4 = i) {{
      y[a] = select(a < 2, x[min(max(chosen[a], 0), 4)], x[min(max(chosen[a - 2], 0), 4)])
    }}
  }}
}}
)",
                                              kind));
    const testing::Case joined{"joined", func};
    const auto module = jit({func}, {});
    ASSERT_TRUE(module) << to_string(module.error());
    const KernelInfo& info = (*module)->kernels()[0];
    const Status ok = testing::check(joined, (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << kind << to_string(ok.error());
  }
}

// Quotients and remainders of lanes: neighbours, repetitions, a rotated row; partial vectors,
// single lanes, and distances too long for two vectors or not constant.
TEST(Llvm, LanesReadAtConstantDistances) {
  std::vector<Func> funcs;
  for (const char* place :
       {"b / 2", "b % 16", "b % 5", "b / 7", "(b + 3) % 8", "(b * 3 + a * 8) / 8",
        "b % 2 * 11 + b / 2", "b % 4 * 9", "b * b % 48", "min(max(chosen[b], 0), 47)"})
    for (const int width : {16, 32, 11, 17, 1})
      funcs.push_back(*parse_func(fmt::format(
          R"(func f{2}(x: f32[3,48], chosen: i64[32], out y: f32[3,{0}]) {{
  for i in 3, j in {0} vector {{
    block y(a: space 3 = i, b: space {0} = j) {{
      y[a, b] = x[a, {1}] + x[2 - a, b]
    }}
  }}
}})",
          width, place, funcs.size())));
  const auto module = jit(funcs, {});
  ASSERT_TRUE(module) << to_string(module.error());
  for (size_t i = 0; i < funcs.size(); ++i) {
    const KernelInfo& info = (*module)->kernels()[i];
    const testing::Case at{"distances", funcs[i]};
    const Status ok = testing::check(at, (*module)->find(info.symbol), info);
    EXPECT_TRUE(ok) << print(funcs[i]) << to_string(ok.error());
  }
}

std::string conv_tile(int width, int blocks) {
  return fmt::format(
      R"(func tile(P: f32[4,3,{0},16], const W: f32[4,3,3,16,{1},16], out Y: f32[{1},{2},16]) {{
  alloc C: f32[{1},{2},16] local
  for C.init.w in {2} unroll, C.init.k in {1} unroll, C.init.i in 16 vector {{
    block C.init(k: space {1} = C.init.k, w: space {2} = C.init.w, i: space 16 = C.init.i) {{
      C[k, w, i] = 0.0
    }}
  }}
  for c in 4, r in 3, s in 3, ci in 16, w in {2} unroll, k in {1} unroll, i in 16 vector {{
    block C(k: space {1} = k, w: space {2} = w, i: space 16 = i, c: reduce 4 = c, r: reduce 3 = r, s: reduce 3 = s, d: reduce 16 = ci) {{
      C[k, w, i] += P[c, r, w + s, d] * W[c, r, s, d, k, i]
    }}
  }}
  for Y.w in {2} unroll, Y.k in {1} unroll, Y.i in 16 vector {{
    block Y(k: space {1} = Y.k, w: space {2} = Y.w, i: space 16 = Y.i) {{
      Y[k, w, i] = max(C[k, w, i], 0.0)
    }}
  }}
}}
)",
      width + 2, blocks, width);
}

/// Instructions between labels that hold the most multiply-adds: the hot loop.
std::string hot_loop(const std::string& assembly) {
  std::string block, best;
  size_t most = 0;
  auto count = [](const std::string& text) {
    size_t n = 0;
    for (size_t at = text.find("vfmadd"); at != std::string::npos; at = text.find("vfmadd", at + 1))
      ++n;
    return n;
  };
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == '.' && line.find(':') != std::string::npos) {
      if (count(block) > most) most = count(block), best = block;
      block.clear();
    }
    block += line + "\n";
  }
  return count(block) > most ? block : best;
}

LlvmOptions for_target(const std::string& name) {
  LlvmOptions options;
  options.target = *hw::find_target(name);
  return options;
}

TEST(Llvm, RegisterTilesStayInRegisters) {
  struct Row {
    const char* target;
    int width, blocks;
    size_t fmas;
  };
  // The largest tiles of 32 and of 16 vector registers.
  for (const Row& row : {Row{"x86-64-v4", 14, 2, 28}, Row{"x86-64-v4", 8, 3, 24},
                         Row{"x86-64-v4", 28, 1, 28}, Row{"x86-64-v3", 6, 1, 12}}) {
    const auto func = parse_func(conv_tile(row.width, row.blocks));
    ASSERT_TRUE(func) << to_string(func.error());
    const LlvmOptions options = for_target(row.target);
    const auto lowered = lower::run_pipeline(*func, "cpu");
    ASSERT_TRUE(lowered) << to_string(lowered.error());
    const auto assembly = emit_assembly(*lowered, options);
    ASSERT_TRUE(assembly) << to_string(assembly.error());
    const std::string loop = hot_loop(*assembly);
    size_t fmas = 0;
    for (size_t at = loop.find("vfmadd"); at != std::string::npos; at = loop.find("vfmadd", at + 1))
      ++fmas;
    EXPECT_EQ(fmas, row.fmas) << loop;
    EXPECT_THAT(loop, Not(HasSubstr("(%rsp)"))) << row.target << " " << row.width;
  }
}

constexpr const char* kRaggedTile =
    R"(func f(A: f32[6, 64], const W: f32[2, 64, 16], out Y: f32[6, 28]) {
  for o in 1 {
    alloc acc: f32[6, 28] local
    for i0 in 6 unroll, j0 in 2 unroll, l0 in 16 vector {
      block zero(m: space 6 = i0, n: space 28 = j0 * 16 + l0) where j0 * 16 + l0 < 28 {
        acc[m, n] = 0.0
      }
    }
    for k in 64, i1 in 6 unroll, j1 in 2 unroll, l1 in 16 vector {
      block sum(m: space 6 = i1, n: space 28 = j1 * 16 + l1, r: reduce 64 = k) where j1 * 16 + l1 < 28 {
        acc[m, n] += A[m, r] * W[n / 16, r, n % 16]
      }
    }
    for i2 in 6 unroll, j2 in 2 unroll, l2 in 16 vector {
      block Y(m: space 6 = i2, n: space 28 = j2 * 16 + l2) where j2 * 16 + l2 < 28 {
        Y[m, n] = acc[m, n]
      }
    }
  }
}
)";

TEST(Llvm, TilesWhoseLastVectorIsPartialStayInRegisters) {
  const auto func = parse_func(kRaggedTile);
  ASSERT_TRUE(func) << to_string(func.error());
  const LlvmOptions options = for_target("x86-64-v4");
  const auto lowered = lower::run_pipeline(*func, "cpu");
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto assembly = emit_assembly(*lowered, options);
  ASSERT_TRUE(assembly) << to_string(assembly.error());
  const std::string loop = hot_loop(*assembly);
  EXPECT_THAT(loop, HasSubstr("vfmadd"));
  EXPECT_THAT(loop, Not(HasSubstr("(%rsp)"))) << loop;
}

/// Seventeen columns: what is left of a vector loop is one lane, a number.
constexpr const char* kTileWithALaneLeft =
    R"(func f(A: f32[6, 64], const W: f32[64, 17], out Y: f32[6, 17]) {
  for o in 1 {
    alloc acc: f32[6, 17] local
    for i0 in 6 unroll, l0 in 17 vector {
      block zero(m: space 6 = i0, n: space 17 = l0) {
        acc[m, n] = 0.0
      }
    }
    for k in 64, i1 in 6 unroll, l1 in 17 vector {
      block sum(m: space 6 = i1, n: space 17 = l1, r: reduce 64 = k) {
        acc[m, n] += A[m, r] * W[r, n]
      }
    }
    for i2 in 6 unroll, l2 in 17 vector {
      block Y(m: space 6 = i2, n: space 17 = l2) {
        Y[m, n] = acc[m, n]
      }
    }
  }
}
)";

TEST(Llvm, ASingleLaneStaysInARegister) {
  const auto lowered = lower::run_pipeline(*parse_func(kTileWithALaneLeft), "cpu");
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto assembly = emit_assembly(*lowered, for_target("x86-64-v4"));
  ASSERT_TRUE(assembly) << to_string(assembly.error());
  const std::string loop = hot_loop(*assembly);
  EXPECT_THAT(loop, HasSubstr("vfmadd"));
  EXPECT_THAT(loop, Not(HasSubstr("(%rsp)"))) << loop;
}

TEST(Llvm, ObjectsAreDeterministic) {
  const std::vector<testing::Case> cases = testing::standard_cases();
  const std::vector<testing::Case> some(cases.begin(), cases.begin() + 12);
  const auto lowered = testing::lower_all(some);
  ASSERT_TRUE(lowered);
  const auto one = emit_objects(*lowered, {}, 1), two = emit_objects(*lowered, {}, 3);
  ASSERT_TRUE(one && two);
  ASSERT_EQ(one->size(), two->size());
  for (size_t i = 0; i < one->size(); ++i) {
    EXPECT_EQ((*one)[i].bytes, (*two)[i].bytes) << some[i].name;
    EXPECT_EQ((*one)[i].kernels[0].symbol, some[i].name);
    EXPECT_EQ((*one)[i].bytes.substr(0, 4),
              "\x7f"
              "ELF");
  }
}

constexpr const char* kMultiplyAdd = R"(func f(A: f32[16], B: f32[16], out Y: f32[16]) {
  for i in 16 vector {
    block Y(k: space 16 = i) {
      Y[k] = A[k] * B[k] + 1.0
    }
  }
}
)";

TEST(Llvm, OnlyFastMathContracts) {
  Func func = *parse_func(kMultiplyAdd);
  const LlvmOptions options = for_target("x86-64-v3");
  EXPECT_THAT(*emit_assembly(func, options), HasSubstr("vfmadd"));
  func.math = MathMode::Exact;
  EXPECT_THAT(*emit_assembly(func, options), Not(HasSubstr("vfmadd")));
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Llvm, PrefetchesWhatMarkedLoopsReadNext) {
  // Four unrolled rows read the same vector of W, once ahead of its use; P is read by elements.
  const std::string plain = conv_tile(4, 1), loop = "c in 4";
  std::string marked = plain;
  marked.replace(marked.find(loop), loop.size(), loop + " @(prefetch=2)");
  LlvmOptions options = for_target("x86-64-v4");
  options.opt_level = 0;
  const auto ir_of = [&](const std::string& text) {
    const auto func = parse_func(text);
    EXPECT_TRUE(func) << to_string(func.error());
    return *emit_llvm_ir(*lower::run_pipeline(*func, "cpu"), options);
  };
  EXPECT_EQ(occurrences(ir_of(plain), "call void @llvm.prefetch"), 0);
  EXPECT_EQ(occurrences(ir_of(marked), "call void @llvm.prefetch"), 1);
  // Two steps of `c` are 2 * 3 * 3 * 16 * 16 elements.
  EXPECT_THAT(ir_of(marked), HasSubstr("i64 4608"));
  EXPECT_THAT(ir_of(plain), Not(HasSubstr("i64 4608")));
}

TEST(Llvm, AsksForEachCacheLineOnce) {
  // Four vectors beside each other: four lines of 16 elements of f32, or two of twice 8.
  const auto asked = [](int lanes) {
    const std::string text = fmt::format(
        R"(func sums(const W: f32[64,4,{0}], out Y: f32[4,{0}]) {{
  for k.init in 4 unroll, i.init in {0} vector {{
    block Y.init(k: space 4 = k.init, i: space {0} = i.init) {{
      Y[k, i] = 0.0
    }}
  }}
  for s in 64 @(prefetch=8), k in 4 unroll, i in {0} vector {{
    block Y(k: space 4 = k, i: space {0} = i, s: reduce 64 = s) {{
      Y[k, i] += W[s, k, i]
    }}
  }}
}}
)",
        lanes);
    const auto func = parse_func(text);
    EXPECT_TRUE(func) << to_string(func.error());
    LlvmOptions options = for_target("x86-64-v4");
    options.opt_level = 0;
    return occurrences(*emit_llvm_ir(*lower::run_pipeline(*func, "cpu"), options),
                       "call void @llvm.prefetch");
  };
  EXPECT_EQ(asked(16), 4);
  EXPECT_EQ(asked(8), 2);
}

TEST(Llvm, FetchesTheNextWeightsWhileTheseAreReadAgain) {
  // Three parts of W of 4096 bytes, each read 8 times in 64 steps: 8 bytes in each step.
  const auto ir_of = [](const std::string& loops, const std::string& n, const std::string& m,
                        const std::string& mode) {
    const std::string text = fmt::format(
        R"(func f(A: f32[8,64], {3}W: f32[3,64,16], out Y: f32[8,3,16]) {{
  {0} {{
    for l0 in 16 vector {{
      block Y.init(m: space 8 = {2}, n: space 3 = {1}, l: space 16 = l0) {{ Y[m, n, l] = 0.0 }}
    }}
    for k in 64 @(fetch_next=4096), l1 in 16 vector {{
      block Y(m: space 8 = {2}, n: space 3 = {1}, l: space 16 = l1, k1: reduce 64 = k) {{
        Y[m, n, l] += A[m, k1] * W[n, k1, l]
      }}
    }}
  }}
}})",
        loops, n, m, mode);
    const auto func = parse_func(text);
    EXPECT_TRUE(func) << to_string(func.error());
    LlvmOptions options = for_target("x86-64-v4");
    options.opt_level = 0;
    return *emit_llvm_ir(*lower::run_pipeline(*func, "cpu"), options);
  };
  const std::string apart = ir_of("for i in 3, j in 8", "i", "j", "const ");
  const std::string joined = ir_of("for q in 24", "q / 8", "q % 8", "const ");
  for (const std::string& ir : {apart, joined}) {
    EXPECT_EQ(occurrences(ir, "call void @llvm.prefetch"), 1);
    EXPECT_THAT(ir, HasSubstr(", 64\n"));  // steps of a pass
  }
  // Loops around a parallel one belong to another function.
  const std::string parallel =
      ir_of("for o in 2, i in 3 parallel, j in 4", "i", "o * 4 + j", "const ");
  EXPECT_EQ(occurrences(parallel, "call void @llvm.prefetch"), 1);
  EXPECT_EQ(occurrences(ir_of("for o in 4, i in 3 parallel, j in 2", "i", "o * 2 + j", "const "),
                        "call void @llvm.prefetch"),
            1);
  EXPECT_EQ(occurrences(ir_of("for i in 3, o in 2, j in 4 parallel", "i", "o * 4 + j", "const "),
                        "call void @llvm.prefetch"),
            0);
  // Not of what is no weights, nor where each part is read once.
  EXPECT_EQ(occurrences(ir_of("for i in 3, j in 8", "i", "j", ""), "call void @llvm.prefetch"), 0);
  EXPECT_EQ(
      occurrences(ir_of("for j in 8, i in 3", "i", "j", "const "), "call void @llvm.prefetch"), 0);
}

TEST(Llvm, CompilesForOtherMachines) {
  const Func func = *parse_func(kMultiplyAdd);
  EXPECT_THAT(*emit_assembly(func, for_target("aarch64")), HasSubstr("fmla"));
  EXPECT_THAT(*emit_llvm_ir(func, for_target("x86-64-v4")), HasSubstr("<16 x float>"));
  LlvmOptions unknown;
  unknown.target.triple = "pdp11-unknown-none";
  const auto failed = emit_assembly(func, unknown);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Device);
  EXPECT_THAT(failed.error().what, HasSubstr("pdp11"));
}

TEST(Llvm, TwoKernelsOfOneNameAreRefused) {
  const Func func = *parse_func(kMultiplyAdd);
  const auto failed = jit({func, func});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Invalid);
}

}  // namespace
}  // namespace tilewright::codegen
