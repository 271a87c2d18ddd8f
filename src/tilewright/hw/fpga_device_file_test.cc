#include "tilewright/hw/fpga_device_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/file.h"

namespace tilewright::hw {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string fpga_text(const char* name) { return to_toml(*load_fpga_device(name)); }

/// The text with its first `from` replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem_of(const std::string& text) {
  const Result<FpgaDevice> device = parse_fpga_device(text, "my.toml");
  EXPECT_FALSE(device);
  return device ? "" : to_string(device.error());
}

TEST(FpgaDeviceFile, DevicesOfTheProgram) {
  EXPECT_THAT(fpga_names(),
              ElementsAre("vu9p", "u250", "zcu104", "zynq7020", "vc707", "ice40up5k"));
  for (const FpgaDevice& device : fpga_devices()) {
    const Result<FpgaDevice> again = parse_fpga_device(to_toml(device), device.name);
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(*again, device);
    EXPECT_NE(device.find("mac", "i8", FpgaPath::Rtl), nullptr) << device.name;
    for (const FpgaOperator& row : device.operators) EXPECT_FALSE(row.source.empty());
  }
}

// The products side by side that section 9 of the paper's comparison starts from.
TEST(FpgaDeviceFile, UsableCells) {
  const FpgaDevice vu9p = *load_fpga_device("vu9p");
  const FpgaCells there = vu9p.usable_cells();
  EXPECT_EQ(there.bram18, 2723);
  EXPECT_EQ(there.dsps, 5262);
  EXPECT_EQ(static_cast<int>(there.dsps / vu9p.find("mac", "f32", FpgaPath::Hls)->dsps), 1052);
  EXPECT_EQ(vu9p.find("mac", "i8", FpgaPath::Hls)->dsps, 0.5);
  EXPECT_EQ(vu9p.find("mac", "u64", FpgaPath::Hls), nullptr);
  // DSP48E1 has one product of i8, DSP48E2 two.
  EXPECT_EQ(load_fpga_device("zynq7020")->find("mac", "i8", FpgaPath::Hls)->dsps, 1);
  EXPECT_EQ(load_fpga_device("ice40up5k")->find("mac", "f32", FpgaPath::Rtl), nullptr);
}

TEST(FpgaDeviceFile, AllProblemsAtOnceWithLines) {
  std::string text = replaced(fpga_text("zcu104"), "luts = 230400", "luts = -5");
  text = replaced(text, "lut = 0.7", "lut = 1.5");
  text = replaced(text, "outstanding = 32", "outstandin = 32");
  const std::string problem = problem_of(text);
  EXPECT_THAT(problem, HasSubstr("`luts` is -5, but must be in 1"));
  EXPECT_THAT(problem, HasSubstr("my.toml:7:8"));
  EXPECT_THAT(problem, HasSubstr("`usable.lut` is 1.5, but must be in 0..1"));
  EXPECT_THAT(problem, HasSubstr("unknown key `port.outstandin`"));
  EXPECT_THAT(problem, HasSubstr("did you mean 'outstanding'"));
  EXPECT_THAT(problem, HasSubstr("`port.outstanding` is missing"));
}

TEST(FpgaDeviceFile, WhatAFileMustSay) {
  const std::string good = fpga_text("vu9p");
  EXPECT_THAT(problem_of(replaced(good, "kind = \"fpga\"", "kind = \"gpu\"")),
              HasSubstr("must be \"fpga\""));
  EXPECT_THAT(problem_of(replaced(good, "'ultrascale'", "'ultra'")),
              HasSubstr("the families are series7, ultrascale, ice40"));
  EXPECT_THAT(problem_of(replaced(good, "source = 'assumed'\n", "")),
              HasSubstr("`usable.source` is missing"));
  EXPECT_THAT(problem_of(replaced(good, "burst_beats = 32", "burst_beats = 128")),
              HasSubstr("more than 4096 bytes"));
  EXPECT_THAT(problem_of(replaced(good, "[operator.mac.f32.hls]", "[operator.mac.float.hls]")),
              HasSubstr("there is no type 'float'"));
  EXPECT_THAT(problem_of(replaced(good, "[operator.mac.f32.hls]", "[operator.mac.f32.c]")),
              HasSubstr("path hls or rtl"));
  EXPECT_THAT(problem_of(replaced(good, "dsps = 5\n", "dsps = 50000\n")),
              HasSubstr("takes 50000 DSPs of 5262 usable"));
  EXPECT_THAT(problem_of("kind = \"fpga\""), HasSubstr("the table `[memory]` is missing"));
}

TEST(FpgaDeviceFile, UnknownNamesGetTheNearest) {
  const Result<FpgaDevice> device = load_fpga_device("vu9");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::Usage);
  EXPECT_THAT(to_string(device.error()), HasSubstr("did you mean 'vu9p'"));
  EXPECT_EQ(load_fpga_device("missing.toml").error().kind, ErrorKind::Io);
}

}  // namespace
}  // namespace tilewright::hw
