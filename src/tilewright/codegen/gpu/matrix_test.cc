// Matrix instructions: emulated, kernels agree with the interpreter; for CUDA they compile.
#include "tilewright/codegen/gpu/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/prelude.h"
#include "tilewright/codegen/gpu/testing/matrix_emulation.h"
#include "tilewright/codegen/gpu/testing/runner.h"
#include "tilewright/lower/testing/warp_product.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;

Func product() {
  Result<Func> func = parse_func(lower::testing::warp_product_text());
  if (!func) throw std::runtime_error(to_string(func.error()));
  return std::move(*func);
}

TEST(MatrixInstructionsSlow, EmulatedTheyAgreeWithTheInterpreter) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  const Func func = product();
  const interp::Arguments arguments = testing::random_arguments(func, 1, false);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  testing::GpuBatch batch(testing::emulating_target(), testing::kMatrixEmulation);
  const Status added = batch.add(func, func, arguments);
  ASSERT_TRUE(added) << to_string(added.error());
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error()) << *batch.source();
  const Status same = testing::compare(expected->outputs, (*got)[0], 0);
  EXPECT_TRUE(same) << to_string(same.error()) << *batch.source();
}

TEST(MatrixInstructions, AreInlinePtxOfTheirFields) {
  EXPECT_THAT(cuda_matrix_function(*hw::find_gpu_intrinsic("cuda.mma_bf16")),
              HasSubstr("\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"
                        "               : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
                        "               : \"r\"(a_[0]), "));
  EXPECT_THAT(cuda_matrix_function(*hw::find_gpu_intrinsic("cuda.load_b_f16")),
              HasSubstr("\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\"\n"
                        "               : \"=r\"(d_[0]), "));
}

TEST(ThreadInstructions, TakeWordsByValue) {
  const hw::Intrinsic& dot = *hw::find_gpu_intrinsic("cuda.dp4a_u8i8");
  EXPECT_THAT(cuda_matrix_function(dot),
              HasSubstr("asm(\"dp4a.u32.s32 %0, %1, %2, %0;\" : \"+r\"(c) : \"r\"(a), \"r\"(b));"));
  const std::string opencl = opencl_thread_function(dot);
  EXPECT_THAT(opencl, HasSubstr("c + (i32)dot_4x8packed_us_int(a, b)"));
  EXPECT_THAT(opencl, HasSubstr("c += (i32)(u8)(a >> i) * (i32)(i8)(b >> i)"));
}

TEST(MatrixInstructions, CompileForCuda) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  testing::GpuBatch batch(*hw::find_gpu_target("cuda"));
  const Func func = product();
  const Status added = batch.add(func, func, testing::random_arguments(func, 1, false));
  ASSERT_TRUE(added) << to_string(added.error());
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto code = compile_cuda(*batch.source(), arch);
    ASSERT_TRUE(code) << to_string(code.error());
    EXPECT_THAT(code->ptx, HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
    for (const CudaKernelUse& use : code->kernels) {
      EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
      EXPECT_EQ(use.stack_bytes, 0) << use.symbol << " keeps fragments in memory";
    }
  }
}

/// A kernel that does the instruction once.
std::string trial(const hw::Intrinsic& in) {
  const hw::GpuInstruction how = *hw::gpu_instruction(in);
  if (how.lanes() == 1)
    return fmt::format(
        "extern \"C\" __global__ void try_{0}(i32* io) {{ io[0] = {0}(io[0], io[1], io[2]); }}\n",
        matrix_function_name(in));
  std::string body, args, result;
  for (const auto& operand : how.operands) {
    const Buffer& b = in.meaning.params[operand.param].buffer;
    const std::string type = c_storage_type(b.dtype());
    const int64_t held = *const_elements(b) / how.lanes();
    if (operand.lanes)
      body +=
          fmt::format("  {0} {1}[{2}];\n  for (int i = 0; i < {2}; ++i) {1}[i] = (({0}*)io)[i];\n",
                      type, b.name(), held);
    else
      body += fmt::format(
          "  __shared__ TW_ALIGNED {0} {1}[{2}];\n  {1}[threadIdx.x] = (({0}*)io)[1];\n", type,
          b.name(), *const_elements(b));
    args += fmt::format("{}{}{}", args.empty() ? "" : ", ", b.name(),
                        operand.cores    ? ", 256u, 128u"
                        : operand.panels ? ", 8192u"
                                         : "");
    if (result.empty())
      result = fmt::format("  for (int i = 0; i < {}; ++i) (({}*)io)[i] = {}[i];\n", held, type,
                           b.name());
  }
  return fmt::format("extern \"C\" __global__ void try_{0}(void* io) {{\n{1}  {0}({2});\n{3}}}\n",
                     matrix_function_name(in), body, args, result);
}

TEST(MatrixInstructionsSlow, EveryOneIsWrittenAsTheAssemblerWantsIt) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  std::string source = gpu_prelude(*hw::find_gpu_target("cuda"), false) + cuda_matrix_helpers();
  for (const hw::Intrinsic& in : hw::gpu_intrinsics())
    source += cuda_matrix_function(in) + trial(in);
  const auto code = compile_cuda(source, "sm_90a");
  ASSERT_TRUE(code) << to_string(code.error());
  for (const hw::Intrinsic& in : hw::gpu_intrinsics())
    EXPECT_THAT(code->ptx, HasSubstr(hw::gpu_instruction(in)->ptx)) << in.name();
}

TEST(MatrixInstructions, NeedATargetThatHasThem) {
  const auto text_for = [](const hw::GpuTarget& target) {
    testing::GpuBatch batch(target);
    const Func func = product();
    EXPECT_TRUE(batch.add(func, func, testing::random_arguments(func, 1, false)));
    const auto source = batch.source();
    return source ? "accepted" : to_string(source.error());
  };
  EXPECT_EQ(text_for(*hw::find_gpu_target("cuda")), "accepted");
  EXPECT_THAT(text_for(testing::emulating_target()),
              HasSubstr("opencl-emulating-cuda has no cuda.load_a_bf16"));
}

}  // namespace
}  // namespace tilewright::codegen
