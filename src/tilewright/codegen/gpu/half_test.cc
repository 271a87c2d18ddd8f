// Arithmetic of f16 in OpenCL, where devices have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tilewright/codegen/gpu/gpu.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProgram = R"(
func scale(A: f16[256], B: f16[256], out Y: f16[256]) {
  for o in 8 bind(block.x), i in 32 bind(thread.x) {
    block Y(k: space 256 = o * 32 + i) {
      Y[k] = A[k] * B[k] + max(A[k], B[k]) / B[k]
    }
  }
}
)";

std::string text_for(const char* target_name) {
  const hw::GpuTarget target = *hw::find_gpu_target(target_name);
  const auto func = parse_func(kProgram);
  EXPECT_TRUE(func) << to_string(func.error());
  const auto plan = lower::lower_for_gpu(*func, target);
  EXPECT_TRUE(plan) << to_string(plan.error());
  const auto text = emit_gpu(plan->kernels, target);
  EXPECT_TRUE(text) << to_string(text.error());
  return *text;
}

TEST(EmitHalf, InHalvesWhereTheDeviceHasThem) {
  const std::string text = text_for("opencl-mali");
  EXPECT_THAT(text, HasSubstr("cl_khr_fp16 : enable"));
  const std::string kernel = text.substr(text.find("__kernel"));
  EXPECT_THAT(kernel, HasSubstr("tw_half_add(tw_half_mul("));
  EXPECT_THAT(text_for("opencl"), Not(HasSubstr("half_mul")));
  EXPECT_THAT(text_for("cuda"), Not(HasSubstr("half_mul")));
}

TEST(EmitHalf, CompilersTakeIt) {
  const std::string compiler = "clang-19";
  if (std::system((compiler + " --version > /dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "there is no " << compiler;
  const std::string path = ::testing::TempDir() + "/half.cl";
  std::ofstream(path) << text_for("opencl-mali");
  const std::string check = compiler +
                            " -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header"
                            " -fsyntax-only " +
                            path;
  EXPECT_EQ(std::system(check.c_str()), 0);
}

}  // namespace
}  // namespace tilewright::codegen
