// Kernels by meaning: OpenCL text runs on whatever device there is (PoCL) and must agree with the
// interpreter; CUDA text of the same kernels must compile.
#include "tilewright/codegen/gpu/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Program {
  const char* name;
  const char* text;
};

constexpr Program kPrograms[] = {
    {"elementwise, a tail of 15 threads", R"(
func tail(A: f32[143], B: f32[143], out Y: f32[143]) {
  for o in 5 bind(block.x), i in 32 bind(thread.x) {
    block Y(k: space 143 = o * 32 + i) where o * 32 + i < 143 {
      Y[k] = A[k] * 2.0 + max(B[k], 0.0)
    }
  }
}
)"},
    {"a sum of many threads through shared memory", R"(
func sums(X: f32[6,100], out Y: f32[6]) {
  for r in 6 bind(block.x) {
    alloc P: f32[6,16] shared
    for a in 16 bind(thread.x) {
      block P.init(r: space 6 = r, t: space 16 = a) { P[r, t] = 0.0 }
    }
    for b in 16 bind(thread.x), k in 7 {
      block P(r: space 6 = r, t: space 16 = b, c: reduce 100 = k * 16 + b) where k * 16 + b < 100 {
        P[r, t] += X[r, c]
      }
    }
    block Y.init(r: space 6 = r) { Y[r] = 0.0 }
    for t in 16 {
      block Y(r: space 6 = r, t: reduce 16 = t) { Y[r] += P[r, t] }
    }
  }
}
)"},
    {"a tiled product of 13 x 9 by 9 x 21 in shared and local memory", R"(
func product(A: f32[13,9], B: f32[9,21], bias: f32[21], out D: f32[13,21]) {
  alloc C: f32[16,24] local
  for i.o in 2 bind(block.y), j.o in 3 bind(block.x) {
    for ci in 4 bind(thread.y), cj in 4 bind(thread.x), ci2 in 2 unroll, cj2 in 2 unroll {
      block C.init(i: space 16 = i.o * 8 + ci2 * 4 + ci, j: space 24 = j.o * 8 + cj2 * 4 + cj) {
        C[i, j] = 0.0
      }
    }
    alloc S: f32[16,9] shared
    alloc T: f32[9,24] shared
    for k.o in 3 {
      for s.o in 2, s.y in 4 bind(thread.y), s.x in 3 bind(thread.x) {
        block S(i: space 16 = i.o * 8 + s.o * 4 + s.y, k: space 9 = k.o * 3 + s.x) {
          S[i, k] = select(i < 13, A[i, k], 0.0)
        }
      }
      for t.o in 2, t.y in 3 bind(thread.y), t.x in 4 bind(thread.x) {
        block T(k: space 9 = k.o * 3 + t.y, j: space 24 = j.o * 8 + t.o * 4 + t.x) {
          T[k, j] = select(j < 21, B[k, j], 0.0)
        }
      }
      for i.t in 4 bind(thread.y), j.t in 4 bind(thread.x), k.i in 3, i.i in 2 unroll, j.i in 2 unroll {
        block C(i: space 16 = i.o * 8 + i.i * 4 + i.t, j: space 24 = j.o * 8 + j.i * 4 + j.t, k: reduce 9 = k.o * 3 + k.i) {
          C[i, j] += S[i, k] * T[k, j]
        }
      }
    }
    for di in 4 bind(thread.y), dj in 4 bind(thread.x), di2 in 2, dj2 in 2 {
      block D(i: space 13 = i.o * 8 + di2 * 4 + di, j: space 21 = j.o * 8 + dj2 * 4 + dj) where i.o * 8 + di2 * 4 + di < 13 && j.o * 8 + dj2 * 4 + dj < 21 {
        D[i, j] = max(C[i, j] + bias[j], 0.0)
      }
    }
  }
}
)"},
    {"three axes of blocks and of threads, strides of the caller", R"(
func grid(X: i32[4,6,10] strides [128,20,2], out Y: i32[6,10,4] strides [80,8,2]) {
  for z in 2 bind(block.z), y in 2 bind(block.y), x in 2 bind(block.x), a in 2 bind(thread.z), b in 3 bind(thread.y), c in 5 bind(thread.x) {
    block Y(i: space 4 = z * 2 + a, j: space 6 = y * 3 + b, k: space 10 = x * 5 + c) {
      Y[j, k, i] = X[i, j, k] * 3i32 - i32(i)
    }
  }
}
)"},
    {"launches in a loop of the host, which gives them its variable", R"(
func steps(X: f32[4,8], out H: f32[5,8]) {
  for a in 8 bind(thread.x) {
    block first(j: space 8 = a) { H[0, j] = 1.0 }
  }
  for t in 4 {
    alloc M: f32[4,8]
    for b in 8 bind(block.x) {
      block M(j: space 8 = b, t: space 4 = t) { M[t, j] = X[t, j] * 2.0 }
    }
    for c in 8 bind(thread.x) {
      block H(t: scan 4 = t, j: space 8 = c) { H[t + 1, j] = H[t, j] + M[t, 7 - j] }
    }
  }
}
)"},
    {"loops over threads of different lengths, one changed in place", R"(
func uneven(X: i64[3,20], inout Z: i64[20], out Y: i64[3]) {
  for b in 3 bind(block.x) {
    alloc S: i64[20] shared
    for i in 20 bind(thread.x) {
      block S(b: space 3 = b, i: space 20 = i) { S[i] = X[b, i] + Z[i] % 7 }
    }
    alloc T: i64[4] shared
    for j in 4 bind(thread.x), v in 2 bind(thread.y) {
      if v == 1 {
        block T.init(j: space 4 = j) { T[j] = 1 }
        for k in 5 {
          block T(j: space 4 = j, k: reduce 5 = k) { T[j] max= S[j * 5 + k] / 2 }
        }
      }
    }
    block Y(b: space 3 = b) { Y[b] = T[0] + T[1] * T[2] - T[3] }
  }
  for c in 20 bind(thread.x) {
    block Z(i: space 20 = c) { Z[i] *= 3 }
  }
}
)"},
    {"words of the languages as names", R"(
func names(kernel: f32[8], float4: f32[8], out threadIdx: f32[8]) {
  for exp in 8 bind(thread.x) {
    alloc half: f32[8] local
    block half(new: space 8 = exp) { half[new] = exp(kernel[new]) - floor(float4[new]) }
    block threadIdx(local: space 8 = exp) { threadIdx[local] = half[local] }
  }
}
)"},
    {"copies two rounds ahead into rings, some of zeros", R"(
func ahead(A: f32[14,32], B: f32[30,16], out D: f32[16,16]) {
  alloc C: f32[16,16] local
  for g in 1 bind(block.x) {
    for ci in 4 bind(thread.y), cj in 4 bind(thread.x), ci2 in 4 unroll, cj2 in 4 unroll {
      block C.init(i: space 16 = ci * 4 + ci2, j: space 16 = cj * 4 + cj2) { C[i, j] = 0.0 }
    }
    alloc S: f32[24,16] shared @(pad=4)
    alloc T: f32[24,16] shared
    for p in 2 @(pipeline=3) {
      for S.i0 in 8, S.y0 in 2 bind(thread.y), S.k0 in 4 bind(thread.x), S.k1 in 2 {
        block S0(i: space 16 = S.i0 * 2 + S.y0, k: space 32 = p * 8 + S.k1 * 4 + S.k0) @(async) {
          S[k % 24, i] = select(i < 14, A[i, k], 0.0)
        }
      }
      for T.k0 in 2, T.y0 in 4 bind(thread.y), T.j0 in 4 bind(thread.x), T.v0 in 4 vector {
        block T0(k: space 32 = p * 8 + T.k0 * 4 + T.y0, j: space 16 = T.j0 * 4 + T.v0) @(async) {
          T[k % 24, j] = select(k < 30, B[k, j], 0.0)
        }
      }
    }
    for k in 4 @(pipeline=3) {
      if k < 2 {
        for S.i1 in 8, S.y1 in 2 bind(thread.y), S.k2 in 4 bind(thread.x), S.k3 in 2 {
          block S1(i: space 16 = S.i1 * 2 + S.y1, k: space 32 = (k + 2) * 8 + S.k3 * 4 + S.k2) @(async) {
            S[k % 24, i] = select(i < 14, A[i, k], 0.0)
          }
        }
        for T.k1 in 2, T.y1 in 4 bind(thread.y), T.j1 in 4 bind(thread.x), T.v1 in 4 vector {
          block T1(k: space 32 = (k + 2) * 8 + T.k1 * 4 + T.y1, j: space 16 = T.j1 * 4 + T.v1) @(async) {
            T[k % 24, j] = select(k < 30, B[k, j], 0.0)
          }
        }
      }
      for i.t in 4 bind(thread.y), j.t in 4 bind(thread.x), k.i in 8 unroll, i.i in 4 unroll, j.i in 4 unroll {
        block C(i: space 16 = i.t * 4 + i.i, j: space 16 = j.t * 4 + j.i, k: reduce 32 = k * 8 + k.i) {
          C[i, j] += S[k % 24, i] * T[k % 24, j]
        }
      }
    }
    for di in 4 bind(thread.y), dj in 4 bind(thread.x), di2 in 4 unroll, dj2 in 4 vector {
      block D(i: space 16 = di * 4 + di2, j: space 16 = dj * 4 + dj2) { D[i, j] = C[i, j] }
    }
  }
}
)"},
    {"copies of several elements at once", R"(
func copies(X: f32[8,20], H: f16[8,24], out Y: f32[8,16], out Z: f32[8,16], out O: f32[8,16], out G: f16[8,24]) {
  for b in 2 bind(block.x) {
    alloc S: f32[8,16] shared
    for r in 4 bind(thread.y), q in 4 bind(thread.x), v in 4 vector {
      block S(i: space 8 = b * 4 + r, j: space 16 = q * 4 + v) { S[i, j] = X[i, j] }
    }
    for yr in 4 bind(thread.y), yq in 4 bind(thread.x) {
      alloc R: f32[8] local
      for rv in 8 vector {
        block R(i: space 8 = b * 4 + yr, j: space 8 = rv) { R[j] = S[i, j + 8] }
      }
      for yv in 4 vector {
        block Y(i: space 8 = b * 4 + yr, j: space 16 = yq * 4 + yv) { Y[i, j] = S[i, 15 - j] + R[j % 8] }
      }
    }
    for zr in 4 bind(thread.y), zq in 4 bind(thread.x), zv in 4 vector {
      block Z(i: space 8 = b * 4 + zr, j: space 16 = zq * 4 + zv) { Z[i, j] = X[i, j + 2] }
    }
    for or in 4 bind(thread.y), oq in 4 bind(thread.x), ov in 4 vector {
      block O(i: space 8 = b * 4 + or, j: space 16 = oq * 4 + ov) { O[i, j] = X[i, j + 1] }
    }
    for gr in 4 bind(thread.y), gq in 3 bind(thread.x), gv in 8 vector {
      block G(i: space 8 = b * 4 + gr, j: space 24 = gq * 8 + gv) { G[i, j] = H[i, j] }
    }
  }
}
)"},
};

