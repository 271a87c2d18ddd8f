// The CUDA side against a stand-in for the driver (testing/fake_cuda.c).
#include "tilewright/runtime/gpu/cuda.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tilewright/runtime/gpu/cuda_maps.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"

namespace tilewright::runtime {
namespace {

using ::testing::HasSubstr;

constexpr int kOutOfMemory = 2, kInvalidImage = 200;

/// Chooses the stand-in for the length of a test.
class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TILEWRIGHT_CUDA_DRIVER", FAKE_CUDA, 1);
    library_ = ::dlopen(FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    setup(1, 9, 0);
  }
  void TearDown() override {
    EXPECT_EQ(entry<int64_t (*)()>("fake_cuda_live")(), 0) << "something was not released";
    ::dlclose(library_);
    ::unsetenv("TILEWRIGHT_CUDA_DRIVER");
  }

  void setup(int devices, int major, int minor, const char* failing = nullptr, int code = 0) {
    entry<void (*)(int, int, int, const char*, int)>("fake_cuda_setup")(devices, major, minor,
                                                                        failing, code);
  }
  /// What each kernel takes from now on.
  void take(float ms) { entry<void (*)(float)>("fake_cuda_kernel_ms")(ms); }
  std::string log() const { return entry<const char* (*)()>("fake_cuda_log")(); }

  static GpuProgram program() {
    GpuProgram program = sample_program("cuda");
    program.arch = "sm_90a";
    program.binary =
        "\x7f"
        "ELF";
    program.ptx = ".version 9.0";
    return program;
  }
  static Result<std::unique_ptr<GpuInstance>> load(GpuProgram code, GpuOptions options = {}) {
    const std::shared_ptr<GpuDevice> device = TW_TRY(open_gpu("cuda"));
    return device->load(std::make_shared<const GpuProgram>(std::move(code)), options);
  }
  /// The error of loading, or of a run.
  static Error error_of(GpuProgram code) {
    auto instance = load(std::move(code));
    if (!instance) return instance.error();
    const Status status = (*instance)->execute();
    return status ? Error{} : status.error();
  }

 private:
  template <class F>
  F entry(const char* name) const {
    return reinterpret_cast<F>(::dlsym(library_, name));
  }
  void* library_ = nullptr;
};

void expect_results(GpuInstance& instance, float bias) {
  std::vector<float> input;
  for (int64_t i = 0; i < kElements; ++i) input.push_back(sample_input(i) + bias);
  ASSERT_TRUE(instance.write_input(0, input.data()));
  const Status status = instance.execute();
  ASSERT_TRUE(status) << to_string(status.error());
  SampleResult got;
  ASSERT_TRUE(instance.read_output(0, got.z.data()));
  ASSERT_TRUE(instance.read_output(1, got.y.data()));
  EXPECT_EQ(got.z, sample_result(bias).z);
  EXPECT_EQ(got.y, sample_result(bias).y);
}

TEST_F(Cuda, AllCallsAreOneGraph) {
  const auto instance = load(program());
  ASSERT_TRUE(instance) << to_string(instance.error());
  EXPECT_EQ(log(),
            "module cubin\nalloc 2432\nalloc 88\nto device 88\nwait\nalloc 2304\nalloc 72\n"
            "alloc 2304\ncapture\nlaunch scale 8x3x3 4x2x1\nlaunch sum 6x3x1 32x1x1\n"
            "launch scale 8x3x3 4x2x1\ninstantiate 3\n");
  const size_t loaded = log().size();
  expect_results(**instance, 0);
  EXPECT_EQ(log().substr(loaded),
            "to device 2304\nwait\ngraph\nwait\nto host 2304\nwait\nto host 72\nwait\n");
  expect_results(**instance, 4);
  EXPECT_TRUE((*instance)->call_times().empty());
}

TEST_F(Cuda, PreparesOnceForInputs) {
  GpuProgram code = program();
  code.prepare = {code.calls[0]};
  code.calls.erase(code.calls.begin());
  const auto instance = load(std::move(code));
  ASSERT_TRUE(instance) << to_string(instance.error());
  const size_t loaded = log().size();
  EXPECT_THAT(log(), HasSubstr("instantiate 2"));
  expect_results(**instance, 0);
  EXPECT_THAT(log().substr(loaded),
              testing::StartsWith("to device 2304\nwait\nlaunch scale 8x3x3 4x2x1\ngraph\n"));
  const size_t ran = log().size();
  ASSERT_TRUE((*instance)->execute());
  EXPECT_EQ(log().substr(ran), "graph\nwait\n");
  expect_results(**instance, 4);
}

TEST_F(Cuda, RecordedRunsAreOneGraphWithEvents) {
  const auto instance = load(program(), {.record_times = true});
  ASSERT_TRUE(instance) << to_string(instance.error());
  expect_results(**instance, 1);
  EXPECT_THAT(log(), HasSubstr("instantiate 7\n")) << "three calls, and events around them";
  EXPECT_EQ((*instance)->call_times(), (std::vector<int64_t>{250000, 250000, 250000}));
}

TEST_F(Cuda, LongRunsAreTimedOneByOne) {
  const auto instance = load(program());
  const size_t loaded = log().size();
  const Result<double> time = (*instance)->time_runs(2);
  ASSERT_TRUE(time) << to_string(time.error());
  EXPECT_EQ(*time, 750000) << "three calls of 250 us";
  EXPECT_THAT(log().substr(loaded), testing::StartsWith("event\ngraph\nevent\nwait\ncapture\n"));
  EXPECT_THAT(log(), testing::EndsWith("instantiate 3\nevent\ngraph\ngraph\nevent\nwait\n"));
}

TEST_F(Cuda, ShortRunsAreTimedByTensAndWithoutAPauseBefore) {
  take(0.0078125F);
  const auto instance = load(program(), {.record_times = true});
  const Result<double> time = (*instance)->time_runs(11);
  ASSERT_TRUE(time) << to_string(time.error());
  EXPECT_EQ(*time, 3 * 7812.5);
  EXPECT_THAT(log(), testing::EndsWith("instantiate 30\ngraph\nevent\ngraph\ngraph\nevent\nwait\n"))
      << "thirty calls, no events between them";
}

TEST_F(Cuda, MachineCodeWhereItFitsElsePtx) {
  GpuProgram ampere = program();
  ampere.arch = "sm_80";
  ASSERT_TRUE(load(ampere));
  EXPECT_THAT(log(), HasSubstr("module ptx"));
  setup(1, 8, 6);
  ASSERT_TRUE(load(ampere));
  EXPECT_THAT(log(), HasSubstr("module cubin"));
  setup(1, 7, 5);
  EXPECT_THAT(to_string(error_of(ampere)),
              HasSubstr("code for sm_80 cannot run on cuda:0 (Fake GPU 0, sm_75)"));
  EXPECT_THAT(to_string(error_of(ampere)), HasSubstr("--target cuda-sm_75"));
  setup(1, 10, 0);
  EXPECT_THAT(to_string(error_of(program())), HasSubstr("code for sm_90a cannot run on cuda:0"));
  ampere.ptx.clear();
  EXPECT_THAT(to_string(error_of(ampere)), HasSubstr("no PTX beside the machine code"));
}

TEST_F(Cuda, BadCodeIsRefusedWithTheLog) {
  GpuProgram code = program();
  code.binary.clear();
  code.ptx.clear();
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("the cubin for sm_90a has 0 bytes"));
  code.ptx = "nonsense";
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("Fake GPU 0 refuses the PTX for sm_90a"));
  setup(1, 9, 0, "cuModuleLoadDataEx", kInvalidImage);
  EXPECT_THAT(to_string(error_of(program())), HasSubstr("refuses the cubin for sm_90a"));
  EXPECT_THAT(to_string(error_of(program())), HasSubstr("ptxas says no"));
  setup(1, 9, 0);
  code = program();
  code.kernels[1].symbol = "missing";
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("the code has no kernel 'missing'"));
  code = program();
  code.language = "opencl";
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("code in 'opencl' cannot run on cuda:0"));
}

