#include "tilewright/base/tool_version.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright {
namespace {

TEST(ToolVersion, IsFoundInWhatToolsPrint) {
  EXPECT_EQ(version_in("Verilator 5.006 2023-01-22 rev (Debian 5.006-3)"), "5.006");
  EXPECT_EQ(version_in("Icarus Verilog version 11.0 (stable) ()"), "11.0");
  EXPECT_EQ(version_in("Yosys 0.23 (git sha1 7ce5011c24b)"), "0.23");
  EXPECT_EQ(version_in("g++ 12 and 1.2.3."), "1.2.3");
  EXPECT_EQ(version_in("command not found 7"), "");
}

TEST(ToolVersion, ComparesNumberByNumber) {
  EXPECT_TRUE(at_least("5.006", "5.0"));
  EXPECT_TRUE(at_least("5.0", "5.0"));
  EXPECT_TRUE(at_least("10.1", "9.9"));
  EXPECT_TRUE(at_least("5", "5.0"));
  EXPECT_FALSE(at_least("4.038", "5.0"));
  EXPECT_FALSE(at_least("0.9", "0.20"));
}

/// The version that a program of its own tells, which does `command`.
Result<std::string> version_by(const TemporaryFolder& folder, const std::string& command,
                               double limit_seconds) {
  const std::string path = folder.file("tool");
  TW_TRY_STATUS(write_file(path, "#!/bin/sh\n" + command + "\n"));
  ::chmod(path.c_str(), 0755);
  return checked_version({path, {"--version"}, "5.0"}, limit_seconds);
}

Result<std::string> version_of(const TemporaryFolder& folder, const std::string& text) {
  return version_by(folder, "echo '" + text + "'", 60);
}

TEST(ToolVersion, F4_OldBrokenAndMissingToolsAreRefused) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  EXPECT_EQ(*version_of(*folder, "Tool 5.1"), "5.1");
  for (const char* text : {"Tool 4.038", ""}) {
    const Result<std::string> version = version_of(*folder, text);
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().kind, ErrorKind::Tool);
    EXPECT_NE(version.error().why.find("5.0 or newer"), std::string::npos);
  }
  EXPECT_FALSE(checked_version({"no-such-tool", {}, "1.0"}));
}

TEST(ToolVersion, F4_OneThatDoesNotAnswerIsNotCalledOld) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  const Result<std::string> version = version_by(*folder, "exec sleep 600", 0.1);
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().kind, ErrorKind::Tool);
  const std::string said = to_string(version.error());
  EXPECT_NE(said.find("did not tell its version within 0.1 s"), std::string::npos) << said;
  EXPECT_EQ(said.find("newer"), std::string::npos) << said;
}

}  // namespace
}  // namespace tilewright