Func parsed(const char* text) {
  Result<Func> func = parse_func(text);
  if (!func) throw std::runtime_error(to_string(func.error()));
  return std::move(*func);
}

std::shared_ptr<runtime::GpuDevice> device_or_none() {
  static const auto device = runtime::open_gpu("opencl");
  return device ? *device : nullptr;
}
#define DEVICE_OR_SKIP()                \
  const auto device = device_or_none(); \
  if (device == nullptr) GTEST_SKIP() << to_string(runtime::open_gpu("opencl").error())

hw::GpuTarget opencl() { return *hw::find_gpu_target("opencl"); }
hw::GpuTarget cuda() { return *hw::find_gpu_target("cuda"); }

void expect_agreement(const std::vector<testing::Case>& cases) {
  DEVICE_OR_SKIP();
  testing::GpuBatch batch(opencl());
  std::vector<std::map<std::string, Array>> expected;
  for (const testing::Case& test : cases) {
    const interp::Arguments arguments = testing::random_arguments(test.func, 1, test.real_data);
    const auto outcome = interp::run(test.func, arguments);
    ASSERT_TRUE(outcome) << test.name << to_string(outcome.error());
    expected.push_back(outcome->outputs);
    const Status added = batch.add(test.func, test.func, arguments);
    ASSERT_TRUE(added) << test.name << to_string(added.error());
  }
  const auto got = batch.run(*device);
  ASSERT_TRUE(got) << to_string(got.error()) << *batch.source();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Status same = testing::compare(expected[i], (*got)[i], cases[i].tolerance);
    EXPECT_TRUE(same) << cases[i].name << "\n" << to_string(same.error());
  }
}

