#include "tilewright/runtime/gpu/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tilewright/runtime/gpu/cuda_arch.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"
#include "tilewright/runtime/testing/mutate.h"

namespace tilewright::runtime {
namespace {

using ::testing::HasSubstr;

GpuProgram cuda_program() {
  GpuProgram program = sample_program("cuda");
  program.arch = "sm_90a";
  program.binary = std::string(
      "\x7f"
      "ELF, and so on\0",
      16);
  program.ptx = ".version 9.0";
  program.kernels[1].shared_bytes = 99 << 10;
  // The rows of `x` as a matrix: boxes of 4 rows of 32.
  program.kernels[0].maps = {{0, DType::F32, {32, 18}, {128}, {32, 4}, 128}};
  program.prepare = {program.calls[1]};
  return program;
}

TEST(GpuProgram, RoundTrip) {
  for (const GpuProgram& program : {sample_program("opencl"), cuda_program()}) {
    const std::string bytes = serialise(program);
    const Result<GpuProgram> back = parse_gpu_program(bytes);
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(serialise(*back), bytes);
    EXPECT_EQ(back->source, program.source);
    EXPECT_EQ(back->binary, program.binary);
    EXPECT_EQ(back->kernels[1].grid, program.kernels[1].grid);
    EXPECT_EQ(back->kernels[1].shared_bytes, program.kernels[1].shared_bytes);
    ASSERT_EQ(back->kernels[0].maps.size(), program.kernels[0].maps.size());
    for (const GpuTensorMap& map : back->kernels[0].maps) {
      EXPECT_EQ(map.buffer, 0);
      EXPECT_EQ(map.dtype, DType::F32);
      EXPECT_EQ(map.dims, (std::vector<int64_t>{32, 18}));
      EXPECT_EQ(map.strides, std::vector<int64_t>{128});
      EXPECT_EQ(map.box, (std::vector<int64_t>{32, 4}));
      EXPECT_EQ(map.swizzle_bytes, 128);
    }
    EXPECT_EQ(back->calls[2].scalars, std::vector<int64_t>{-1});
    EXPECT_EQ(back->calls[0].buffers, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(back->outputs, (std::vector<int>{4, 3}));
    ASSERT_EQ(back->prepare.size(), program.prepare.size());
    EXPECT_EQ(back->constants, program.constants);
  }
}

struct BadCase {
  const char* text;
  std::function<void(GpuProgram&)> spoil;
};

TEST(GpuProgram, NamesWhatIsWrong) {
  const BadCase cases[] = {
      {"code for a GPU in 'metal'", [](GpuProgram& p) { p.language = "metal"; }},
      {"the OpenCL source has 0 bytes",
       [](GpuProgram& p) { p.language = "opencl", p.source.clear(); }},
      {"'sm_9x' is no architecture", [](GpuProgram& p) { p.arch = "sm_9x"; }},
      {"there is neither a cubin, nor PTX, nor CUDA source",
       [](GpuProgram& p) { p.binary.clear(), p.ptx.clear(), p.source.clear(); }},
      {"the 5 bytes of code for sm_90a are no cubin", [](GpuProgram& p) { p.binary = "hello"; }},
      {"'a b' is no symbol", [](GpuProgram& p) { p.kernels[0].symbol = "a b"; }},
      {"'sum' is no symbol, or two kernels have it",
       [](GpuProgram& p) { p.kernels[0].symbol = "sum"; }},
      {"'sum' has 6 x 0 x 1 blocks", [](GpuProgram& p) { p.kernels[1].grid[1] = 0; }},
      {"2147483648 x 3 x 1 blocks", [](GpuProgram& p) { p.kernels[1].grid[0] = int64_t{1} << 31; }},
      {"of 300 x 300 x 1 threads", [](GpuProgram& p) { p.kernels[1].block = {300, 300, 1}; }},
      {"'scale' asks for -1 bytes of shared memory",
       [](GpuProgram& p) { p.kernels[0].shared_bytes = -1; }},
      {"'scale' asks for 8 bytes of shared memory",
       [](GpuProgram& p) { p.language = "opencl", p.kernels[0].shared_bytes = 8; }},
      {"the arena has -64 bytes", [](GpuProgram& p) { p.arena_bytes = -64; }},
      {"buffer 0 'x' has 0 bytes from 0 on", [](GpuProgram& p) { p.buffers[0].bytes = 0; }},
      {"buffer 0 'x' has 2304 bytes from 64 on", [](GpuProgram& p) { p.buffers[0].offset = 64; }},
      {"buffer 2 't' has 2304 bytes from 192 on of 2432, in steps of 64",
       [](GpuProgram& p) { p.buffers[2].offset = 192; }},
      {"buffer 2 't' has 2304 bytes from 32 on", [](GpuProgram& p) { p.buffers[2].offset = 32; }},
      {"buffer 1 'w' has 24 bytes from 64 on of 80", [](GpuProgram& p) { p.constants.resize(80); }},
      {"buffer 9 is no input", [](GpuProgram& p) { p.inputs = {9}; }},
      {"buffer 3 is no output, or one twice", [](GpuProgram& p) { p.outputs = {4, 3, 3}; }},
      {"2 buffers are outputs, 1 are listed", [](GpuProgram& p) { p.outputs = {4}; }},
      {"call 1 (second) uses buffer 7 of 5", [](GpuProgram& p) { p.calls[1].buffers[0] = 7; }},
      {"call 0 (second) uses buffer 9 of 5", [](GpuProgram& p) { p.prepare[0].buffers[0] = 9; }},
      {"call 1 (second) runs kernel -1 of 2", [](GpuProgram& p) { p.calls[1].kernel = -1; }},
      {"call 2 (third) passes 3 buffers and 0 scalars; the first call of its kernel 3 and 1",
       [](GpuProgram& p) { p.calls[2].scalars.clear(); }},
      {"512 parameters are the most", [](GpuProgram& p) { p.calls[1].buffers.resize(600); }},
  };
  for (const BadCase& row : cases) {
    GpuProgram program = cuda_program();
    row.spoil(program);
    const Result<GpuProgram> parsed = parse_gpu_program(serialise(program));
    ASSERT_FALSE(parsed) << row.text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::Package);
    EXPECT_THAT(to_string(parsed.error()), HasSubstr(row.text));
  }
}

TEST(GpuProgram, NamesWhatIsWrongWithMaps) {
  const auto with = [](void (*spoil)(GpuTensorMap&)) {
    GpuProgram program = cuda_program();
    spoil(program.kernels[0].maps[0]);
    const Result<GpuProgram> parsed = parse_gpu_program(serialise(program));
    return parsed ? std::string("accepted") : to_string(parsed.error());
  };
  using Map = GpuTensorMap;
  EXPECT_EQ(with([](Map&) {}), "accepted");
  EXPECT_EQ(with([](Map& m) { m.dims[1] = 17; }), "accepted");
  EXPECT_EQ(with([](Map& m) { m.swizzle_bytes = 0; }), "accepted");
  EXPECT_THAT(with([](Map& m) { m.box = {32, 257}; }),
              HasSubstr("a map of kernel 'scale' is none: f32 [32, 18], strides [128], box [32, "
                        "257], swizzled by 128 bytes"));
  for (void (*spoil)(Map&) : std::initializer_list<void (*)(Map&)>{
           [](Map& m) { m.box = {32, 0}; }, [](Map& m) { m.box = {33, 4}; },
           [](Map& m) { m.box = {64, 4}; }, [](Map& m) { m.box = {32}; },
           [](Map& m) { m.dims = {32}, m.strides = {}, m.box = {32}; },
           [](Map& m) { m.dims = {32, 0}; }, [](Map& m) { m.dims[1] = (int64_t{1} << 32) + 1; },
           [](Map& m) { m.strides = {120}; }, [](Map& m) { m.strides = {0}; },
           [](Map& m) { m.strides = {-128}; }, [](Map& m) { m.strides = {int64_t{1} << 40}; },
           [](Map& m) { m.strides = {128, 128}; }, [](Map& m) { m.swizzle_bytes = 64; },
           [](Map& m) { m.dims.assign(6, 2), m.strides.assign(5, 16), m.box.assign(6, 4); }})
    EXPECT_THAT(with(spoil), HasSubstr("a map of kernel 'scale' is none"));
  EXPECT_THAT(with([](Map& m) { m.buffer = 3; }), HasSubstr("'scale' is of buffer 3 of 3"));
  EXPECT_THAT(with([](Map& m) { m.buffer = -1; }), HasSubstr("'scale' is of buffer -1 of 3"));
  EXPECT_THAT(with([](Map& m) { m.dims[1] = 19; }),
              HasSubstr("call 0 (first) passes 'x' of 2304 bytes, its map is of 2432"));
  EXPECT_THAT(with([](Map& m) { m.dims[1] = int64_t{1} << 32, m.strides = {1 << 30}; }),
              HasSubstr("passes 'x' of 2304 bytes"));
  std::string bytes = serialise(cuda_program());
  bytes.replace(bytes.find("f32"), 3, "f3x");
  EXPECT_THAT(to_string(parse_gpu_program(bytes).error()), HasSubstr("a map is of 'f3x', no type"));
  GpuProgram opencl = cuda_program();
  opencl.language = "opencl";
  EXPECT_THAT(to_string(validate(opencl).error()), HasSubstr("maps, which only CUDA knows"));
  GpuProgram many = cuda_program();
  many.kernels[0].maps.resize(33, many.kernels[0].maps[0]);
  EXPECT_THAT(to_string(validate(many).error()), HasSubstr("512 parameters are the most"));
}

TEST(GpuProgram, CutOffAnywhereIsAnError) {
  const std::string bytes = serialise(cuda_program());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<GpuProgram> parsed = parse_gpu_program(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().kind, ErrorKind::Package);
  }
  EXPECT_THAT(to_string(parse_gpu_program(bytes + "x").error()), HasSubstr("ends too late"));
  EXPECT_THAT(to_string(parse_gpu_program("TWVTAPR1").error()), HasSubstr("not a GPU program"));
}

TEST(GpuProgram, MutationsAreRefusedOrSound) {
  const std::string seeds[] = {serialise(sample_program("opencl")), serialise(cuda_program())};
  Rng rng(5);
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = seeds[round % 2];
    mutate(rng, bytes);
    const Result<GpuProgram> parsed = parse_gpu_program(bytes);
    if (!parsed) continue;
    ++accepted;
    EXPECT_TRUE(validate(*parsed));
    EXPECT_EQ(serialise(*parsed), bytes);
  }
  EXPECT_GT(accepted, 100);  // most of the bytes are text
}

TEST(CudaArch, WhatRunsWhere) {
  EXPECT_EQ(to_string(*parse_cuda_arch("sm_90a")), "sm_90a");
  for (const char* text : {"", "90", "sm_", "sm_a", "sm_9", "sm_90b", "sm_-90", "sm_90 "})
    EXPECT_FALSE(parse_cuda_arch(text)) << text;
  const CudaArch ampere = *parse_cuda_arch("sm_80"), hopper = *parse_cuda_arch("sm_90a");
  EXPECT_TRUE(cubin_runs_on(ampere, 86) && !cubin_runs_on(ampere, 75) &&
              !cubin_runs_on(ampere, 90));
  EXPECT_TRUE(cubin_runs_on(hopper, 90) && !cubin_runs_on(hopper, 91));
  EXPECT_TRUE(ptx_runs_on(ampere, 90) && ptx_runs_on(ampere, 80) && !ptx_runs_on(ampere, 75));
  EXPECT_TRUE(ptx_runs_on(hopper, 90) && !ptx_runs_on(hopper, 100));
}

}  // namespace
}  // namespace tilewright::runtime
