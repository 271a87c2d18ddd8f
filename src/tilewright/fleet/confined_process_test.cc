#include "tilewright/fleet/confined_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "tilewright/base/stopwatch.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;

class ConfinedProcessSlow : public testing::TestWithParam<SandboxKind> {
 protected:
  void SetUp() override {
    if (const Status status = check_sandbox(GetParam()); !status)
      GTEST_SKIP() << to_string(status.error());
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0);
  }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  /// A shell without processes of its own, that has one end of a pair of sockets as 3.
  std::unique_ptr<ConfinedProcess> shell(const std::string& script) {
    Confined confined;
    confined.argv = {"sh", "-c", script};
    confined.limit_seconds = 1e9;
    confined.memory_bytes = 64 << 20;
    confined.descriptors = {ends_[1]};
    auto started = ConfinedProcess::start(GetParam(), std::move(confined));
    EXPECT_TRUE(started) << to_string(started.error());
    ::close(std::exchange(ends_[1], -1));
    return started ? *std::move(started) : nullptr;
  }
  /// Up to the end of a line, or of what is written.
  std::string heard() {
    std::string text;
    for (char c = 0; ::read(ends_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_P(ConfinedProcessSlow, TalksThroughItsDescriptors) {
  const auto process = shell("read line <&3; echo \"got $line\" >&3; exit 7");
  ASSERT_NE(process, nullptr);
  ASSERT_EQ(::write(ends_[0], "a line\n", 7), 7);
  EXPECT_EQ(heard(), "got a line");
  EXPECT_EQ(heard(), "");  // nobody else has the other end
  EXPECT_EQ(process->end(30)->status, 7);
}

/// Those of the sandbox are not for it.
TEST_P(ConfinedProcessSlow, HasNoOthers) {
  const auto process = shell(
      "for i in 4 5 6 7 8 9; do true <&$i && echo open $i >&3; done 2>/dev/null; echo end >&3");
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(heard(), "end");
}

TEST_P(ConfinedProcessSlow, EndsWhenItIsTold) {
  const auto process = shell("echo here >&3; while true; do true; done");
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(heard(), "here");
  const auto begin = SteadyClock::now();
  EXPECT_EQ(process->end(0)->status, 128 + SIGKILL);
  EXPECT_LT(seconds_since(begin), 30);
  EXPECT_EQ(heard(), "");
}

TEST_P(ConfinedProcessSlow, ItsOwnEndIsTold) {
  const auto process = shell("echo bad luck >&2; kill -SEGV $$");
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(heard(), "");
  const ToolResult result = *process->end(30);
  EXPECT_EQ(result.status, 128 + SIGSEGV);
  EXPECT_THAT(result.output, HasSubstr("bad luck"));
}

TEST_P(ConfinedProcessSlow, ItsMemoryIsLimited) {
  const auto process = shell("x=0123456789abcdef; while true; do x=$x$x; done");
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(heard(), "");
  EXPECT_NE(process->end(30)->status, 0);
}

TEST_P(ConfinedProcessSlow, WhatCannotBeStartedSaysSo) {
  Confined confined;
  confined.argv = {"no-such-program"};
  const auto started = ConfinedProcess::start(GetParam(), std::move(confined));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::Tool);
}

INSTANTIATE_TEST_SUITE_P(All, ConfinedProcessSlow,
                         testing::Values(SandboxKind::Bubblewrap, SandboxKind::Landlock,
                                         SandboxKind::None),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace tilewright::fleet
