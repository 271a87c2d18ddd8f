#include "tilewright/accel/common/rtl/synth.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::accel {
namespace {

// Three counters of 8 bits beside a memory with two write ports, which no block RAM has.
constexpr const char* kDesign = R"v(
module counter #(parameter WIDTH = 8) (input clk, output reg [WIDTH-1:0] n);
  always @(posedge clk) n <= n + 1;
endmodule

module top (input clk, input [7:0] a, input [7:0] b, output [31:0] out, output [23:0] counts);
  reg [31:0] words[0:1023];
  assign out = words[{2'd0, a}] ^ words[{2'd1, b}];
  always @(posedge clk) begin
    words[{2'd2, a}] <= {counts, a};
    words[{2'd3, b}] <= {counts, b};
  end
  genvar g;
  generate
    for (g = 0; g < 3; g = g + 1) begin : each
      counter #(.WIDTH(8)) one (.clk(clk), .n(counts[g*8+:8]));
    end
  endgenerate
endmodule
)v";

class Synth : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(find_program("yosys").empty()) << "scripts/setup installs it";
    ::setenv("TILEWRIGHT_CACHE_DIR", cache_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TILEWRIGHT_CACHE_DIR"); }
  TemporaryFolder cache_ = *TemporaryFolder::create();
};

TEST_F(Synth, ModulesAreSynthesisedOnceAndCountedAsOftenAsTheyOccur) {
  const SynthesisTask task = {.top = "top", .verilog = kDesign, .boxed = {"top"}, .library = {}};
  const Result<Synthesis> done = synthesise(task);
  ASSERT_TRUE(done) << to_string(done.error());
  ASSERT_EQ(done->modules.size(), 2u);
  EXPECT_EQ(done->modules[0].name, "counter");
  EXPECT_EQ(done->modules[0].copies, 3);
  EXPECT_EQ(done->modules[0].cells.ff, 8);
  EXPECT_EQ(done->cells().ff, 24);
  ASSERT_EQ(done->modules[1].memories.size(), 1u);
  const MemoryBox& box = done->modules[1].memories[0];
  EXPECT_EQ(box.size, 1024);
  EXPECT_EQ(box.width, 32);
  EXPECT_EQ(box.reads, 2);
  EXPECT_EQ(box.writes, 2);
  EXPECT_EQ(done->cells().bram18, 2);  // 2 KiB for each write port
  EXPECT_EQ(done->reused, 0);

  // Another top around the same counter: only the top is new.
  SynthesisTask other = task;
  other.verilog.replace(other.verilog.find("g < 3"), 5, "g < 2");
  const Result<Synthesis> again = synthesise(other);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->reused, 1);
  EXPECT_EQ(again->cells().ff, 16);
  const Result<Synthesis> same = synthesise(other);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->reused, 2);
  EXPECT_EQ(same->cells().lut, again->cells().lut);
}

TEST_F(Synth, CellsOfALibraryHaveTheirArea) {
  const std::string library = "/usr/share/qflow/tech/osu018/osu018_stdcells.lib";
  ASSERT_TRUE(std::filesystem::exists(library)) << "scripts/setup installs qflow-tech-osu018";
  const Result<Synthesis> done =
      synthesise({.top = "top",
                  .verilog = "module top (input clk, input a, output reg q);\n"
                             "  always @(posedge clk) q <= !a;\nendmodule\n",
                  .boxed = {},
                  .library = library});
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(done->um2(), 16 + 96);  // INVX1, DFFPOSX1
}

TEST_F(Synth, ErrorsHaveTheLastLinesOfYosys) {
  const Result<Synthesis> done = synthesise(
      {.top = "top", .verilog = "module top; nonsense endmodule\n", .boxed = {}, .library = {}});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::Tool);
  EXPECT_NE(to_string(done.error()).find("syntax error"), std::string::npos);
}

TEST(SynthReport, WideLutRamsTakeSeveralLuts) {
  const ModuleReport report = read_report(
      "   Number of cells:  9\n     LUT6   3\n     RAM64M  2\n     SRL16E 1\n     RAMB36E1  2\n"
      "     RAMB18E1 1\n     FDRE  7\n     DSP48E1 4\n     \\m3  9\n"
      "  cell \\tilewright_memory \\memory\n    parameter \\ABITS 4\n    parameter \\SIZE 16\n"
      "    parameter signed \\WIDTH 8\n    parameter \\WRITES 1\n    parameter \\READS 2\n");
  EXPECT_EQ(report.cells.lut, 3 + 8 + 1 + 4);  // 128 bits of memory are four LUTs
  EXPECT_EQ(report.cells.ff, 7);
  EXPECT_EQ(report.cells.dsp, 4);
  EXPECT_EQ(report.cells.bram18, 5);
  ASSERT_EQ(report.memories.size(), 1u);
  EXPECT_EQ(report.memories[0].reads, 2);
}

}  // namespace
}  // namespace tilewright::accel
