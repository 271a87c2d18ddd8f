// Programs on PoCL, or on whatever OpenCL device is first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>

#include "tilewright/runtime/gpu/device.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"

namespace tilewright::runtime {
namespace {

using ::testing::HasSubstr;

/// The device, or nothing and a skipped test.
std::shared_ptr<GpuDevice> device_or_skip() {
  static const Result<std::shared_ptr<GpuDevice>> device = open_gpu("opencl:0");
  return device ? *device : nullptr;
}
#define DEVICE_OR_SKIP()                                      \
  const std::shared_ptr<GpuDevice> device = device_or_skip(); \
  if (device == nullptr) GTEST_SKIP() << to_string(open_gpu("opencl:0").error())

std::shared_ptr<const GpuProgram> shared(GpuProgram program) {
  return std::make_shared<const GpuProgram>(std::move(program));
}

std::vector<float> input_of(float bias) {
  std::vector<float> input;
  for (int64_t i = 0; i < kElements; ++i) input.push_back(sample_input(i) + bias);
  return input;
}

TEST(OpenCl, RunsKernelsInOrder) {
  DEVICE_OR_SKIP();
  for (const bool record : {false, true}) {
    const auto instance = device->load(shared(sample_program("opencl")), {.record_times = record});
    ASSERT_TRUE(instance) << to_string(instance.error());
    for (const float bias : {0.0f, 5.0f}) {
      ASSERT_TRUE((*instance)->write_input(0, input_of(bias).data()));
      ASSERT_TRUE((*instance)->execute());
      SampleResult got;
      ASSERT_TRUE((*instance)->read_output(0, got.z.data()));
      ASSERT_TRUE((*instance)->read_output(1, got.y.data()));
      const SampleResult want = sample_result(bias);
      EXPECT_EQ(got.z, want.z);
      EXPECT_EQ(got.y, want.y);
    }
    const std::vector<int64_t> times = (*instance)->call_times();
    ASSERT_EQ(times.size(), record ? 3u : 0u);
    for (const int64_t time : times) EXPECT_GT(time, 0);
  }
}

/// A folder for caches, and keeping switched on, for the length of a test.
class OpenClCache : public ::testing::Test {
 protected:
  OpenClCache() {
    for (const char* name : kNames)
      if (const char* value = std::getenv(name)) before_[name] = value;
    ::setenv("TILEWRIGHT_CACHE_DIR", folder_.parent_path().c_str(), 1);
    ::setenv("TILEWRIGHT_OPENCL_CACHE", "on", 1);
  }
  ~OpenClCache() override {
    for (const char* name : kNames)
      before_.contains(name) ? ::setenv(name, before_[name].c_str(), 1) : ::unsetenv(name);
    std::filesystem::remove_all(folder_.parent_path());
  }

  /// The second output of the sample with another source; empty if it fails.
  std::vector<float> run(GpuDevice& device, const std::string& source) {
    GpuProgram program = sample_program("opencl");
    program.source = source;
    const auto instance = device.load(shared(std::move(program)), {});
    SampleResult got;
    const bool done = instance && (*instance)->write_input(0, input_of(1).data()) &&
                      (*instance)->execute() && (*instance)->read_output(1, got.y.data());
    return done ? got.y : std::vector<float>();
  }
  std::vector<std::filesystem::path> files() const {
    using Iterator = std::filesystem::directory_iterator;
    std::vector<std::filesystem::path> all(Iterator(folder_), Iterator{});
    std::sort(all.begin(), all.end());
    return all;
  }

