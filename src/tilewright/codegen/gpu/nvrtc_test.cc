#include "tilewright/codegen/gpu/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tilewright/runtime/gpu/device.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"

namespace tilewright::codegen {
namespace {

using ::testing::HasSubstr;

#define NVRTC_OR_SKIP() \
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error())

TEST(Nvrtc, MachineCodeAndPtx) {
  NVRTC_OR_SKIP();
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Result<CudaCode> code = compile_cuda(runtime::kSampleCuda, arch);
    ASSERT_TRUE(code) << to_string(code.error());
    EXPECT_TRUE(
        code->cubin.starts_with("\x7f"
                                "ELF"));
    EXPECT_THAT(code->ptx, HasSubstr(".visible .entry scale("));
    EXPECT_THAT(code->ptx, HasSubstr(std::string(".target ") + arch));
  }
}

TEST(NvrtcSlow, WhatKernelsTake) {
  NVRTC_OR_SKIP();
  // 200 numbers live at once in blocks of 1024 threads, which leave 64 registers to each.
  const std::string crowded = R"(
    extern "C" __global__ void __launch_bounds__(1024) crowded(float* x, int n) {
      float a[200];
      for (int i = 0; i < 200; ++i) a[i] = x[i * threadIdx.x];
      for (int i = 0; i < 200; ++i) x[i * n] = a[199 - i];
    })";
  const Result<CudaCode> code = compile_cuda(runtime::kSampleCuda + crowded, "sm_90a");
  ASSERT_TRUE(code) << to_string(code.error());
  std::map<std::string, CudaKernelUse> use;
  for (const CudaKernelUse& kernel : code->kernels) use[kernel.symbol] = kernel;
  ASSERT_EQ(use.size(), 3u);
  EXPECT_EQ(use["sum"].shared_bytes, 128);
  EXPECT_EQ(use["scale"].shared_bytes, 0);
  EXPECT_EQ(use["scale"].spill_bytes, 0);
  EXPECT_EQ(use["scale"].stack_bytes, 0);
  EXPECT_GT(use["scale"].registers, 4);
  EXPECT_LT(use["scale"].registers, 64);
  EXPECT_GT(use["crowded"].spill_bytes, 100);
  EXPECT_LE(use["crowded"].registers, 64);
}

TEST(Nvrtc, LogOfTheAssembler) {
  // The form of CUDA 12.
  const auto uses = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_80'\n"
      "ptxas info    : Function properties for f\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 40 registers, 400 bytes smem, 372 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'g' for 'sm_80'");
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].symbol, "f");
  EXPECT_EQ(uses[0].registers, 40);
  EXPECT_EQ(uses[0].shared_bytes, 400);
  EXPECT_EQ(uses[0].stack_bytes, 16);
  EXPECT_EQ(uses[0].spill_bytes, 20);
  EXPECT_EQ(uses[1].symbol, "g");
  EXPECT_TRUE(parse_ptxas_log("").empty());
}

TEST(Nvrtc, ErrorsCarryTheLog) {
  NVRTC_OR_SKIP();
  const Result<CudaCode> code = compile_cuda("__global__ void f() { no_such_thing(); }", "sm_90a");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().kind, ErrorKind::Tool);
  EXPECT_THAT(to_string(code.error()), HasSubstr("no_such_thing"));
}

TEST(Nvrtc, UnknownArchitectures) {
  NVRTC_OR_SKIP();
  for (const char* arch : {"sm_10", "gfx90a", "sm_", ""}) {
    const Result<CudaCode> code = compile_cuda(runtime::kSampleCuda, arch);
    ASSERT_FALSE(code) << arch;
    EXPECT_EQ(code.error().kind, ErrorKind::Unsupported);
    EXPECT_THAT(to_string(code.error()), HasSubstr("it knows sm_"));
  }
}

TEST(Nvrtc, AMissingLibraryIsNamed) {
  const char* before = std::getenv("TILEWRIGHT_NVRTC");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TILEWRIGHT_NVRTC", "/nowhere/libnvrtc.so", 1);
  const Result<CudaCode> code = compile_cuda(runtime::kSampleCuda, "sm_80");
  before != nullptr ? ::setenv("TILEWRIGHT_NVRTC", kept.c_str(), 1)
                    : ::unsetenv("TILEWRIGHT_NVRTC");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().kind, ErrorKind::Tool);
  EXPECT_THAT(to_string(code.error()), HasSubstr("/nowhere/libnvrtc.so"));
}

/// Where there is a GPU, the compiled program runs on it.
TEST(Nvrtc, RunsOnTheDevice) {
  NVRTC_OR_SKIP();
  const auto device = runtime::open_gpu("cuda");
  if (!device) GTEST_SKIP() << to_string(device.error());
  runtime::GpuProgram program = runtime::sample_program("cuda");
  program.arch = (*device)->info().arch;
  const Result<CudaCode> code = compile_cuda(program.source, program.arch);
  ASSERT_TRUE(code) << to_string(code.error());
  program.ptx = code->ptx;
  for (const bool machine_code : {true, false})
    for (const bool record : {false, true}) {
      program.binary = machine_code ? code->cubin : "";
      const auto instance = (*device)->load(std::make_shared<const runtime::GpuProgram>(program),
                                            {.record_times = record});
      ASSERT_TRUE(instance) << to_string(instance.error());
      std::vector<float> input;
      for (int64_t i = 0; i < runtime::kElements; ++i) input.push_back(runtime::sample_input(i));
      ASSERT_TRUE((*instance)->write_input(0, input.data()));
      ASSERT_TRUE((*instance)->execute());
      runtime::SampleResult got;
      ASSERT_TRUE((*instance)->read_output(0, got.z.data()));
      ASSERT_TRUE((*instance)->read_output(1, got.y.data()));
      EXPECT_EQ(got.z, runtime::sample_result(0).z);
      EXPECT_EQ(got.y, runtime::sample_result(0).y);
      EXPECT_EQ((*instance)->call_times().size(), record ? 3u : 0u);
    }
}

}  // namespace
}  // namespace tilewright::codegen
