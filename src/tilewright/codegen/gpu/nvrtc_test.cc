#include "tilewright/codegen/gpu/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/runtime/gpu/device.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"

namespace tilewright::codegen {
namespace {

using testing::HasSubstr;

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
