#include "tilewright/fleet/open_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tilewright/base/stopwatch.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// A shell as the child: `script` talks through 3.
std::unique_ptr<OpenPackage> shell(const std::string& script) {
  auto started = OpenPackage::start(
      [&](int descriptor, const ConfinedProcess::Prepare& prepare) {
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
