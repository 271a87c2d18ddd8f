#include "tilewright/base/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tilewright/base/file.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;

TEST(RunTool, GivesStatusAndBothStreams) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  ASSERT_TRUE(write_file(folder.file("there"), "x"));
  const auto result =
      run_tool({"sh", "-c", "ls; echo oops >&2; exit 3"}, {.folder = folder.path()});
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->status, 3);
  EXPECT_EQ(result->output, "there\noops\n");
  EXPECT_FALSE(result->timed_out);
}

TEST(RunTool, LimitEndsTheToolAndWhatItStarted) {
  const auto result = run_tool({"sh", "-c", "sleep 30 & sleep 30"}, {.limit_seconds = 0.05});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_LT(result->seconds, 10);
}

TEST(RunTool, F7_AKilledToolIsToldWithItsMemory) {
  const auto result =
      run_tool({"sh", "-c", "head -c 50000000 /dev/zero | tail >/dev/null; kill -9 $$"});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->killed());
  EXPECT_GT(result->peak_bytes, 40'000'000);
  const auto checked = run_checked({"sh", "-c", "kill -9 $$"});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::Limit);
  EXPECT_THAT(checked.error().what, HasSubstr("'sh' was killed"));
  EXPECT_THAT(checked.error().why, HasSubstr("MiB of memory"));
  EXPECT_FALSE(run_tool({"sh", "-c", "exit 9"})->killed());
}

TEST(RunTool, InterruptEndsIt) {
  std::thread control_c([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    interrupt_requested = true;
  });
  const auto result = run_tool({"sleep", "30"});
  control_c.join();
  interrupt_requested = false;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Interrupted);
}

TEST(RunTool, SaysWhatIsMissing) {
  EXPECT_EQ(find_program("no-such-tool-here"), "");
  EXPECT_NE(find_program("sh"), "");
  const auto result = run_tool({"no-such-tool-here"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Tool);
  EXPECT_THAT(result.error().what, HasSubstr("no-such-tool-here"));
}

TEST(RunChecked, ShowsTheEndOfWhatAFailingToolPrinted) {
  const auto result = run_checked({"sh", "-c", "echo first; echo last; exit 7"});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("status 7"));
  EXPECT_THAT(result.error().why, HasSubstr("last"));
  EXPECT_TRUE(run_checked({"true"}));
}

TEST(TemporaryFolderDeathTest, ThereIsNoneOnceTheProcessEnds) {
  const auto end = [] {
    const TemporaryFolder folder = *TemporaryFolder::create();
    remove_temporary_folders();
    const bool left = std::filesystem::exists(folder.path());
    ::_exit(left ? 1 : TemporaryFolder::create() ? 2 : 0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

TEST(TemporaryFolder, GoesAlthoughSomebodyStillWritesInIt) {
  std::string path;
  std::thread writer;
  {
    const TemporaryFolder folder = *TemporaryFolder::create();
    path = folder.path();
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(write_file(folder.file(std::to_string(i)), ""));
    writer = std::thread([path] {
      for (int i = 0; i < 300 && std::filesystem::exists(path); ++i)
        (void)write_file(path + "/late" + std::to_string(i), "");
    });
  }
  writer.join();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, GoesWithItsContentsUnlessReleased) {
  std::string gone, kept;
  {
    TemporaryFolder a = *TemporaryFolder::create(), b = *TemporaryFolder::create(a.path());
    gone = a.path();
    ASSERT_TRUE(write_file(b.file("x"), "x"));
    EXPECT_TRUE(std::filesystem::exists(b.file("x")));
    TemporaryFolder c = *TemporaryFolder::create();
    kept = c.path();
    c.release();
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
  EXPECT_TRUE(std::filesystem::exists(kept));
  std::filesystem::remove_all(kept);
  EXPECT_FALSE(TemporaryFolder::create("/no/such/folder"));
}

}  // namespace
}  // namespace tilewright
