#include "tilewright/compile/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

/// A matrix product in one nest, with names of the writer's choice.
Func product() {
  return *parse_func(R"(
func product(A: f32[64,64], B: f32[64,64], out C: f32[64,64]) {
  for i in 64, j in 64 {
    block begin(i: space 64 = i, j: space 64 = j) { C[i, j] = 0.0 }
    for k in 64 {
      block mm(i: space 64 = i, j: space 64 = j, k: reduce 64 = k) { C[i, j] += A[i, k] * B[k, j] }
    }
  }
}
)");
}

/// Through the C back-end, which every build has.
compile::KernelReport kernel_of(const Func& func, int level, const schedule::Trace* trace) {
  compile::CompileOptions options;
  options.level = level;
  options.use_c = true;
  const auto model = compile::compile_func(func, options, trace);
  EXPECT_TRUE(model) << to_string(model.error());
  return model ? model->kernels.at(0) : compile::KernelReport{};
}

TEST(CompileFunc, LoopsAreBroughtToTheFormOfRules) {
  const compile::KernelReport kernel = kernel_of(product(), 2, nullptr);
  EXPECT_EQ(kernel.decision.chosen.algorithm, "direct");
  EXPECT_THAT(schedule::print(kernel.trace), HasSubstr("compute_at(block=mm.init"));
}

TEST(CompileFunc, LoopsStayAsWrittenWhereSomebodySaysSo) {
  const compile::KernelReport plain = kernel_of(product(), 0, nullptr);
  Func written = product();
  written.name = plain.func.name;
  EXPECT_EQ(print(plain.func), print(written));
  const schedule::Trace trace = *schedule::parse_trace("unroll(loop=k)\n");
  const std::string unrolled = print(kernel_of(product(), 2, &trace).func);
  EXPECT_THAT(unrolled, HasSubstr("for k in 64 unroll"));
  EXPECT_THAT(unrolled, HasSubstr("block begin("));
}

}  // namespace
}  // namespace tilewright::driver
