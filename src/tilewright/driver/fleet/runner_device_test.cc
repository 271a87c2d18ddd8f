#include "tilewright/driver/fleet/runner_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::driver {
namespace {

using testing::EndsWith;
using testing::StartsWith;

TEST(RunnerDevice, SshIsARunnerOnABoard) {
  const auto board = as_runner("ssh:ann@board");
  ASSERT_TRUE(board) << to_string(board.error());
  EXPECT_THAT(*board, StartsWith("runner:ssh -T -o BatchMode=yes "));
  EXPECT_THAT(*board, EndsWith(" ann@board tilewright-runner"));
  EXPECT_TRUE(leads_elsewhere(runner_command(*board)));
  for (const char* same : {"cpu", "runner:ssh board tilewright-runner", "opencl:0"})
    EXPECT_EQ(as_runner(same), same);
  for (const char* none : {"ssh:", "ssh:-oProxyCommand=reboot", "ssh:board reboot", "ssh:a\nb"})
    EXPECT_FALSE(as_runner(none)) << none;
}

TEST(RunnerDevice, OnlySshIsNotConfined) {
  for (const char* ssh : {"runner:ssh board tilewright-runner", "runner:/usr/bin/ssh board x"})
    EXPECT_TRUE(leads_elsewhere(runner_command(ssh))) << ssh;
  for (const char* here : {"runner:qemu-aarch64 ssh", "runner:ssh-agent tilewright-runner",
                           "runner:sshx", "runner:/ssh/qemu", "runner:", "runner:./myssh x"})
    EXPECT_FALSE(leads_elsewhere(runner_command(here))) << here;
}

}  // namespace
}  // namespace tilewright::driver
