// Steps on other devices: the loader gets the package's bytes, the launch its tensors in order.
#include "tilewright/runtime/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/package.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;
using ::testing::HasSubstr;

/// y = x - w on the device `toy`.
Program toy_program() {
  Program program;
  program.name = "toy";
  program.values = {{Place::Input, "x", DType::F32, {3}, 0, -1},
                    {Place::Weights, "w", DType::F32, {3}, 0, -1},
                    {Place::Output, "y", DType::F32, {3}, 0, -1}};
  program.inputs = {0};
  program.outputs = {2};
  program.weights_bytes = 12;
  program.launches["part 0"] = {"toy"};
  program.steps = {{"minus", "", "", "", {0, 1, 2}, 1, "part 0"}};
  return program;
}

/// What `toy` does with the code "subtract".
class Subtract : public Launch {
 public:
  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    for (size_t i = 0; i < 3; ++i)
      outputs[0].as<float>()[i] = inputs[0].as<float>()[i] - inputs[1].as<float>()[i];
    return {};
  }
};

Result<std::unique_ptr<Launch>> load_toy(const std::string& name, const LaunchInfo& info,
                                         std::string_view code) {
  if (info.device != "toy" || code != "subtract")
    return fail(ErrorKind::Package, name + " is not for toy: " + std::string(code));
  return std::make_unique<Subtract>();
}

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_launch_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& code) {
    const std::string path = folder_ + "/toy.twm";
    static const float w[] = {1, 2, 3};
    PackageContents contents;
    contents.program = toy_program();
    contents.weights = {{0, {reinterpret_cast<const char*>(w), sizeof w}}};
    contents.launches["part 0"] = code;
    const Status status = write_package(path, contents);
    EXPECT_TRUE(status) << to_string(status.error());
    return path;
  }
  std::string folder_;
};

TEST_F(LaunchTest, RunsWithTheCodeOfThePackage) {
  const auto package = Package::open(write("subtract"));
  ASSERT_TRUE(package) << to_string(package.error());
  EXPECT_NE((*package)->member("code/toy/part 0.bin"), nullptr);
  SessionOptions options;
  options.load_launch = load_toy;
  auto session = Session::create(*package, options);
  ASSERT_TRUE(session) << to_string(session.error());
  ASSERT_TRUE((*session)->set_input("x", Array::of(DType::F32, std::vector<double>{10, 20, 30})));
  ASSERT_TRUE((*session)->run());
  const auto y = (*session)->get_output("y");
  ASSERT_TRUE(y);
  EXPECT_EQ(y->as<float>()[0], 9);
  EXPECT_EQ(y->as<float>()[2], 27);
  EXPECT_EQ((*session)->profile()[0].callee, "part 0");
}

TEST_F(LaunchTest, RefusesWhatNobodyCanRun) {
  const auto package = Package::open(write("subtract"));
  ASSERT_TRUE(package);
  const auto session = Session::create(*package);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::Device);
  EXPECT_THAT(to_string(session.error()), HasSubstr("'toy'"));

  const auto other = Package::open(write("add"));
  ASSERT_TRUE(other);
  SessionOptions options;
  options.load_launch = load_toy;
  EXPECT_THAT(to_string(Session::create(*other, options).error()), HasSubstr("not for toy: add"));
}

TEST_F(LaunchTest, ManifestsMustBeConsistent) {
  Program program = toy_program();
  program.launches.clear();
  EXPECT_THAT(to_string(program_from_json(to_json(program)).error()),
              HasSubstr("there is no launch 'part 0'"));
  program = toy_program();
  program.steps[0].host = "Copy";
  EXPECT_FALSE(program_from_json(to_json(program)));
  PackageContents contents;
  contents.program = toy_program();
  contents.program.weights_bytes = 0;
  contents.program.values[1].shape = {0};
  EXPECT_THAT(to_string(write_package(folder_ + "/no.twm", contents).error()),
              HasSubstr("'part 0' has no code"));
}

}  // namespace
}  // namespace tilewright::runtime
