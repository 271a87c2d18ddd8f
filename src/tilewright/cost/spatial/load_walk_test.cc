// LOADs of random programs, one by one, against the cycle simulator.
#include "tilewright/cost/spatial/load_walk.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/testing/cases.h"
#include "tilewright/cost/spatial/testing/program.h"

namespace tilewright::cost {
namespace {

/// Cycles of this LOAD alone, from its first request on.
int64_t simulated(const spatial::Design& design, const spatial::Load& load) {
  const auto report = spatial::simulate(design, {{0, 0, load}}, {.record_times = true});
  EXPECT_TRUE(report) << to_string(report.error());
  if (!report || report->times.empty()) return 0;
  const accel::InsnTime& time = report->times.front();
  return int64_t(time.end - time.begin) - (design.timing.load_overhead - 1);
}

/// What LOADs of the cases are; each should be there.
struct Kinds {
  int gather = 0, zeros = 0, runs = 0, biases = 0;
  void add(const spatial::Load& load) {
    gather += load.axes.back().spad_step > 1;
    for (const spatial::LoadAxis& axis : load.axes) zeros += axis.before + axis.after > 0;
    for (int axis = 0; axis < spatial::kAxes - load.run_axes; ++axis)
      runs += load.axes[size_t(axis)].there() > 1;
    biases += load.bias_words > 0;
  }
};

TEST(LoadWalk, TakesAsLongAsTheSimulatorSays) {
  CaseDraw draw(7);
  Kinds kinds;
  for (int cases = 0; cases < 60;) {
    const spatial::Design design = draw.design();
    SpatialLayer layer = draw.layer(8, design);
    layer.biased = layer.packed_tensor() >= 0 && draw.below(2);
    SpatialMapping mapping;
    if (!draw.mapping(design, layer, mapping)) continue;
    ++cases;
    int looked_at = 0;
    for (const spatial::Insn& insn : program_of(design, layer, mapping)) {
      const auto* load = std::get_if<spatial::Load>(&insn.work);
      if (load == nullptr || ++looked_at > 6) continue;
      kinds.add(*load);
      ASSERT_EQ(LoadWalk(design, *load).cycles(), simulated(design, *load))
          << to_toml(design) << to_string(insn);
    }
  }
  EXPECT_GT(kinds.gather, 20);
  EXPECT_GT(kinds.zeros, 20);
  EXPECT_GT(kinds.runs, 20);
  EXPECT_GT(kinds.biases, 20);
}

/// Rows of 9 bytes side by side, in lines of 16, through a port of 8: the example of load_walk.h.
struct RowsOfNine {
  spatial::Design design;
  spatial::Load load;
  explicit RowsOfNine(uint32_t rows) {
    design.banks = 1;
    load.axes[3] = {rows, 0, 0, 1000, 9};
    load.axes[4] = {9, 0, 0, 1, 1};
  }
};

TEST(LoadWalk, WantsAnAccessForEachLine) {
  const RowsOfNine rows(8);  // 72 bytes: five lines
  const LoadWalk walk(rows.design, rows.load);
  LoadState state = walk.at(0);
  int accesses = 0;
  for (bool ended = false; !ended;) {
    accesses += walk.wants(state);
    ended = walk.advance(state, walk.wants(state));
  }
  EXPECT_EQ(accesses, 5);
  EXPECT_EQ(state.now, walk.cycles());
}

// One line waits while the next is filled: accesses that come a cycle late cost nothing before the
// last one.
TEST(LoadWalk, GoesOnWhileALineWaits) {
  const RowsOfNine rows(400);
  const LoadWalk walk(rows.design, rows.load);
  LoadState state = walk.at(0);
  bool waited = false;
  for (bool ended = false; !ended;) {
    const bool granted = walk.wants(state) && waited;
    waited = walk.wants(state) && !granted;
    ended = walk.advance(state, granted);
    EXPECT_LE(std::abs(walk.cycles_to(state) - state.now), 1);
  }
  EXPECT_EQ(state.now, walk.cycles() + 1);
}

// States that are kept are those on the way.
TEST(LoadWalk, SaysWhereItIsAfterSoManyCycles) {
  const RowsOfNine rows(400);
  const LoadWalk walk(rows.design, rows.load);
  ASSERT_GT(walk.cycles(), 4096);
  LoadState state = walk.at(0);
  for (bool ended = false; !ended; ended = walk.advance(state, walk.wants(state))) {
    const LoadState there = walk.at(state.now);
    ASSERT_EQ(there.piece, state.piece) << state.now;
    ASSERT_EQ(there.line, state.line) << state.now;
    ASSERT_EQ(walk.cycles_to(state), state.now);
  }
}

}  // namespace
}  // namespace tilewright::cost
