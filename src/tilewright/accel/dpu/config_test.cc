#include "tilewright/accel/dpu/config.h"

#include <gtest/gtest.h>

#include <limits>

#include "tilewright/base/file.h"

namespace tilewright::dpu {
namespace {

TEST(Config, FilesAreTheBuiltInOnes) {
  for (const std::string& name : builtin_configs()) {
    const auto built_in = load_config(name);
    const auto file = load_config(TILEWRIGHT_ROOT_DIR "/hw/" + name + ".toml");
    ASSERT_TRUE(built_in);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_TRUE(*built_in == *file) << name;
    EXPECT_EQ(built_in->name, name);
    EXPECT_TRUE(check(*built_in));
  }
  const Config dpu = load_config("dpu").value(), paper = load_config("dpu-paper").value();
  EXPECT_FALSE(dpu == paper);
  EXPECT_TRUE(same_hardware(dpu, paper));
  EXPECT_NEAR(dpu.peak_ops(), 4.9152e12, 1);
}

TEST(Config, RoundTripsAsToml) {
  Config config = load_config("dpu-paper").value();
  config.name = "odd \"name\" \\";
  config.clock_mhz = 299.5;
  config.pe = 3;
  config.fm_depth = {64, 100, 8192};
  config.timing.fc_factor = 2.0625;
  config.timing.stride_conflict = false;
  config.compiler.phase_deconvolution = false;
  const auto again = parse_config(to_toml(config), "text");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(*again == config);
}

TEST(Config, WhatIsAbsentKeepsItsDefault) {
  const auto config = parse_config("kind = \"dpu\"\npe = 2\n", "");
  ASSERT_TRUE(config);
  Config expected;
  expected.pe = 2;
  EXPECT_TRUE(*config == expected);
}

TEST(Config, AllProblemsWithTheirPlaces) {
  const auto config = parse_config(R"(kind = "dpu"
name = 3
pe = 9
kernel = 2
fm_depth = [1, 2]
ddr_bytes_per_cycle = 48
clock_mhz = "fast"
[timing]
queue = 0
fc_factor = 2.01
lat_conf = 5
stride_conflict = 1
[compiler]
average_pool = "sparse"
tokens = true
)",
                                   "f");
  ASSERT_FALSE(config);
  const std::string text = to_string(config.error());
  for (const char* part : {"f:2",
                           "f:3",
                           "`pe` is 9, but must be in 1..8",
                           "f:4",
                           "did you mean 'kernels'",
                           "f:5",
                           "3 integers",
                           "f:6",
                           "a power of two",
                           "f:7",
                           "f:9",
                           "`timing.queue` is 0",
                           "f:10",
                           "multiple of 1/16",
                           "f:11",
                           "did you mean 'lat_conv'",
                           "f:12",
                           "true or false",
                           "f:14",
                           "\"dense\" or \"misc\"",
                           "f:15"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(config.error().others.size(), 11u) << text;
}

TEST(Config, DepthsAndNumbersAreChecked) {
  Config config;
  config.fm_depth = {63, 64, 8193};
  config.clock_mhz = std::numeric_limits<double>::quiet_NaN();
  const Status status = check(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().others.size(), 2u) << to_string(status.error());
  EXPECT_FALSE(parse_config("fm_depth = [64, 64, 63]", ""));
  EXPECT_FALSE(parse_config("pe = [", ""));
  for (const char* text : {"[=]", "\n [[ \x01", "[.a]", "[[,", "[ #", "[\n"})
    EXPECT_FALSE(parse_config(text, ""));
}

/// Where no text in quotes and no comment is, the library for TOML does not survive all of them.
TEST(Config, CharactersBeyondAsciiAreInQuotesOrRefused) {
  const std::string omega = "\xC7\xA6";
  const auto place = [&](const std::string& text) {
    const Result<Config> config = parse_config(text, "F");
    return config ? "read" : config.error().place;
  };
  EXPECT_EQ(place("\xEF\xBB\xBFname = \"" + omega + "\" # " + omega + "\npe = 2\n"), "read");
  EXPECT_EQ(place("name = '" + omega + "'\n\"pe\" = 2\n"), "read");
  EXPECT_EQ(place("name = \"\"\"\\\"" + omega + " " + omega + "\"\"\"\"\" # " + omega), "read");
  EXPECT_EQ(place(omega), "F:1:1");
  EXPECT_EQ(place("pe = 2\n\npe" + omega + " = 3\n"), "F:3:3");
  EXPECT_EQ(place("name = \"\"" + omega), "F:1:10");
  EXPECT_EQ(place("name = \"\"\"a\"\"\"\"" + omega), "F:1:16");
}

TEST(Config, NamesHaveOneLine) {
  for (const char* text : {"name = \"\"\"\n\na\nb\"\"\"", "name = \"a\\u0007\"", "name = 3"}) {
    const Result<Config> config = parse_config(text, "F");
    ASSERT_FALSE(config) << text;
    EXPECT_NE(to_string(config.error()).find("one line of text in quotes"), std::string::npos);
  }
}

TEST(Config, UnknownNamesAreUsageErrors) {
  const auto config = load_config("dpu-papr");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::Usage);
  EXPECT_NE(config.error().fix.find("dpu-paper"), std::string::npos);
  EXPECT_EQ(load_config("./missing.toml").error().kind, ErrorKind::Io);
}

}  // namespace
}  // namespace tilewright::dpu