TEST(EmitOpenClSlow, KernelsAgreeWithTheInterpreter) {
  std::vector<testing::Case> cases;
  for (const Program& p : kPrograms) cases.push_back({p.name, parsed(p.text), 1e-6, false});
  expect_agreement(cases);
}

TEST(EmitOpenCl, EveryConversionOfHalfTypes) {
  std::vector<testing::Case> cases;
  for (const char* type : {"f16", "bf16"}) {
    // All bit patterns, and what lies between two of them: halfway, just below, just above.
    const std::string text = fmt::format(R"(
func convert(out W: u32[65536], out N: u16[4,65536]) {{
  for o in 256 bind(block.x), i in 256 bind(thread.x) {{
    block W(k: space 65536 = o * 256 + i) {{
      W[k] = select(isnan(bitcast({0}, u16(k))), 1u32, bitcast(u32, f32(bitcast({0}, u16(k)))))
    }}
    for v in 4 {{
      block N(k: space 65536 = o * 256 + i, v: space 4 = v) {{
        N[v, k] = select(isnan(bitcast(f32, u32(k << 16 | v * 4095 + v / 3 * 53245))), 1u16, bitcast(u16, {0}(bitcast(f32, u32(k << 16 | v * 4095 + v / 3 * 53245)))))
      }}
    }}
  }}
}}
)",
                                         type);
    cases.push_back({type, parsed(text.c_str()), 0, false});
  }
  expect_agreement(cases);
}

