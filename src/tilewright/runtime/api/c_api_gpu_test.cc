// Packages for GPUs through the C interface, as an application without the compiler loads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/process.h"
#include "tilewright/runtime.hpp"
#include "tilewright/runtime/gpu/device.h"
#include "tilewright/runtime/gpu/testing/sample_program.h"
#include "tilewright/runtime/package.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;
using ::testing::HasSubstr;

/// The sample program as the only step of a package.
std::string write_sample(const TemporaryFolder& folder, const std::string& device,
                         const std::string& code) {
  Program program;
  program.name = "sample";
  program.target.name = device;
  program.values = {{Place::Input, "x", DType::F32, {kImages, kRows, kColumns}, 0, -1},
                    {Place::Output, "z", DType::F32, {kImages, kRows, kColumns}, 0, -1},
                    {Place::Output, "y", DType::F32, {kImages, kRows}, 0, -1}};
  program.inputs = {0};
  program.outputs = {1, 2};
  program.launches["all"] = {device};
  program.steps = {{"all", "", "", "", {0, 1, 2}, 2, "all"}};
  PackageContents contents;
  contents.program = program;
  contents.launches["all"] = code;
  const std::string path = folder.file(device + ".twm");
  const Status written = write_package(path, contents);
  EXPECT_TRUE(written) << to_string(written.error());
  return path;
}

/// The code and text of what creating a session says.
std::pair<int, std::string> problem_of(const std::string& path, const char* device) {
  try {
    tw::Session session(tw::Module(path), 1, false, device);
  } catch (const tw::Error& error) {
    return {error.code(), error.what()};
  }
  return {TW_OK, ""};
}

class CApiGpu : public ::testing::Test {
 protected:
  TemporaryFolder folder_ = *TemporaryFolder::create();
  std::string opencl_ = write_sample(folder_, "opencl", serialise(sample_program("opencl")));
};

TEST_F(CApiGpu, RunsOnOpenCl) {
  const auto device = open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  const std::string id = (*device)->info().id;
  for (const char* name : {static_cast<const char*>(nullptr), "", "opencl", id.c_str()}) {
    tw::Session session(tw::Module(opencl_), 1, false, name);
    for (const float bias : {0.0f, 2.0f}) {
      std::vector<float> x(kElements);
      for (int64_t i = 0; i < kElements; ++i) x[static_cast<size_t>(i)] = sample_input(i) + bias;
      session.set_input("x", x, {kImages, kRows, kColumns});
      session.run();
      const SampleResult expected = sample_result(bias);
      EXPECT_EQ(session.output<float>("z").values, expected.z);
      EXPECT_EQ(session.output<float>("y").values, expected.y);
    }
  }
}

TEST_F(CApiGpu, DevicesThatDoNotFit) {
  EXPECT_EQ(problem_of(opencl_, "gpu").first, TW_DEVICE);
  EXPECT_THAT(problem_of(opencl_, "gpu").second, HasSubstr("opencl:N"));
  EXPECT_EQ(problem_of(opencl_, "opencl:no such name").first, TW_DEVICE);
  const std::string vta = write_sample(folder_, "vta", "code");
  EXPECT_EQ(problem_of(vta, nullptr).first, TW_DEVICE);
  EXPECT_THAT(problem_of(vta, nullptr).second, HasSubstr("cannot drive"));
  const std::string cut_off =
      write_sample(folder_, "cuda", serialise(sample_program("opencl")).substr(0, 99));
  EXPECT_EQ(problem_of(cut_off, nullptr).first, TW_PACKAGE);
}

TEST_F(CApiGpu, CodeForAnotherDevice) {
  const auto device = open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  GpuProgram program = sample_program("cuda");
  program.arch = "sm_90";
  const std::string cuda = write_sample(folder_, "cuda", serialise(program));
  EXPECT_EQ(problem_of(cuda, "opencl").first, TW_DEVICE);
  EXPECT_THAT(problem_of(cuda, "opencl").second, HasSubstr("--target opencl"));
}

}  // namespace
}  // namespace tilewright::runtime