TEST_F(Cuda, LimitsAreNamed) {
  GpuProgram code = program();
  code.kernels[0].block = {32, 32, 1};
  Error error = error_of(code);
  EXPECT_EQ(error.kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(error), HasSubstr("a block of 'scale' has 1024 threads"));
  EXPECT_THAT(to_string(error), HasSubstr("Fake GPU 0 runs 512"));
  code = program();
  code.kernels[0].grid = {1, 70000, 1};
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("65535 is the most"));
  code = program();
  code.arena_bytes = int64_t{1} << 40;
  error = error_of(code);
  EXPECT_EQ(error.kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(error), HasSubstr("the arena of 1099511627776 bytes"));
  EXPECT_THAT(to_string(error), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY: out of memory (code 2)"));
}

TEST_F(Cuda, SharedMemoryIsAskedFor) {
  GpuProgram code = program();
  code.kernels[1].shared_bytes = 100000;
  {
    const auto instance = load(code);
    ASSERT_TRUE(instance) << to_string(instance.error());
    EXPECT_THAT(log(), HasSubstr("launch sum 6x3x1 32x1x1 100000 bytes\n"));
    EXPECT_THAT(log(), HasSubstr("launch scale 8x3x3 4x2x1\n"));
    expect_results(**instance, 2);
  }
  code.kernels[1].shared_bytes = 232448 - 127;  // the kernel declares 128 itself
  const Error error = error_of(code);
  EXPECT_EQ(error.kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(error), HasSubstr("a block of 'sum' needs 232449 bytes"));
  EXPECT_THAT(to_string(error), HasSubstr("Fake GPU 0 has 232448"));
  code.kernels[1].shared_bytes = 64;
  setup(1, 9, 0, "cuFuncSetAttribute", 700);
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("cuFuncSetAttribute"));
}

