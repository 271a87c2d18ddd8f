#include "tilewright/base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_->file(name); }
  std::string folder_path() const { return folder_->path(); }
  /// Names of what is in the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_->path()))
      all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
};

TEST_F(Output, ReplacesAFileAndKeepsItsPermissions) {
  ASSERT_TRUE(write_file(file("a"), "old"));
  ASSERT_EQ(::chmod(file("a").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(file("a"), "new"));
  EXPECT_EQ(*read_file(file("a")), "new");
  struct stat info{};
  ASSERT_EQ(::stat(file("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(Output, AnUnfinishedFileChangesNothing) {
  ASSERT_TRUE(write_file(file("a"), "old"));
  {
    Result<OutputFile> output = OutputFile::create(file("a"));
    ASSERT_TRUE(output);
    ASSERT_TRUE(output->append("half"));
    EXPECT_EQ(*read_file(file("a")), "old");
  }
  EXPECT_EQ(*read_file(file("a")), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(Output, FollowsLinksAlsoToFilesThatAreNotThere) {
  ASSERT_TRUE(write_file(file("a"), "old"));
  fs::create_symlink("a", file("link"));
  fs::create_symlink("later", file("dangling"));
  ASSERT_TRUE(write_file(file("link"), "new"));
  ASSERT_TRUE(write_file(file("dangling"), "made"));
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_TRUE(fs::is_symlink(file("dangling")));
  EXPECT_EQ(*read_file(file("a")), "new");
  EXPECT_EQ(*read_file(file("later")), "made");
  fs::create_symlink("circle", file("circle"));
  EXPECT_FALSE(write_file(file("circle"), "x"));
}

TEST_F(Output, WritesIntoWhatIsNoRegularFile) {
  ASSERT_TRUE(write_file("/dev/null", "gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(is_stream("/dev/null"));
  EXPECT_TRUE(is_stream("-"));
  EXPECT_FALSE(is_stream(file("a")));
  EXPECT_FALSE(write_file(folder_path(), "x"));
}

TEST_F(Output, RefusesAnInputByWhateverName) {
  ASSERT_TRUE(write_file(file("a"), "precious"));
  fs::create_symlink("a", file("link"));
  fs::create_hard_link(file("a"), file("same"));
  for (const char* name : {"a", "link", "same"}) {
    const Status status = check_output(file(name), {"", file("none"), file("a")});
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::Usage);
  }
  EXPECT_TRUE(check_output(file("b"), {file("a")}));
  EXPECT_TRUE(check_output("/dev/null", {"/dev/null"}));
  EXPECT_TRUE(check_output("", {""}));
}

TEST_F(Output, ChecksFoldersBeforehand) {
  ASSERT_TRUE(write_file(file("a"), ""));
  for (const std::string& path : {file("none/x"), file("a/x"), folder_path()}) {
    const Status status = check_output(path);
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.error().kind, ErrorKind::Io);
  }
  EXPECT_TRUE(check_output_folder(file("none/deeper")));
  EXPECT_TRUE(check_output_folder(folder_path()));
  EXPECT_FALSE(check_output_folder(file("a")));
  EXPECT_FALSE(check_output_folder(file("a/deeper")));
}

}  // namespace
}  // namespace tilewright