  static constexpr const char* kNames[] = {"TILEWRIGHT_CACHE_DIR", "TILEWRIGHT_OPENCL_CACHE"};
  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                        ("caches_" + std::to_string(::getpid())) / "opencl";
  std::map<std::string, std::string> before_;
};

TEST_F(OpenClCache, KeepsWhatTheDriverMade) {
  DEVICE_OR_SKIP();
  std::string other = kSampleOpenCl;
  other.replace(other.find("(float)shift"), 12, "(float)shift + 1");
  const std::vector<float> one = sample_result(1).y;
  EXPECT_EQ(run(*device, kSampleOpenCl), one);
  const std::filesystem::path first = files().at(0);
  const std::vector<float> two = run(*device, other);
  EXPECT_NE(two, one);
  ASSERT_EQ(files().size(), 2u);
  const std::filesystem::path second = files()[files()[0] == first ? 1 : 0];
  // Exchanged, a program gives what the other one does: what is kept is what runs.
  std::filesystem::rename(first, folder_ / "away");
  std::filesystem::copy(second, first);
  EXPECT_EQ(run(*device, kSampleOpenCl), two);
  // What is damaged is made again.
  std::filesystem::resize_file(first, std::filesystem::file_size(first) / 2);
  EXPECT_EQ(run(*device, kSampleOpenCl), one);
  EXPECT_EQ(std::filesystem::file_size(first), std::filesystem::file_size(folder_ / "away"));
}

TEST_F(OpenClCache, KeepsNothingWhenSwitchedOff) {
  DEVICE_OR_SKIP();
  ::setenv("TILEWRIGHT_OPENCL_CACHE", "off", 1);
  EXPECT_EQ(run(*device, kSampleOpenCl), sample_result(1).y);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST(OpenCl, PreparesWhatInputsChange) {
  DEVICE_OR_SKIP();
  GpuProgram program = sample_program("opencl");
  program.prepare = {program.calls[0]};
  program.calls.erase(program.calls.begin());
  const auto instance = device->load(shared(std::move(program)), {.record_times = true});
  ASSERT_TRUE(instance) << to_string(instance.error());
  for (const float bias : {0.0f, 5.0f}) {
    ASSERT_TRUE((*instance)->write_input(0, input_of(bias).data()));
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE((*instance)->execute());
      SampleResult got;
      ASSERT_TRUE((*instance)->read_output(1, got.y.data()));
      EXPECT_EQ(got.y, sample_result(bias).y);
      EXPECT_EQ((*instance)->call_times().size(), 2u);
    }
  }
}

TEST(OpenCl, LaunchesCheckTheirArrays) {
  DEVICE_OR_SKIP();
  std::vector<int64_t> times;
  double run = 0;
  const auto keep = [&](const std::vector<int64_t>& calls, double whole) {
    times = calls;
    run = whole;
  };
  auto launch = make_gpu_launch("net", shared(sample_program("opencl")), device, {true, keep});
  ASSERT_TRUE(launch) << to_string(launch.error());
  Array x(DType::F32, {kImages, kRows, kColumns});
  std::ranges::copy(input_of(2), x.as<float>().begin());
  std::vector<Array> outputs = {Array(DType::F32, {kElements}),
                                Array(DType::F32, {kImages, kRows})};
  ASSERT_TRUE((*launch)->run({x}, outputs));
  EXPECT_TRUE(std::ranges::equal(outputs[0].as<float>(), sample_result(2).z));
  EXPECT_TRUE(std::ranges::equal(outputs[1].as<float>(), sample_result(2).y));
  EXPECT_EQ(times.size(), 3u);
  EXPECT_EQ(run, static_cast<double>(std::accumulate(times.begin(), times.end(), int64_t{0})));

  Status status = (*launch)->run({}, outputs);
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("'net' has 1 inputs, the program passes 0"));
  std::swap(outputs[0], outputs[1]);
  status = (*launch)->run({x}, outputs);
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("output 'z' of 'net' has 2304 bytes, not 72"));
}

/// The error of loading a spoiled program.
Error load_error(const std::shared_ptr<GpuDevice>& device, void (*spoil)(GpuProgram&)) {
  GpuProgram program = sample_program("opencl");
  spoil(program);
  const auto instance = device->load(shared(std::move(program)), {});
  return instance ? Error{} : instance.error();
}

