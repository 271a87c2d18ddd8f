// Every pass of the table by itself: where a pipeline comes to it, and on programs it was not made
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/ir/testing/corpus.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/lower/gpu_split.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/lower/testing/tiled_product.h"
#include "tilewright/lower/testing/warp_product.h"

namespace tilewright::lower {
namespace {

/// A copy through a port of its own.
constexpr const char* kPorts = R"(
func ports(X: f32[4], out Y: f32[4]) {
  for t in 4 {
    alloc T: f32[1] fpga.reg @(slots=2)
    block T(t: space 4 = t) @(port=1) {
      T[0] = X[t]
    }
    block Y(t: space 4 = t) {
      Y[t] = T[0]
    }
  }
}
)";

/// A product in tiles of 4 columns and 3 terms, whose last ones go over the end.
constexpr const char* kOverTheEnd = R"(
func over(A: f32[7], B: f32[7,6], out C: f32[6]) {
  for t in 2 {
    alloc S: f32[6] fpga.bram
    for si in 4 {
      block S0(i: space 6 = t * 4 + si) where t * 4 + si < 6 {
        S[i] = 0.0
      }
    }
    for r in 3 {
      alloc X: f32[7] fpga.bram
      for xl in 3 {
        block X(l: space 7 = r * 3 + xl) where r * 3 + xl < 7 {
          X[l] = A[l]
        }
      }
      alloc W: f32[7,6] fpga.bram
      for wl in 3, wi in 4 {
        block W(l: space 7 = r * 3 + wl, i: space 6 = t * 4 + wi) where r * 3 + wl < 7 && t * 4 + wi < 6 {
          W[l, i] = B[l, i]
        }
      }
      for ci in 4, cl in 3 {
        block S(i: space 6 = t * 4 + ci, l: reduce 7 = r * 3 + cl) where t * 4 + ci < 6 && r * 3 + cl < 7 {
          S[i] += X[l] * W[l, i]
        }
      }
    }
    for di in 4 {
      block C(i: space 6 = t * 4 + di) where t * 4 + di < 6 {
        C[i] = S[i]
      }
    }
  }
}
)";

/// Sums of columns, 4 rows at a time in a ring that is filled one round ahead; what is copied is
/// computed, so threads make the copies themselves.
constexpr const char* kRing = R"(
func ring(A: f32[16,8], out D: f32[8]) {
  alloc C: f32[8] local
  for g in 1 bind(block.x) {
    for ci in 8 bind(thread.x) {
      block C.init(i: space 8 = ci) {
        C[i] = 0.0
      }
    }
    alloc S: f32[8,8] shared
    for p in 1 @(pipeline=2) {
      for S.k0 in 4, S.i0 in 8 bind(thread.x) {
        block S0(k: space 16 = p * 4 + S.k0, i: space 8 = S.i0) @(async) {
          S[k % 8, i] = A[k, i] + 1.0
        }
      }
    }
    for t in 4 @(pipeline=2) {
      if t < 3 {
        for S.k1 in 4, S.i1 in 8 bind(thread.x) {
          block S1(k: space 16 = (t + 1) * 4 + S.k1, i: space 8 = S.i1) @(async) {
            S[k % 8, i] = A[k, i] + 1.0
          }
        }
      }
      for i.t in 8 bind(thread.x), k.i in 4 {
        block C(i: space 8 = i.t, k: reduce 16 = t * 4 + k.i) {
          C[i] += S[k % 8, 7 - i]
        }
      }
    }
    for di in 8 bind(thread.x) {
      block D(i: space 8 = di) {
        D[i] = C[i]
      }
    }
  }
}
)";

/// The same with copies that hardware makes.
std::string plain_ring() {
  std::string text = kRing;
  for (size_t at = text.find(" + 1.0"); at != std::string::npos; at = text.find(" + 1.0"))
    text.erase(at, 6);
  return text;
}

std::vector<Func> all_parsed(const std::vector<std::string>& texts) {
  std::vector<Func> out;
  for (const std::string& text : texts) {
    Result<std::vector<Func>> funcs = parse_funcs(text);
    if (!funcs) throw std::runtime_error(to_string(funcs.error()));
    out.push_back(std::move(funcs->back()));
  }
  return out;
}

/// Parts of one loop, shared out to threads.
constexpr std::string_view kParts = R"(func parts(A: f32[23,7], out C: f32[23,7]) {
  for o in 2 parallel, i in 9, j in 7 {
    block C0(m: space 23 = o * 9 + i, n: space 7 = j) {
      C[m, n] = A[m, n] * 2.0
    }
  }
  for p in 1 parallel, k in 5, l in 7 {
    block C1(m: space 23 = p * 5 + k + 18, n: space 7 = l) {
      C[m, n] = A[m, n] * 2.0
    }
  }
}
)";

std::vector<Func> cpu_programs() {
  using namespace ::tilewright::testing;
  std::vector<std::string> texts;
  for (const std::string_view text : {kMatmul, kConv, kConvScheduled, kSoftmax, kLstm, kParts})
    texts.emplace_back(text);
  return all_parsed(texts);
}