TEST(EmitCuda, KernelsCompile) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  testing::GpuBatch batch(cuda());
  for (const Program& p : kPrograms) {
    const Func func = parsed(p.text);
    const Status added = batch.add(func, func, testing::random_arguments(func, 1));
    ASSERT_TRUE(added) << p.name << to_string(added.error());
  }
  const auto source = batch.source();
  ASSERT_TRUE(source) << to_string(source.error());
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto code = compile_cuda(*source, arch);
    ASSERT_TRUE(code) << to_string(code.error());
    for (const CudaKernelUse& use : code->kernels) {
      EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
      EXPECT_EQ(use.stack_bytes, 0) << use.symbol << " keeps an array in memory";
    }
  }
}

std::string text_of(const char* program, const hw::GpuTarget& target) {
  const auto plan = lower::lower_for_gpu(parsed(program), target);
  if (!plan) return to_string(plan.error());
  const auto text = emit_gpu(plan->kernels, target);
  if (!text) return to_string(text.error());
  return text->substr(text->rfind("\n\n"));
}

TEST(EmitGpu, IndicesHave32BitsWhereThatIsEnough) {
  for (const auto& target : {opencl(), cuda()})
    EXPECT_THAT(text_of(kPrograms[2].text, target), Not(HasSubstr("i64")));
  constexpr const char* kLarge = R"(
func large(A: f32[70000,70000], out Y: f32[70000]) {
  for o in 700 bind(block.x), i in 100 bind(thread.x) {
    block Y(k: space 70000 = o * 100 + i) { Y[k] = A[k, 69999 - k] }
  }
}
)";
  EXPECT_THAT(text_of(kLarge, cuda()), HasSubstr("(i64)"));
  EXPECT_THAT(text_of(kLarge, cuda()), HasSubstr(" * 70000"));
}

