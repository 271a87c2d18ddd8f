// Studies: what is added is there, to the last bit, also when the program is killed.
#include "tilewright/codesign/sqlite/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tilewright/base/file.h"

namespace tilewright::codesign {
namespace {

using ::testing::HasSubstr;

class StudyTest : public ::testing::Test {
 protected:
  StudyTest() : path_(::testing::TempDir() + "/study-" + std::to_string(getpid()) + ".sqlite") {
    std::filesystem::remove(path_);
  }
  ~StudyTest() override { std::filesystem::remove(path_); }
  std::string path_;
};

const StudyKey kKey = {{"model", "abc"}, {"space", "edge"}};

StudyRow row(int number) {
  StudyRow made;
  made.trial.point = {number, 7};
  made.trial.outcome.objectives = {1.0 / (number + 3), 1e300};
  made.trial.outcome.violations = {-0.1};
  made.trial.seconds = 0.5;
  made.design = "rows = 8\n";
  return made;
}

TEST_F(StudyTest, KeepsRowsToTheLastBit) {
  {
    Result<Study> study = Study::open(path_, kKey);
    ASSERT_TRUE(study) << to_string(study.error());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(study->add({row(i)}));
    ASSERT_TRUE(study->add({row(1)}));  // a point counts once
  }
  const Result<Study> study = Study::open(path_, kKey);
  ASSERT_TRUE(study) << to_string(study.error());
  const auto rows = study->rows();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*rows)[i].trial.point, row(i).trial.point);
    EXPECT_EQ((*rows)[i].trial.outcome.objectives, row(i).trial.outcome.objectives);
    EXPECT_EQ((*rows)[i].trial.outcome.violations, row(i).trial.outcome.violations);
    EXPECT_EQ((*rows)[i].design, "rows = 8\n");
  }
}

TEST_F(StudyTest, NetworkFileSystemsAreRefused) {
  const auto nfs = [](const std::string&) -> int64_t { return 0x6969; };
  const Result<Study> study = Study::open(path_, kKey, nfs);
  ASSERT_FALSE(study);
  EXPECT_EQ(study.error().kind, ErrorKind::Io);
  EXPECT_THAT(study.error().what, HasSubstr("the study " + path_ + " is on a network file system"));
  EXPECT_THAT(study.error().why, HasSubstr("NFS"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(StudyTest, AnotherKeyIsRefusedWithWhatDiffers) {
  ASSERT_TRUE(Study::open(path_, kKey));
  const Result<Study> study = Study::open(path_, {{"model", "other"}, {"space", "edge"}});
  ASSERT_FALSE(study);
  EXPECT_EQ(study.error().kind, ErrorKind::Package);
  EXPECT_THAT(study.error().why, HasSubstr("model: here other, there abc"));
  EXPECT_THAT(study.error().why, ::testing::Not(HasSubstr("edge")));
}

TEST_F(StudyTest, ADesignHasARowForEachLevel) {
  Result<Study> study = Study::open(path_, kKey);
  ASSERT_TRUE(study) << to_string(study.error());
  StudyRow checked = row(1);
  checked.level = "tsim";
  checked.trial.outcome.violations = {0.25};
  ASSERT_TRUE(study->add({row(1), checked}));
  ASSERT_TRUE(study->add({checked}));
  const auto rows = study->rows();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].level, "model");
  EXPECT_EQ((*rows)[1].level, "tsim");
  EXPECT_EQ((*rows)[1].trial.point, row(1).trial.point);
  EXPECT_EQ((*rows)[1].trial.outcome.violations, checked.trial.outcome.violations);
}

TEST_F(StudyTest, DifferencesNameWhatOneSideLacks) {
  StudyKey more = kKey;
  more["warm start"] = "xyz";
  EXPECT_EQ(differences(kKey, more), "warm start: here nothing, there xyz");
  EXPECT_EQ(differences(more, kKey), "warm start: here xyz, there nothing");
  EXPECT_EQ(differences(kKey, kKey), "");
}

TEST_F(StudyTest, OtherFilesAreRefusedAndKept) {
  ASSERT_TRUE(write_file(path_, "no database at all, but a text that is long enough for a header"));
  const Result<Study> study = Study::open(path_, kKey);
  ASSERT_FALSE(study);
  EXPECT_EQ(study.error().kind, ErrorKind::Package);
  EXPECT_THAT(*read_file(path_), HasSubstr("no database"));
}

// A child adds rows until it is killed; it says each number after the row is kept.
TEST_F(StudyTest, AKilledProgramLosesNoRowThatWasAdded) {
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove(path_);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      Result<Study> study = Study::open(path_, kKey);
      for (char i = 0; study && i < 100; ++i)
        if (!study->add({row(i)}) || write(ends[1], &i, 1) != 1) break;
      _exit(0);
    }
    close(ends[1]);
    char said = -1;
    for (int i = 0; i <= 3 * round; ++i) ASSERT_EQ(read(ends[0], &said, 1), 1);
    kill(child, SIGKILL);
    while (read(ends[0], &said, 1) == 1) {
    }
    close(ends[0]);
    waitpid(child, nullptr, 0);
    const Result<Study> study = Study::open(path_, kKey);
    ASSERT_TRUE(study) << to_string(study.error());
    const auto rows = study->rows();
    ASSERT_TRUE(rows);
    EXPECT_GE(rows->size(), static_cast<size_t>(said) + 1);
    for (size_t i = 0; i < rows->size(); ++i)
      EXPECT_EQ((*rows)[i].trial.point, row(static_cast<int>(i)).trial.point);
  }
}

}  // namespace
}  // namespace tilewright::codesign
