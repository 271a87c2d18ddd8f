#include "tilewright/driver/fleet/device_need.h"

#include <gtest/gtest.h>

#include "tilewright/base/process.h"
#include "tilewright/hw/target_file.h"
#include "tilewright/runtime/program.h"

namespace tilewright::driver {
namespace {

fleet::Device device(const std::string& id, const std::string& device_class,
                     const std::string& target) {
  fleet::Device made;
  made.name = "desk/" + id;
  made.device = id;
  made.device_class = device_class;
  made.target = target;
  made.state = "free";
  return made;
}

/// A processor of a fleet with these features.
fleet::Device processor(const std::string& name, const std::string& isa) {
  fleet::Device made = device("cpu", "cpu:" + name + "@1", "cpu");
  made.name = "desk/" + name;
  made.target_file = hw::to_toml(hw::as_target(*hw::find_target(isa)));
  return made;
}

/// Three models, so that there are most of these.
std::vector<fleet::Device> lab() {
  const fleet::Device model = device("model", "model", "model");
  return {model,
          model,
          model,
          processor("old", "x86-64-v2"),
          processor("new", "x86-64-v4"),
          device("runner:qemu-aarch64 tilewright-runner", "aarch64", "aarch64"),
          device("vta:tsim", "vta:tsim", "vta"),
          device("vta:tsim", "vta:tsim", "vta"),
          device("opencl:0", "opencl:pthread", "opencl")};
}

/// The class that `any` takes, or why there is none.
std::string any(const fleet::Need& need, const std::vector<fleet::Device>& devices = lab()) {
  const auto found = fleet::select_devices(*fleet::parse_spec("any"), devices, need);
  return found ? found->device_class : to_string(found.error());
}

SubjectOptions for_target(const std::string& target) {
  SubjectOptions options;
  options.target = target;
  options.paths = {"net.onnx"};
  return options;
}

TEST(DeviceNeed, AModelRunsOnAProcessorUnlessItsTargetIsAnother) {
  EXPECT_EQ(any(package_need(for_target("cpu"))).substr(0, 4), "cpu:");
  EXPECT_EQ(any(package_need(for_target("x86-64-v3"))), "cpu:new@1");
  EXPECT_EQ(any(package_need(for_target("aarch64"))), "aarch64");
  EXPECT_EQ(any(package_need(for_target("vta"))), "vta:tsim");
  EXPECT_EQ(any(package_need(for_target("opencl"))), "opencl:pthread");
  // What could run it, if there are no processors.
  const fleet::Device gpu = device("opencl:0", "opencl:pthread", "opencl");
  EXPECT_EQ(any(package_need(for_target("cpu")), {gpu}), "opencl:pthread");
}

TEST(DeviceNeed, ADeviceThatRunsNothingIsNotTaken) {
  const std::vector<fleet::Device> models(2, device("model:seed=3", "model", "model"));
  EXPECT_EQ(any(package_need(for_target("cpu")), models),
            "error: no device of the fleet that is 'any' can run packages\n"
            "  why: desk/model:seed=3: it answers by a model, and runs nothing; "
            "desk/model:seed=3: it answers by a model, and runs nothing\n"
            "  fix: tilewright worker --device cpu, on a machine that can\n");
}

TEST(DeviceNeed, APackageRunsWhereItsCodeDoes) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  runtime::Program program;
  program.target = {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", {"+avx2"}};
  program.values = {{runtime::ValueSpec::Place::Input, "x", DType::F32, {8}, 0, -1},
                    {runtime::ValueSpec::Place::Output, "y", DType::F32, {8}, 0, -1}};
  program.inputs = {0};
  program.outputs = {1};
  const std::string path = folder.file("net.twm");
  ASSERT_TRUE(runtime::write_package(path, {program, "", "", {}, "{}\n"}));
  SubjectOptions options = for_target("cpu");
  options.paths = {path};
  EXPECT_EQ(any(package_need(options)), "cpu:new@1");
  const fleet::Device board = device("runner:ssh board", "aarch64", "aarch64");
  EXPECT_NE(any(package_need(options), {board, processor("old", "x86-64-v2")})
                .find("desk/old: the code of " + path + " needs +avx2"),
            std::string::npos);
  EXPECT_NE(any(package_need(options), {board}).find("is for x86_64"), std::string::npos);
  // Which processor is beside a simulator is not known.
  const fleet::Device simulator = device("vta:tsim", "vta:tsim", "vta");
  EXPECT_NE(any(package_need(options), {simulator}).find("is for cpu"), std::string::npos);
}

TEST(DeviceNeed, CandidatesAreMeasuredWhereTimeIsTime) {
  EXPECT_EQ(any(measuring_need(for_target("cpu"))).substr(0, 4), "cpu:");
  EXPECT_EQ(any(measuring_need(for_target("opencl"))), "opencl:pthread");
  const fleet::Device model = device("model", "model", "model");
  const fleet::Device simulator = device("vta:tsim", "vta:tsim", "vta");
  const fleet::Device gpu = device("cuda:0", "cuda:H200", "cuda");
  EXPECT_EQ(any(measuring_need(for_target("cpu")), {simulator, simulator, model}), "model");
  EXPECT_NE(any(measuring_need(for_target("cpu")), {simulator, gpu}).find("counts the same cycles"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright::driver
