#include "tilewright/accel/dpu/sim/timeline.h"

#include <gtest/gtest.h>

#include "tilewright/accel/dpu/sim/tsim.h"
#include "tilewright/accel/dpu/testing/example_layer.h"
#include "tilewright/base/file.h"

namespace tilewright::dpu {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Timeline, ExampleLayerAsAPage) {
  const Program program = testing::example_layer(3, false, true);
  dpu::Run run = program.runs[0];
  run.spans[0].name = "conv <\"1\" & pool>\n";
  const Result<LaunchReport> report =
      simulate_time(program.config, run.insns, {.record_times = true});
  ASSERT_TRUE(report);
  const std::string svg = timeline_svg(run, program.config, *report);
  // 24 rows, one LOAD of weights, three CONVs, six POOLs, twelve SAVEs; INITs take no time here.
  EXPECT_EQ(count(svg, "fill=\"#3b6fd4\""), 24u);
  EXPECT_EQ(count(svg, "fill=\"#111111\""), 1u);
  EXPECT_EQ(count(svg, "fill=\"#6a2c91\""), 3u);
  EXPECT_EQ(count(svg, "fill=\"#3aa655\""), 6u);
  EXPECT_EQ(count(svg, "fill=\"#b9a3e3\""), 12u);
  EXPECT_NE(svg.find("conv &lt;&quot;1&quot; &amp; pool&gt;?: cycles 0 to "), std::string::npos);
  // The first CONV begins when nine rows and the weights are there.
  EXPECT_NE(svg.find("cycles 8644 to 40900"), std::string::npos);
  EXPECT_EQ(count(svg, "<svg"), count(svg, "</svg>"));
}

/// Two tiles, with everything that a picture has. `actual.svg` in the working directory is what was
/// drawn: look at it before it becomes the file.
TEST(Timeline, TwoTilesLookAsInTheFile) {
  const Program program = testing::example_layer(2, true, true);
  const Result<LaunchReport> report =
      simulate_time(program.config, program.runs[0].insns, {.record_times = true});
  ASSERT_TRUE(report);
  const std::string svg = timeline_svg(program.runs[0], program.config, *report);
  const Result<std::string> file =
      read_file(TILEWRIGHT_ROOT_DIR "/src/tilewright/accel/dpu/sim/testing/timeline.svg");
  if (!file || *file != svg) {
    EXPECT_TRUE(write_file("actual.svg", svg));
  }
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(*file, svg);
}

/// A page is HTML around the drawing: what the script looks for must be inside of the drawing.
TEST(Timeline, TheScriptBeginsAtTheDrawing) {
  const Program program = testing::example_layer(1, true, true);
  const Result<LaunchReport> report =
      simulate_time(program.config, program.runs[0].insns, {.record_times = true});
  ASSERT_TRUE(report);
  const std::string svg = timeline_svg(program.runs[0], program.config, *report);
  EXPECT_EQ(svg.find("documentElement"), std::string::npos) << "that of a page is no drawing";
  EXPECT_EQ(count(svg, "id=\"all\""), 1u);
  EXPECT_EQ(svg.find("@WIDTH@"), std::string::npos);
}

TEST(Timeline, ManyInstructionsAreDrawnTogether) {
  std::vector<Insn> insns(100'000, Insn{0, 0, Nop{2}});
  insns.push_back({0, 0, End{}});
  dpu::Run run;
  run.insns = insns;
  const Config config;
  const Result<LaunchReport> report = simulate_time(config, insns, {.record_times = true});
  ASSERT_TRUE(report);
  const size_t bars = count(timeline_svg(run, config, *report), "<title>");
  EXPECT_GT(bars, 5000u);
  EXPECT_LT(bars, 20'000u);
}

TEST(Timeline, TraceHasInstructionsWaitsAndLayers) {
  const Program program = testing::example_layer(3, true, true);
  Config config = program.config;
  config.timing.lat_ddr = 200;
  const Result<LaunchReport> report =
      simulate_time(config, program.runs[0].insns, {.record_times = true});
  ASSERT_TRUE(report);
  const accel::RunTrace trace = run_trace(program.runs[0], config, *report);
  uint64_t loads = 0, end = 0, convs = 0, waits = 0, layers = 0;
  for (const accel::RunTrace::Slice& slice : trace.slices) {
    end = std::max(end, slice.end);
    loads += slice.name == "LOAD" ? slice.end - slice.begin : 0;
    convs += slice.name == "CONV";
    waits += slice.name == "wait: LOAD";
    layers += slice.kind == "layer";
  }
  EXPECT_EQ(loads, report->counters.load_beats) << "without the latency, and nobody shares";
  EXPECT_EQ(convs, 3u);
  EXPECT_GE(waits, 1u);
  EXPECT_EQ(layers, 1u);
  EXPECT_LE(end, report->cycles);
}

}  // namespace
}  // namespace tilewright::dpu