TEST(OpenCl, RefusesWhatItCannotRun) {
  DEVICE_OR_SKIP();
  Error error = load_error(device, [](GpuProgram& p) { p.language = "cuda"; });
  EXPECT_EQ(error.kind, ErrorKind::Device);
  EXPECT_THAT(to_string(error), HasSubstr("code in 'cuda' cannot run on opencl:0"));

  error = load_error(device, [](GpuProgram& p) {
    p.source.replace(p.source.find("get_global_id"), 13, "no_such_thing");
  });
  EXPECT_EQ(error.kind, ErrorKind::Device);
  EXPECT_THAT(to_string(error), HasSubstr("does not compile"));
  EXPECT_THAT(to_string(error), HasSubstr("no_such_thing"));

  error = load_error(device, [](GpuProgram& p) { p.kernels[0].symbol = "missing"; });
  EXPECT_THAT(to_string(error), HasSubstr("no such kernel"));
  EXPECT_THAT(to_string(error), HasSubstr("missing"));

  error = load_error(device, [](GpuProgram& p) { p.calls[1].buffers.push_back(0); });
  EXPECT_EQ(error.kind, ErrorKind::Package);
  EXPECT_THAT(to_string(error), HasSubstr("kernel 'sum' has 4 parameters, not 6"));

  error = load_error(device, [](GpuProgram& p) { p.kernels[0].block = {256, 256, 1}; });
  EXPECT_EQ(error.kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(error), HasSubstr("a block of 'scale' has 65536 threads"));

  error = load_error(device, [](GpuProgram& p) { p.arena_bytes = int64_t{1} << 45; });
  EXPECT_EQ(error.kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(error), HasSubstr("the arena needs 35184372088832 bytes"));

  error = load_error(device, [](GpuProgram& p) { p.calls[0].buffers[0] = 77; });
  EXPECT_THAT(to_string(error), HasSubstr("uses buffer 77 of 5"));
}

TEST(OpenClSlow, RefusesTooMuchSharedMemory) {
  DEVICE_OR_SKIP();
  const Error error = load_error(device, [](GpuProgram& p) {
    p.source.replace(p.source.find("part[32]"), 8, "part[99999999]");
  });
  EXPECT_THAT(to_string(error), HasSubstr("bytes of shared memory"));
}

TEST(OpenCl, DevicesAreChosenByNumberOrName) {
  DEVICE_OR_SKIP();
  EXPECT_EQ(device->info().id, "opencl:0");
  EXPECT_GT(device->info().memory_bytes, 1 << 20);
  EXPECT_GE(device->info().max_threads, 1);
  const auto named = open_gpu("opencl:" + device->info().name);
  if (list_gpus().size() == 1) {
    ASSERT_TRUE(named) << to_string(named.error());
    EXPECT_EQ((*named)->info().id, "opencl:0");
  }
  for (const char* id : {"opencl:99", "opencl:no such name"}) {
    const auto missing = open_gpu(id);
    ASSERT_FALSE(missing) << id;
    EXPECT_EQ(missing.error().kind, ErrorKind::Device);
    EXPECT_THAT(to_string(missing.error()), HasSubstr(device->info().name));
  }
  const auto other = open_gpu("vulkan:0");
  ASSERT_FALSE(other);
  EXPECT_THAT(to_string(other.error()), HasSubstr("there is no device 'vulkan:0'"));
}

TEST(OpenCl, AMissingLoaderIsNamed) {
  ::setenv("TILEWRIGHT_OPENCL", "/nowhere/libOpenCL.so", 1);
  const auto device = open_gpu("opencl");
  std::vector<std::string> problems;
  const std::vector<GpuDeviceInfo> rest = list_gpus(&problems);
  ::unsetenv("TILEWRIGHT_OPENCL");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(device.error()), HasSubstr("TILEWRIGHT_OPENCL names it"));
  for (const GpuDeviceInfo& info : rest) EXPECT_EQ(info.language, "cuda");
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems[0], HasSubstr("opencl: there is no OpenCL here"));
}

}  // namespace
}  // namespace tilewright::runtime
