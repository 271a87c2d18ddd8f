// Attention and sums by warps on the first OpenCL device, also with instructions emulated, agree
// with the interpreter; for CUDA registers suffice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/testing/matrix_emulation.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/split_softmax_keys.h"
#include "tilewright/rules/gpu/testing/attention.h"
#include "tilewright/rules/gpu/testing/sass.h"

namespace tilewright::rules {
namespace {

using codegen::count;

/// `target`: of the schedules; kernels run in OpenCL.
void expect_agreement(const std::vector<Func>& funcs, hw::GpuTarget target) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  target.units = 2;
  const bool emulated = target.language == hw::GpuLanguage::Cuda;
  if (emulated)
    target.shared_bytes =
        std::min(target.shared_bytes, codegen::testing::emulating_target().shared_bytes);
  codegen::testing::GpuBatch batch(emulated ? codegen::testing::emulating_target() : target,
                                   emulated ? codegen::testing::kMatrixEmulation : "");
  for (const Func& whole : funcs) {
    const Func func = with_key_parts(whole, target);
    const auto scheduled = schedule::replay(func, gpu_trace(func, target));
    ASSERT_TRUE(scheduled) << func.name << to_string(scheduled.error());
    const Status added = batch.add(func, *scheduled, quarters(func));
    ASSERT_TRUE(added) << func.name << to_string(added.error());
  }
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < funcs.size(); ++i) {
    const auto expected = interp::run(funcs[i], quarters(funcs[i]));
    ASSERT_TRUE(expected) << to_string(expected.error());
    const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 1e-5);
    EXPECT_TRUE(same) << funcs[i].name << "\n" << to_string(same.error());
  }
}

std::vector<Func> attentions() {
  std::vector<Func> funcs;
  for (const AttentionCase& c : attention_cases()) funcs.push_back(func_of(c));
  funcs.push_back(func_of(AttentionCase{"", 2, 3, 40, 300, 24}));
  return funcs;
}

/// Blocks have as many queries as they take: warps all come to the barriers of the emulation.
std::vector<Func> whole_blocks() {
  std::vector<Func> funcs;
  for (const AttentionCase& c : attention_cases())
    if (c.queries % 8 == 0) funcs.push_back(func_of(c));
  funcs.push_back(func_of(AttentionCase{"", 2, 3, 64, 300, 24}));
  return funcs;
}

std::vector<Func> rows() {
  std::vector<Func> funcs;
  for (const Shape& shape : {Shape{24, 100}, Shape{3, 1000}, Shape{2, 3, 8, 70}})
    funcs.push_back(func_of(OpCase{"", "Softmax", {shape}, {}}));
  funcs.push_back(func_of(OpCase{"", "LayerNormalization", {{6, 70}, {70}, {70}}, {}}));
  funcs.push_back(
      func_of(OpCase{"", "Gemm", {{1, 500}, {20, 500}, {20}}, {{"transB", int64_t{1}}}}));
  return funcs;
}

TEST(GpuAttentionSlow, KernelsAgreeWithTheInterpreter) {
  expect_agreement(attentions(), *hw::find_gpu_target("opencl"));
}

TEST(GpuAttentionSlow, EmulatedWarpsAgreeWithTheInterpreter) {
  expect_agreement(whole_blocks(), *hw::find_gpu_target("cuda"));
}

/// Shared memory holds the scores of some queries for a part of the keys.
TEST(GpuAttentionSlow, KeysInPartsAgreeWithTheInterpreter) {
  const std::vector<Func> funcs = {func_of(AttentionCase{"", 1, 2, 32, 256, 16}),
                                   func_of(AttentionCase{"", 2, 1, 32, 320, 24, false})};
  for (const char* name : {"opencl", "cuda"}) {
    hw::GpuTarget target = *hw::find_gpu_target(name);
    target.shared_bytes = 40 << 10;
    for (const Func& func : funcs) EXPECT_FALSE(equal(with_key_parts(func, target), func));
    expect_agreement(funcs, target);
  }
}

TEST(GpuWarpRowsSlow, KernelsAgreeWithTheInterpreter) {
  expect_agreement(rows(), *hw::find_gpu_target("opencl"));
}

TEST(GpuWarpRowsSlow, EmulatedWarpsAgreeWithTheInterpreter) {
  expect_agreement(rows(), *hw::find_gpu_target("cuda"));
}

TEST(GpuAttentionSlow, RegistersSuffice) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  for (const char* name : {"cuda", "cuda-sm_80"})
    for (const int64_t length : {128, 512, 1024, 8192}) {
      const hw::GpuTarget target = *hw::find_gpu_target(name);
      const Func whole = func_of(AttentionCase{"", 1, 12, length, length, 64});
      const Func func = with_key_parts(whole, target);
      const auto code = machine_code(func, target);
      ASSERT_TRUE(code) << to_string(code.error());
      ASSERT_EQ(code->kernels.size() > 1, !equal(func, whole));
      for (const codegen::CudaKernelUse& use : code->uses) {
        EXPECT_EQ(use.spill_bytes, 0) << code->source;
        EXPECT_EQ(use.stack_bytes, 0);
        EXPECT_LE(use.registers, target.registers);
      }
      const codegen::SassKernel* kernel = code->with("LDS", "128");
      ASSERT_NE(kernel, nullptr);
      EXPECT_GT(count(kernel->all, "SHFL"), 0);
      EXPECT_GT(count(kernel->all, "LDGSTS"), 0);
      EXPECT_EQ(count(kernel->all, "LDL"), 0);
      // A thread's products of a step: 4 queries by 4 keys, from operands of 16 bytes.
      const codegen::SassLoop* loop = kernel->loop_with("FFMA");
      ASSERT_NE(loop, nullptr);
      EXPECT_GE(count(loop->counts, "FFMA"), 7 * count(loop->counts, "LDS"));
    }
}

}  // namespace
}  // namespace tilewright::rules
