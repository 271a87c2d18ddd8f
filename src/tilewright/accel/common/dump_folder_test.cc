#include "tilewright/accel/common/dump_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tilewright/base/file.h"

namespace tilewright::accel {
namespace {

namespace fs = std::filesystem;

class DumpFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("dump_folder_" + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(DumpFolders, AreReplacedAsAWhole) {
  const std::string folder = (root_ / "a").string();
  ASSERT_TRUE(write_dump_folder(folder + "/", "fmt-1", {{"manifest.json", "fmt-1"}, {"x", "1"}}));
  ASSERT_TRUE(write_dump_folder(folder, "fmt-1", {{"manifest.json", "fmt-1"}, {"y", "2"}}));
  EXPECT_FALSE(fs::exists(root_ / "a" / "x"));
  EXPECT_TRUE(fs::exists(root_ / "a" / "y"));
  EXPECT_FALSE(write_dump_folder(folder, "fmt-2", {{"manifest.json", "fmt-2"}})) << "another one";
  EXPECT_FALSE(write_dump_folder(root_.string(), "fmt-1", {})) << "holds other files";
  size_t left = 0;
  for (const auto& entry : fs::directory_iterator(root_)) left += entry.exists();
  EXPECT_EQ(left, 1u) << "nothing half written";
}

TEST_F(DumpFolders, ReadOnlyWhatIsInside) {
  fs::create_directories(root_ / "a" / "sub");
  ASSERT_TRUE(write_file((root_ / "a" / "sub" / "x").string(), "12345"));
  ASSERT_TRUE(write_file((root_ / "secret").string(), "s"));
  fs::create_symlink(root_ / "secret", root_ / "a" / "link");
  fs::create_directory_symlink(root_, root_ / "a" / "up");
  DumpFolder folder((root_ / "a").string());
  const Result<const std::string*> x = folder.read("sub/x", 5);
  ASSERT_TRUE(x);
  EXPECT_EQ(**x, "12345");
  EXPECT_EQ(folder.read("sub/x", 5).value(), *x) << "read once";
  DumpFolder other((root_ / "a").string());
  EXPECT_FALSE(other.read("sub/x", 4)) << "too large";
  const std::string absolute = (root_ / "secret").string();
  for (const std::string& name :
       {std::string("../secret"), std::string("link"), std::string("up/secret"), absolute,
        std::string("a b"), std::string(""), std::string("sub"), std::string("missing")})
    EXPECT_FALSE(other.read(name, 100)) << name;
}

TEST(JsonDepth, CountsBracketsOutsideOfStrings) {
  EXPECT_EQ(json_depth("3"), 0);
  EXPECT_EQ(json_depth(R"({"a": [1, {"b": "]]]["}], "c": []})"), 3);
  EXPECT_EQ(json_depth(R"(["\"]]]", [[]]])"), 3);
}

}  // namespace
}  // namespace tilewright::accel
