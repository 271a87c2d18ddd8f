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

/// A program of its own that prints `text`.
Result<std::string> version_of(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder.file("tool");
  TW_TRY_STATUS(write_file(path, "#!/bin/sh\necho '" + text + "'\n"));
  ::chmod(path.c_str(), 0755);
  return checked_version({path, {"--version"}, "5.0"});
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

}  // namespace
}  // namespace tilewright
