#include "tilewright/driver/console.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tilewright/base/process.h"

namespace tilewright::driver {
namespace {

/// Work that asks nobody whether to go on, with a temporary folder below `parent`.
[[noreturn]] void work_on_and_on(const std::string& parent) {
  install_interrupt_handler();
  const PromptEnd prompt;
  const Result<TemporaryFolder> folder = TemporaryFolder::create(parent);
  std::raise(SIGINT);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  std::_Exit(0);
}

TEST(PromptEnd, EndsWorkThatAsksNobody) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const TemporaryFolder parent = *TemporaryFolder::create();
  EXPECT_EXIT(work_on_and_on(parent.path()), testing::ExitedWithCode(130), "error: interrupted");
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
}

TEST(PromptEnd, LetsWorkStopInOrder) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto stop = [] {
    install_interrupt_handler();
    {
      const PromptEnd prompt;
      std::raise(SIGINT);
    }
    const PromptEnd late;  // what is done in spite of Ctrl-C
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    std::_Exit(7);
  };
  EXPECT_EXIT(stop(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tilewright::driver