int occurrences(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(EmitGpu, CopiesMoveAsMuchAsIsAligned) {
  hw::GpuTarget target = opencl();
  const char* copies = std::end(kPrograms)[-1].text;
  const std::string text = text_of(copies, target);
  EXPECT_EQ(occurrences(text, "const tw_b16*)"), 3) << text;  // X to S, S to R, H to G
  EXPECT_EQ(occurrences(text, "const tw_b8*)"), 1);           // X to Z: two elements off
  EXPECT_EQ(occurrences(text, "const tw_b"), 4);              // X to O is one element off
  target.vector_bytes = 8;
  EXPECT_EQ(occurrences(text_of(copies, target), "const tw_b8*)"), 4);
  EXPECT_EQ(occurrences(text_of(copies, target), "const tw_b16*)"), 0);
}

TEST(EmitGpu, CopiesThatComeLater) {
  const char* ahead = std::end(kPrograms)[-2].text;
  const std::string text = text_of(ahead, cuda());
  EXPECT_EQ(occurrences(text, "tw_copy4("), 2) << text;
  EXPECT_EQ(occurrences(text, "tw_copy16("), 2);
  EXPECT_EQ(occurrences(text, "tw_commit();"), 2);
  EXPECT_EQ(occurrences(text, "tw_wait(1);"), 1);
  EXPECT_EQ(occurrences(text, "__syncthreads();"), 1);
  EXPECT_THAT(text, HasSubstr("S[480]"));  // 24 rows of 16 and 4
  EXPECT_THAT(text_of(ahead, opencl()), Not(HasSubstr("tw_copy")));
}

/// A sum of 5 of 8 elements, 2 per thread: `start` and `more` are conditions.
std::string tail(const char* start, const char* more, const char* value) {
  const std::string text = fmt::format(R"(
func tail(A: f32[16], out Y: f32[5]) {{
  for g in 1 bind(block.x) {{
    alloc S: f32[16] shared
    alloc C: f32[8] local
    for s in 4 bind(thread.x), t in 4 {{
      block S(i: space 16 = s * 4 + t) {{ S[i] = A[i] }}
    }}
    for i0 in 4 bind(thread.x), i1 in 2 unroll {{
      block C.init(i: space 8 = i0 * 2 + i1) where {} {{ C[i] = 0.0 }}
    }}
    for j0 in 4 bind(thread.x), k in 8, j1 in 2 unroll {{
      block C(i: space 8 = j0 * 2 + j1, k: reduce 8 = k) where {} {{ C[i] += {} }}
    }}
    for y0 in 4 bind(thread.x), y1 in 2 unroll {{
      block Y(i: space 5 = y0 * 2 + y1) where y0 * 2 + y1 < 5 {{ Y[i] = C[i] }}
    }}
  }}
}}
)",
                                       start, more, value);
  return text_of(text.c_str(), cuda());
}

TEST(EmitGpu, TilesOverTheEndOfAResultTestNothingInside) {
  const char *start = "i0 * 2 + i1 < 5", *more = "j0 * 2 + j1 < 5", *value = "S[i + k]";
  EXPECT_EQ(occurrences(tail(start, more, value), "if ("), 1) << tail(start, more, value);  // for Y
  // The other elements have values that may be read.
  EXPECT_EQ(occurrences(tail("i0 * 2 + i1 < 6", more, value), "if ("), 2);
  EXPECT_EQ(occurrences(tail("i0 < 4", more, value), "if ("), 2);
  // The condition is about the term, not about the element.
  EXPECT_EQ(occurrences(tail(start, "k < 5 && j0 * 2 + j1 < 5", value), "if ("), 2);
  // What it reads may not be there.
  EXPECT_EQ(occurrences(tail(start, more, "A[i + k]"), "if ("), 2);
  // Shared memory gets room for what lies behind it.
  const std::string roomy = tail(start, more, "S[i * 2 + k]");
  EXPECT_EQ(occurrences(roomy, "if ("), 1) << roomy;
  EXPECT_THAT(roomy, HasSubstr("S[22];"));
}

