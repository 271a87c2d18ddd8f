#include "tilewright/fleet/measure/runner_door.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/fleet/testing/shell_child.h"

namespace tilewright::fleet {
namespace {

using testing::HasSubstr;

/// Takes a package of 3 bytes, then answers each request with its own process.
std::string serving() {
  return fmt::format(
      "read how; head -c 3 >/dev/null; printf '{{\"runner\":\"{}\"}}\\n'; while read line; do "
      "printf '{{\"ok\":true,\"pid\":%d,\"outputs\":[]}}\\n' $$; done",
      program_version());
}

nlohmann::json asked(DoorRunner& runner) {
  const auto answer = runner.link.ask({{"runs", 1}}, {}, 20, {});
  return answer ? answer->reply : nlohmann::json();
}

TEST(RunnerDoor, StartsOneForEachThatIsAskedFor) {
  auto door = RunnerDoor::create(shell_child(serving()));
  ASSERT_TRUE(door) << to_string(door.error());
  std::vector<DoorRunner> runners;
  std::vector<pid_t> pids;
  for (int i = 0; i < 3; ++i) {
    auto runner = ask_for_runner((*door)->there());
    ASSERT_TRUE(runner) << to_string(runner.error());
    runner->link.give({}, "abc");
    runners.push_back(*std::move(runner));
  }
  for (int turn = 0; turn < 2; ++turn)
    for (DoorRunner& runner : runners) {
      const nlohmann::json reply = asked(runner);
      ASSERT_TRUE(reply.is_object());
      pids.push_back(reply.at("pid"));
    }
  EXPECT_EQ(pids[0], pids[3]);
  EXPECT_NE(pids[0], pids[1]);
  ASSERT_EQ(::kill(pids[1], SIGSEGV), 0);
  EXPECT_TRUE(asked(runners[1]).is_null());
  EXPECT_THAT(ask_how_it_ended((*door)->there(), runners[1].id), HasSubstr("signal 11"));
  EXPECT_THAT(ask_how_it_ended((*door)->there(), 77), HasSubstr("not known"));
  EXPECT_TRUE(asked(runners[0]).is_object());
  door->reset();
  for (const size_t ended : {0, 2}) EXPECT_NE(::kill(pids[ended], 0), 0) << "ends with the door";
}

TEST(RunnerDoor, TellsWhyThereIsNone) {
  auto door = RunnerDoor::create(
      [](int, int, const ConfinedProcess::Prepare&) -> Result<std::unique_ptr<ConfinedProcess>> {
        return fail(ErrorKind::Tool, "no such emulator");
      });
  ASSERT_TRUE(door);
  EXPECT_THAT(ask_for_runner((*door)->there()).error().why, HasSubstr("no such emulator"));
  EXPECT_THAT(ask_for_runner(-1).error().why, HasSubstr("does not answer"));
}

TEST(RunnerDoor, RunsNoMoreThanAFewAtOnce) {
  auto door = RunnerDoor::create(shell_child(serving()));
  ASSERT_TRUE(door);
  std::vector<DoorRunner> runners;
  for (int i = 0; i < 10; ++i) {
    runners.push_back(*ask_for_runner((*door)->there()));
    runners.back().link.give({}, "abc");
  }
  EXPECT_TRUE(asked(runners[0]).is_null()) << "the oldest has ended";
  EXPECT_TRUE(asked(runners[1]).is_null());
  EXPECT_TRUE(asked(runners[2]).is_object());
  EXPECT_TRUE(asked(runners[9]).is_object());
}

}  // namespace
}  // namespace tilewright::fleet