/// Kernel `fetch` of the stand-in copies the last box of x, of which half lies outside, to y.
GpuProgram fetching() {
  using Place = GpuBuffer::Place;
  GpuProgram program;
  program.language = "cuda";
  program.arch = "sm_90a";
  program.ptx = ".version 9.0";
  program.kernels = {{.symbol = "fetch", .maps = {{0, DType::F32, {12, 5}, {64}, {8, 4}, 128}}}};
  program.buffers = {{Place::Input, 0, 5 * 64, "x"}, {Place::Output, 0, 4 * 8 * 4, "y"}};
  program.calls = {{0, "first", {0, 1}, {}}};
  program.inputs = {0};
  program.outputs = {1};
  return program;
}

TEST_F(Cuda, MapsAreMadeOfBuffersAndPassedLast) {
  for (const bool record : {false, true}) {
    setup(1, 9, 0);
    const auto instance = load(fetching(), {.record_times = record});
    ASSERT_TRUE(instance) << to_string(instance.error());
    // f32 (7), no interleaving, a swizzle of 128 bytes (3), fetched to L2 by 256 (3), zeros
    // outside.
    EXPECT_THAT(log(), HasSubstr("map type 7 12x5 by 64 box 8x4 steps 1x1 0 3 3 0\n"));
    std::vector<float> x(80), y(32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
    ASSERT_TRUE((*instance)->write_input(0, x.data()));
    ASSERT_TRUE((*instance)->execute());
    ASSERT_TRUE((*instance)->read_output(0, y.data()));
    for (size_t r = 0; r < 4; ++r)
      for (size_t c = 0; c < 8; ++c)
        EXPECT_EQ(y[8 * r + c], r < 2 && c < 4 ? x[(3 + r) * 16 + 8 + c] : 0) << r << " " << c;
  }
  GpuProgram half = fetching();
  half.kernels[0].maps[0] = {0, DType::BF16, {24, 5}, {64}, {16, 4}, 0};
  setup(1, 9, 0);
  ASSERT_TRUE(load(half));
  EXPECT_THAT(log(), HasSubstr("map type 9 24x5 by 64 box 16x4 steps 1x1 0 0 3 0\n"));
}

TEST_F(Cuda, MapsThatCannotBeMade) {
  setup(1, 9, 0, "cuTensorMapEncodeTiled", 1);
  EXPECT_THAT(to_string(error_of(fetching())), HasSubstr("cuTensorMapEncodeTiled for 'fetch'"));
  GpuProgram code = fetching();
  code.kernels[0].maps[0].dtype = DType::Bool;
  code.kernels[0].maps[0].box = {16, 4};
  setup(1, 9, 0);
  EXPECT_THAT(to_string(error_of(code)), HasSubstr("has a map of bool"));
  CudaApi old;
  const auto map = make_tensor_map(old, fetching().kernels[0].maps[0], 0, "fetch");
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(map.error()), HasSubstr("has no entry point cuTensorMapEncodeTiled"));
  EXPECT_THAT(to_string(map.error()), HasSubstr("install a driver for CUDA 12.0 or newer"));
}

TEST_F(Cuda, FailingCallsAreReportedAndLeakNothing) {
  for (const char* call :
       {"cuStreamCreate", "cuModuleGetFunction", "cuFuncGetAttribute", "cuMemAlloc",
        "cuMemcpyHtoDAsync", "cuStreamSynchronize", "cuStreamBeginCapture", "cuLaunchKernel",
        "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    setup(1, 9, 0, call, 700);
    EXPECT_THAT(to_string(error_of(program())), HasSubstr(std::string(call))) << call;
    EXPECT_THAT(to_string(error_of(program())), HasSubstr("(code 700)")) << call;
  }
}

TEST_F(Cuda, MissingDriversAndDevices) {
  setup(2, 9, 0);
  const auto second = open_gpu("cuda:1");
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ((*second)->info().name, "Fake GPU 1");
  EXPECT_EQ((*second)->info().arch, "sm_90");
  EXPECT_EQ((*second)->info().units, 132);
  ASSERT_TRUE(open_gpu("cuda:gpu 1"));
  EXPECT_THAT(to_string(open_gpu("cuda:fake").error()),
              HasSubstr("more than one device is 'fake'"));
  EXPECT_THAT(to_string(open_gpu("cuda:7").error()), HasSubstr("cuda:1 (Fake GPU 1)"));

  setup(0, 0, 0);
  EXPECT_THAT(to_string(open_gpu("cuda").error()), HasSubstr("finds no device"));
  setup(1, 9, 0, "cuInit", 100);
  EXPECT_THAT(to_string(open_gpu("cuda").error()), HasSubstr("cuInit failed"));
  setup(1, 9, 0, "cuMemAlloc", kOutOfMemory);
  EXPECT_EQ(error_of(program()).kind, ErrorKind::Capacity);

  ::setenv("TILEWRIGHT_CUDA_DRIVER", "libm.so.6", 1);
  EXPECT_THAT(to_string(open_gpu("cuda").error()),
              HasSubstr("libm.so.6 has no entry point cuInit"));
  ::setenv("TILEWRIGHT_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  const Error error = open_gpu("cuda").error();
  EXPECT_EQ(error.kind, ErrorKind::Device);
  EXPECT_THAT(to_string(error), HasSubstr("there is no usable NVIDIA driver here"));
  setup(1, 9, 0);
}

}  // namespace
}  // namespace tilewright::runtime
