#include "tilewright/accel/fpga/sim/tsim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

using ::testing::HasSubstr;

/// `trips` iterations that store a constant, in a loop.
Design counting(int64_t loop, int64_t trips, int ii, int latency) {
  Nest nest;
  nest.name = "fill";
  nest.extents = {trips};
  nest.ii = ii;
  nest.nodes = {{Op::Const, {}}, {Op::Add, {}, {0, 0}, latency}};
  nest.stores = {{{0, {}, {0, {}, {1}}}, 1, {}}};
  Design design;
  design.name = "counting";
  design.memories = {{"M", {}, 1, trips}};
  design.processes = {{"fill", {LoopBegin{loop}, nest, LoopEnd{}}}};
  return design;
}

int64_t cycles_of(const Design& design) {
  std::vector<std::string> arguments;
  const Result<Report> report = simulate(design, {}, arguments);
  EXPECT_TRUE(report) << to_string(report.error());
  return report ? report->cycles : -1;
}

// docs/fpga-timing.md 1 and 2: trips * II + (last cycle that writes) + 2, and a cycle at a loop's
// end.
TEST(FpgaTsim, ANestTakesWhatTheContractSays) {
  EXPECT_EQ(cycles_of(counting(1, 10, 1, 0)), 10 + 0 + 2 + 1);
  EXPECT_EQ(cycles_of(counting(1, 10, 2, 0)), 20 + 0 + 2 + 1);
  EXPECT_EQ(cycles_of(counting(1, 10, 1, 3)), 10 + 3 + 2 + 1);
  EXPECT_EQ(cycles_of(counting(4, 10, 1, 3)), 4 * (10 + 3 + 2 + 1));
}

TEST(FpgaTsim, ADeadlockSaysWhoWaitsForWhat) {
  // The product wants a block of A that read_A, one tile short, never fills.
  Design design = testing::design_of({});
  for (Item& item : design.processes[0].items)
    if (auto* loop = std::get_if<LoopBegin>(&item); loop != nullptr && loop->extent > 1) {
      loop->extent -= 1;
      break;
    }
  Rng rng(3);
  std::vector<std::string> arguments = testing::arguments_of({}, rng);
  RunOptions options;
  options.values = false;
  const Result<Report> report = simulate(design, options, arguments);
  ASSERT_FALSE(report);
  EXPECT_THAT(to_string(report.error()), HasSubstr("deadlock"));
  EXPECT_THAT(to_string(report.error()), HasSubstr("multiply waits for"));
}

TEST(FpgaTsim, ATraceHasARowForEachProcessAndSpansThatDoNotOverlap) {
  const Design design = testing::design_of({});
  Rng rng(4);
  std::vector<std::string> arguments = testing::arguments_of({}, rng);
  RunOptions options;
  options.spans = true;
  const Result<Report> report = simulate(design, options, arguments);
  ASSERT_TRUE(report) << to_string(report.error());
  accel::RunTrace trace;
  add_to_trace(design, *report, 100, "a", trace);
  add_to_trace(design, *report, 100 + static_cast<uint64_t>(report->cycles), "b", trace);
  std::vector<std::string> rows;
  for (const accel::RunTrace::Row& row : trace.rows) rows.push_back(row.group + "." + row.name);
  std::vector<uint64_t> end(rows.size(), 100);
  bool works = false, waits = false;
  std::map<std::string, std::string> turn;
  for (const accel::RunTrace::Slice& slice : trace.slices) {
    EXPECT_GE(slice.begin, end[slice.row]);
    end[slice.row] = slice.end;
    works |= slice.name == "multiply";
    waits |= slice.kind == "stall";
    turn[slice.name] = slice.notes.empty() ? "" : std::get<std::string>(slice.notes[0].second);
  }
  EXPECT_EQ(turn["waits for input A"], "read_A");
  EXPECT_EQ(turn["waits for a slot of A"], "multiply");
  EXPECT_TRUE(turn.contains("waits for the port A"));
  EXPECT_THAT(rows, ::testing::ElementsAre("a.read_A", "a.read_B", "a.multiply", "a.write_C",
                                           "b.read_A", "b.read_B", "b.multiply", "b.write_C"));
  EXPECT_TRUE(works && waits);
  for (const ProcessReport& process : report->processes) {
    int64_t sum = 0;
    for (const int64_t cycles : process.cycles) sum += cycles;
    EXPECT_EQ(sum, report->cycles) << process.name;
  }
}

}  // namespace
}  // namespace tilewright::fpga
