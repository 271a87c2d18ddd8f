#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tilewright/accel/spatial/testing/random_program.h"
#include "tilewright/base/file.h"

namespace tilewright::spatial {
namespace {

namespace fs = std::filesystem;

class SpatialDumps : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("spatial_dump_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string folder() const { return (root_ / "dump").string(); }
  std::string path(const std::string& name) const { return (fs::path(folder()) / name).string(); }

  fs::path root_;
};

testing::RandomProgram dumped_example() {
  testing::RandomProgram random = testing::random_program(4, 20);
  Program& program = random.program;
  program.design.name = "small \"one\"";
  program.design.clock_mhz = 123.5;
  program.runs.push_back(program.runs[0]);
  program.runs[1].patches = {{program.base + 7, "patch"}, {program.base, "other"}};
  program.inputs = {{"x", program.base + 64, 128}};
  program.outputs = {{"y", program.base + 9000, 1000}, {"z", program.base, 3}};
  program.info = R"({"why":"test"})";
  return random;
}

TEST_F(SpatialDumps, ReadBack) {
  const testing::RandomProgram random = dumped_example();
  const Program& program = random.program;
  ASSERT_TRUE(write_dump(folder(), program, random.expected));
  const Result<Dump> dump = read_dump(folder());
  ASSERT_TRUE(dump) << to_string(dump.error());
  EXPECT_EQ(serialise(dump->program), serialise(program));
  ASSERT_EQ(dump->expected.size(), 2);
  EXPECT_EQ(dump->expected[0], random.expected.substr(9000, 1000));
  EXPECT_EQ(dump->expected[1], random.expected.substr(0, 3));
  // Written over itself, without results.
  ASSERT_TRUE(write_dump(folder(), program));
  EXPECT_EQ(read_dump(folder())->expected[0], "");
  EXPECT_FALSE(fs::exists(path("final.bin")));
}

TEST_F(SpatialDumps, ManifestsThatLackSomethingAreErrors) {
  const testing::RandomProgram random = dumped_example();
  ASSERT_TRUE(write_dump(folder(), random.program, random.expected));
  const auto whole = nlohmann::json::parse(read_file(path("manifest.json")).value());
  const auto expect = [&](const char* pointer, const nlohmann::json& value,
                          const std::string& part) {
    auto changed = whole;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    ASSERT_TRUE(write_file(path("manifest.json"), changed.dump()));
    const Result<Dump> dump = read_dump(folder());
    ASSERT_FALSE(dump) << pointer;
    EXPECT_NE(to_string(dump.error()).find(part), std::string::npos) << to_string(dump.error());
  };
  expect("/format", "dpu-program-dump", "format is 'dpu-program-dump'");
  expect("/version", 2, "version 2 is not known");
  expect("/design/rows", 0, "rows = 0");
  expect("/design/intrinsic", "gem", "cannot be `gem`");
  expect("/design", 3, "`kind` must be");
  expect("/image/bytes", 16385, "go beyond the 16384");
  expect("/image/file", "../image.bin", "image.bin");
  expect("/image/address", 1, "base 1 is not");
  expect("/runs", nlohmann::json::array(), "at least one run");
  expect("/runs/1/insns/count", 21, "go beyond");
  expect("/runs/1/insns/count", uint64_t{1} << 60, "more than");
  expect("/runs/1/insns/offset", 1, "instruction 0");
  expect("/runs/1/patches/0/address", 0, "a patch of run 1");
  expect("/runs/0/spans/0/end", 21, "span 'random' of run 0");
  expect("/inputs/0/bytes", 20000, "input 'x'");
  expect("/outputs/0/bytes", 20000, "go beyond");
  expect("/outputs/0/offset", 16000, "go beyond");
  expect("/inputs/0/name", 1, "must be a text");
}

TEST_F(SpatialDumps, OtherFoldersStay) {
  fs::create_directories(folder());
  ASSERT_TRUE(write_file(path("mine.txt"), "words"));
  const testing::RandomProgram random = dumped_example();
  EXPECT_FALSE(write_dump(folder(), random.program));
  EXPECT_FALSE(write_dump((root_ / "new").string(), random.program, "too short"));
  EXPECT_FALSE(fs::exists(root_ / "new"));
  EXPECT_EQ(read_file(path("mine.txt")).value(), "words");
}

}  // namespace
}  // namespace tilewright::spatial