TEST(EmitGpu, SharedMemoryAskedForAtLaunchIsOneArray) {
  constexpr const char* kLarge = R"(
func large(A: f32[16384], out Y: f32[16384]) {
  for g in 1 bind(block.x) {
    alloc T: f32[3] shared
    alloc S: f32[16384] shared
    for t in 3 bind(thread.x) {
      block T(i: space 3 = t) { T[i] = A[i] }
    }
    for o in 128, a in 128 bind(thread.x) {
      block S(i: space 16384 = o * 128 + a) { S[i] = A[i] + T[0] }
    }
    for p in 128, b in 128 bind(thread.x) {
      block Y(i: space 16384 = p * 128 + b) { Y[i] = S[i / 2] + T[2] }
    }
  }
}
)";
  const std::string text = text_of(kLarge, cuda());
  EXPECT_THAT(text, HasSubstr("extern __shared__ __align__(128) unsigned char tw_shared[];"));
  EXPECT_THAT(text, HasSubstr("T = (f32*)(tw_shared + 0);"));
  EXPECT_THAT(text, HasSubstr("S = (f32*)(tw_shared + 128);"));
  EXPECT_THAT(text_of(kLarge, opencl()), HasSubstr("needs 65664 bytes of shared memory"));
}

/// The error of emitting kernels made by hand.
std::string refusal(const std::vector<lower::GpuKernel>& kernels, const hw::GpuTarget& target) {
  const auto text = emit_gpu(kernels, target);
  return text ? "accepted" : to_string(text.error());
}

TEST(EmitGpu, RefusesBarriersThatNotAllThreadsReach) {
  const Func func = parsed(R"(
func f(out Y: f32[8]) {
  for i in 8 bind(thread.x) {
    if i < 5 {
      Y[i] = 1.0
    }
  }
}
)");
  lower::GpuKernel kernel{func, {1, 1, 1}, {8, 1, 1}};
  EXPECT_EQ(refusal({kernel}, opencl()), "accepted");
  kernel.func.body = rewrite(
      func.body, [](const Stmt& s) { return s.as<Store>() ? seq({s, lower::make_sync()}) : s; });
  EXPECT_THAT(refusal({kernel}, opencl()), HasSubstr("a barrier is where not all threads come"));
  // Threads 8 to 15 do not run the loop.
  kernel.func =
      parsed("func f(out Y: f32[8]) {\n  for i in 8 bind(thread.x) {\n    Y[i] = 1.0\n  }\n}\n");
  kernel.func.body = rewrite(kernel.func.body, [](const Stmt& s) {
    return s.as<Store>() ? seq({s, lower::make_sync()}) : s;
  });
  kernel.block = {16, 1, 1};
  EXPECT_THAT(refusal({kernel}, opencl()), HasSubstr("a barrier is where not all threads come"));
}

TEST(EmitGpu, RefusesWhatTheTargetLacks) {
  const Func warps =
      parsed("func f(out Y: f32[8]) {\n  for i in 8 bind(warp) {\n    Y[i] = 1.0\n  }\n}\n");
  EXPECT_THAT(refusal({{warps, {1, 1, 1}, {8, 1, 1}}}, opencl()),
              HasSubstr("loop 'i' is bound to 'warp'"));
  const Func twice = parsed(
      "func f(out Y: f32[8]) {\n  for i in 2 bind(block.x), j in 4 bind(block.x) {\n"
      "    Y[i * 4 + j] = 1.0\n  }\n}\n");
  EXPECT_THAT(refusal({{twice, {4, 1, 1}, {1, 1, 1}}}, opencl()),
              HasSubstr("two loops, one in the other, are bound to 'block.x'"));
  const Func func = parsed("func f(out Y: f64[1]) {\n  Y[0] = 1.0f64\n}\n");
  hw::GpuTarget small = opencl();
  small.has_f64 = false;
  EXPECT_THAT(refusal({{func, {1, 1, 1}, {1, 1, 1}}}, small), HasSubstr("has no f64"));
  EXPECT_THAT(refusal({{func, {1, 1, 1}, {1, 1, 1}}, {func, {1, 1, 1}, {1, 1, 1}}}, opencl()),
              HasSubstr("two kernels are called f"));
}

}  // namespace
}  // namespace tilewright::codegen
