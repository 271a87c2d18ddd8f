// What is read out of the reports of Yosys and nextpnr, and which designs a board refuses.
#include "tilewright/accel/fpga/rtl/ice40.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/accel/fpga/rtl/board.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

using ::testing::HasSubstr;

// Yosys 0.23, of examples/06_conv_int8.tw.
constexpr const char* kYosysStat = R"(
=== ice40_top ===

   Number of wires:               2978
   Number of wire bits:          17206
   Number of cells:               5172
     SB_CARRY                      654
     SB_DFF                       1059
     SB_DFFE                       233
     SB_DFFESR                     384
     SB_DFFESS                      22
     SB_DFFSR                       31
     SB_DFFSS                       47
     SB_LUT4                      2708
     SB_MAC16                        8
     SB_RAM40_4K                    22
     SB_SPRAM256KA                   4
)";

// nextpnr-ice40 0.4, of the same, without its critical paths.
constexpr const char* kNextpnrReport = R"({
  "critical_paths": [],
  "fmax": {"clk$SB_IO_IN_$glb_clk": {"achieved": 34.54350662231445, "constraint": 24}},
  "utilization": {"ICESTORM_DSP": {"available": 8, "used": 8},
                  "ICESTORM_LC": {"available": 5280, "used": 3450},
                  "ICESTORM_RAM": {"available": 30, "used": 22}}})";

TEST(FpgaIce40, CellsOfYosys) {
  EXPECT_EQ(cells_of_stat(kYosysStat), (Ice40Cells{2708, 1776, 654, 8, 22, 4}));
  EXPECT_EQ(cells_of_stat("nothing"), Ice40Cells{});
}

TEST(FpgaIce40, WhatDoesNotFitIsNamed) {
  EXPECT_TRUE(check_cells(cells_of_stat(kYosysStat)));
  const auto why = [](const Ice40Cells& cells) {
    const Status status = check_cells(cells);
    return status ? std::string("it fits") : to_string(status.error());
  };
  EXPECT_THAT(why({5281, 0, 0, 0, 0, 0}), HasSubstr("LUTs: needs 5281 of 5280"));
  EXPECT_THAT(why({0, 0, 0, 9, 0, 0}), HasSubstr("DSPs (SB_MAC16): needs 9 of 8"));
  EXPECT_THAT(why({0, 0, 0, 0, 31, 0}), HasSubstr("needs 31 of 30"));
}

TEST(FpgaIce40, ReportOfNextpnr) {
  const auto report = read_route_report(kNextpnrReport);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_DOUBLE_EQ(report->mhz, 34.54350662231445);
  ASSERT_EQ(report->places.size(), 3);
  EXPECT_EQ(report->places[1].kind, "ICESTORM_LC");
  EXPECT_EQ(report->places[1].used, 3450);
  EXPECT_EQ(report->places[1].there, 5280);
}

TEST(FpgaIce40, BrokenReports) {
  for (const char* broken : {"", "[]", "{", "{\"fmax\": {}}", "{\"fmax\": {\"clk\": 3}}",
                             "{\"fmax\": {\"clk\": {\"achieved\": \"fast\"}}}"}) {
    const auto report = read_route_report(broken);
    ASSERT_FALSE(report) << broken;
    EXPECT_EQ(report.error().kind, ErrorKind::Tool) << broken;
  }
}

TEST(FpgaIce40, BoardsThatCannotBe) {
  testing::Matmul shape;
  Design design = testing::design_of(shape);
  const auto made = [&](const std::vector<int64_t>& bytes) {
    const auto text = board_verilog(design, bytes);
    return text ? std::string("made") : to_string(text.error());
  };
  EXPECT_THAT(made({8, 8, 8}), HasSubstr("move 2 bytes, one burst at a time"));
  design.arguments = 5;
  design.bus.outstanding = 1;
  design.bus.beat_bytes = 8;
  EXPECT_THAT(made({8, 8, 8}), HasSubstr("ports of 8 bytes"));
}

}  // namespace
}  // namespace tilewright::fpga