std::vector<Func> gpu_programs() {
  return all_parsed({testing::kTiledProduct, testing::warp_product_text(),
                     testing::group_product_text(), kRing, plain_ring()});
}

Func after_passes(const Func& func, const std::vector<std::string>& passes) {
  Result<Func> out = run_passes(func, passes);
  if (!out) throw std::runtime_error(to_string(out.error()) + print(func));
  return *out;
}

std::vector<GpuKernel> kernels_of(const Func& func) {
  Result<GpuLaunches> plan = split_kernels(after_passes(func, (*find_pipeline("gpu"))->passes));
  if (!plan) throw std::runtime_error(to_string(plan.error()) + print(func));
  return std::move(plan->kernels);
}

/// What the pipeline works on.
std::vector<Func> programs_of(const Pipeline& pipeline) {
  if (pipeline.name == "cpu") return cpu_programs();
  if (pipeline.name == "gpu") return gpu_programs();
  if (pipeline.name == "fpga") return all_parsed({kPorts, kOverTheEnd});
  std::vector<Func> kernels;
  for (const Func& func : gpu_programs())
    for (const GpuKernel& kernel : kernels_of(func)) kernels.push_back(kernel.func);
  return kernels;
}

/// The programs as they are when a pipeline comes to `pass`.
std::vector<Func> programs_before(const std::string& pass) {
  std::vector<Func> out;
  for (const Pipeline& pipeline : all_pipelines()) {
    const auto at = std::find(pipeline.passes.begin(), pipeline.passes.end(), pass);
    if (at == pipeline.passes.end()) continue;
    for (const Func& func : programs_of(pipeline))
      out.push_back(after_passes(func, {pipeline.passes.begin(), at}));
  }
  return out;
}

class EveryPass : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPass, GivesAValidProgramOfTheSameMeaning) {
  const std::string& pass = GetParam();
  const std::vector<Func> programs = programs_before(pass);
  ASSERT_FALSE(programs.empty()) << "no pipeline has it";
  bool works = false;
  for (const Func& before : programs) {
    const Status fits = verify(before, Stage::Lowered);
    EXPECT_TRUE(fits) << to_string(fits.error()) << print(before);
    const auto after = run_passes(before, {pass});
    ASSERT_TRUE(after) << to_string(after.error()) << print(before);
    const Status valid = verify(*after, Stage::Lowered);
    EXPECT_TRUE(valid) << to_string(valid.error()) << print(*after);
    EXPECT_EQ(testing::changed_meaning(before, *after, pass, 5), "") << print(*after);
    works |= print(*after) != print(before);
  }
  EXPECT_TRUE(works) << "no program shows what the pass does";
}

TEST_P(EveryPass, RefusesOrKeepsTheMeaningOfAnyProgram) {
  const std::string& pass = GetParam();
  std::vector<Func> programs = cpu_programs();
  for (const Func& func : gpu_programs()) {
    programs.push_back(func);
    programs.push_back(after_passes(func, {"bind_iters"}));
  }
  for (const Func& before : programs) {
    const auto after = run_passes(before, {pass});
    if (!after) {
      EXPECT_TRUE(after.error().kind == ErrorKind::Usage ||
                  after.error().kind == ErrorKind::Unsupported)
          << to_string(after.error());
      continue;
    }
    const Status valid = verify(*after, Stage::Lowered);
    EXPECT_TRUE(valid) << to_string(valid.error()) << print(*after);
    EXPECT_EQ(testing::changed_meaning(before, *after, pass, 6), "") << print(*after);
  }
}

std::vector<std::string> names_of_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Passes, EveryPass, ::testing::ValuesIn(names_of_passes()),
                         [](const auto& one) { return one.param; });

TEST(Pipelines, NameOnlyPassesOfTheTable) {
  for (const Pipeline& pipeline : all_pipelines())
    for (const std::string& name : pipeline.passes)
      EXPECT_TRUE(std::any_of(all_passes().begin(), all_passes().end(),
                              [&](const Pass& pass) { return pass.name == name; }))
          << pipeline.name << ": " << name;
}

TEST(Pipelines, OfGpusAreVerifiedAndObserved) {
  std::vector<std::string> seen;
  PassOptions options;
  options.verify_each = true;
  options.observer = [&](const std::string& pass, const Func&, bool) { seen.push_back(pass); };
  for (const Func& func : gpu_programs()) {
    seen.clear();
    const auto plan = lower_for_gpu(func, *hw::find_gpu_target("cuda"), options);
    ASSERT_TRUE(plan) << to_string(plan.error());
    std::vector<std::string> wanted = (*find_pipeline("gpu"))->passes;
    for (size_t i = 0; i < plan->kernels.size(); ++i)
      for (const std::string& pass : (*find_pipeline("gpu-kernel"))->passes) wanted.push_back(pass);
    EXPECT_EQ(seen, wanted);
  }
}

}  // namespace
}  // namespace tilewright::lower
