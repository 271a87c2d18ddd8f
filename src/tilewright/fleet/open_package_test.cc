#include "tilewright/fleet/open_package.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/fleet/testing/shell_child.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// A shell as the child: `script` talks through 3.
std::unique_ptr<OpenPackage> shell(const std::string& script) {
  auto started = OpenPackage::start(
      [&](int descriptor, int, const ConfinedProcess::Prepare& prepare) {
        Confined confined;
        confined.argv = {"sh", "-c", script};
        confined.limit_seconds = 1e9;
        confined.descriptors = {descriptor};
        return ConfinedProcess::start(SandboxKind::None, std::move(confined), prepare);
      },
      [](const std::string& folder) -> Status {
        std::ofstream(folder + "/model.twm") << "package";
        return {};
      });
  EXPECT_TRUE(started) << to_string(started.error());
  return started ? *std::move(started) : nullptr;
}

OpenRun run(OpenPackage& package, double limit_s = 20, const std::function<bool()>& stop = {}) {
  auto ran = package.run({{"runs", 1}}, {"input"}, limit_s, stop);
  EXPECT_TRUE(ran) << to_string(ran.error());
  return ran ? *std::move(ran) : OpenRun();
}

TEST(OpenPackageSlow, RunsOneAfterTheOther) {
  const auto package = shell(
      "while read line <&3; do head -c 5 <&3 >got; printf '{\"ok\":true,\"asked\":%s,"
      "\"outputs\":[{\"bytes\":7},{\"bytes\":0},{\"bytes\":5}]}\\n' \"$line\" >&3; cat model.twm "
      "got >&3; "
      "done");
  for (int i = 0; i < 2; ++i) {
    const OpenRun ran = run(*package);
    ASSERT_EQ(ran.end.outcome, "ok") << ran.end.reason;
    EXPECT_EQ(ran.reply["asked"], Json::parse(R"({"runs": 1, "inputs": [5]})"));
    EXPECT_EQ(ran.outputs, (std::vector<std::string>{"package", "", "input"}));
    EXPECT_TRUE(package->alive());
  }
}

TEST(OpenPackageSlow, AnAnswerThatIsNoneEndsTheChild) {
  for (const char* answer :
       {"x\\n", "[1]\\n", "{}\\n", "{\"ok\":1}\\n", "{\"ok\":true}\\n",
        "{\"ok\":true,\"outputs\":[1]}\\n", "{\"ok\":true,\"outputs\":[{\"bytes\":-1}]}\\n",
        "{\"ok\":true,\"outputs\":[{\"bytes\":1073741825}]}\\n",
        "{\"ok\":true,\"outputs\":[{\"bytes\":1073741824},{\"bytes\":1}]}\\n",
        "{\"ok\":true,\"outputs\":[]}\\nand more"}) {
    const auto package = shell("read line <&3; printf '" + std::string(answer) +
                               "' >&3; while read line <&3; do true; done");
    const OpenRun ran = run(*package);
    EXPECT_EQ(ran.end.outcome, "invalid") << answer;
    EXPECT_FALSE(package->alive());
  }
  const auto endless = shell("read line <&3; while true; do echo -n 0123456789abcdef >&3; done");
  EXPECT_EQ(run(*endless).end.outcome, "invalid");
}

/// A shell that is given a package through its stdin, and answers through its stdout.
Result<OpenRun> streamed(const std::string& script, double limit_s = 20,
                         const std::string& package = "package") {
  const auto started = OpenPackage::start_by_stream(shell_child(script), {{"threads", 2}}, package);
  EXPECT_TRUE(started) << to_string(started.error());
  return (*started)->run({{"runs", 1}}, {"input"}, limit_s, {});
}

/// What a runner of this version says once it has a package of 7 bytes.
std::string receive() {
  return fmt::format("read line; head -c 7 >package; printf '{{\"runner\":\"{}\"}}\\n'; ",
                     program_version());
}

TEST(OpenPackageSlow, APackageComesBeforeTheFirstRequest) {
  const auto ran = streamed(receive() +
                            "read request; printf '{\"ok\":true,\"how\":%s,\"asked\":%s,"
                            "\"outputs\":[{\"bytes\":7}]}\\n' \"$line\" \"$request\"; cat package");
  ASSERT_TRUE(ran) << to_string(ran.error());
  ASSERT_EQ(ran->end.outcome, "ok") << ran->end.reason;
  EXPECT_EQ(ran->reply["how"], Json::parse(R"({"threads": 2, "package": 7})"));
  EXPECT_EQ(ran->reply["asked"], Json::parse(R"({"runs": 1, "inputs": [5]})"));
  EXPECT_EQ(ran->outputs, (std::vector<std::string>{"package"}));
}

/// Only what happens after it has arrived says anything of a package.
TEST(OpenPackageSlow, ARunnerThatDoesNotTakeThePackageIsAnErrorOfTheDevice) {
  const auto refused = [](const std::string& script, double limit_s = 20,
                          const std::string& package = "package") {
    const auto ran = streamed(script, limit_s, package);
    EXPECT_FALSE(ran) << script;
    return ran ? Error() : ran.error();
  };
  const char* down = "echo 'connect to host board: Connection refused' >&2; exit 255";
  const std::string large(8 << 20, 'x');
  for (const std::string& package : {std::string("package"), large}) {
    const Error gone = refused(down, 20, package);
    EXPECT_EQ(gone.kind, ErrorKind::Device);
    EXPECT_THAT(gone.why,
                HasSubstr("it ended with 255: connect to host board: Connection refused"));
  }
  for (const char* other :
       {"read line; printf '{\"ok\":true,\"outputs\":[]}\\n'; cat >/dev/null",
        "echo Welcome to the board; cat >/dev/null",
        "read line; printf '{\"runner\":\"0.0.0\"}\\n'; cat >/dev/null", "cat /dev/zero"})
    EXPECT_THAT(refused(other).what, HasSubstr("another version or program")) << other;
  EXPECT_EQ(refused("sleep 1000", .1, large).kind, ErrorKind::Limit);
  const auto crashed = streamed(receive() + "echo 'closed by remote host' >&2; exit 255");
  ASSERT_TRUE(crashed) << to_string(crashed.error());
  EXPECT_EQ(crashed->end.outcome, "crash");
  EXPECT_THAT(crashed->end.reason, HasSubstr("closed by remote host"));
}

TEST(OpenPackageSlow, HowItEndsIsTold) {
  const OpenRun crash = run(*shell("read line <&3; echo bad luck >&2; kill -SEGV $$"));
  EXPECT_EQ(crash.end.outcome, "crash");
  EXPECT_THAT(crash.end.reason, HasSubstr("bad luck"));
  const OpenRun silent = run(*shell("read line <&3"));
  EXPECT_EQ(silent.end.outcome, "invalid");
  EXPECT_THAT(silent.end.reason, HasSubstr("no answer"));
  const auto begin = SteadyClock::now();
  const char* deaf = "while true; do sleep 1; done";
  EXPECT_EQ(run(*shell(deaf), .1).end.outcome, "timeout");
  (void)run(*shell(deaf), 60, [] { return true; });
  EXPECT_LT(seconds_since(begin), 30);
}

}  // namespace
}  // namespace tilewright::fleet
