// The worked examples of docs/spatial-timing.md.
#include "tilewright/accel/spatial/sim/machine.h"

#include <gtest/gtest.h>

namespace tilewright::spatial {
namespace {

constexpr uint64_t kFirstBegins = 16 + 16 + 1;  // latency, beats of one instruction, the next cycle

uint64_t cycles_of(const Design& design, const std::vector<Insn>& insns) {
  const auto report = simulate(design, insns);
  EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().what);
  return report ? report->cycles : 0;
}
uint64_t alone(const Design& design, const Insn& insn) {
  return cycles_of(design, {insn}) - kFirstBegins;
}

Insn load(uint32_t bytes, uint32_t rows = 1) {
  Load out;
  out.axes[3] = {rows, 0, 0, 1000, bytes};
  out.axes[4] = {bytes, 0, 0, 1, 1};
  return {0, 0, out};
}

/// Weights of `blocks` blocks stay while `rows` rows of 16 bytes pass each.
Insn weight_stationary(uint16_t blocks, uint16_t rows) {
  Compute out;
  out.loops[0] = {blocks, true, {uint32_t{rows} * 16, 256}, 0};
  out.loops[1] = {rows, false, {16, 0}, 1};
  out.block_loops = 1;
  out.begins = true;
  out.spad = {16384, 0};
  out.row_step = 16;
  out.j = {-1, 16};
  out.k = {0, uint16_t(16 * blocks)};
  return {0, 0, out};
}

TEST(SpatialMachine, Loads) {
  const Design design;
  EXPECT_EQ(alone(design, load(64)), 33U);
  EXPECT_EQ(alone(design, load(2048 + 64)), 8U + 16 + 257 + 8 + 1);
  EXPECT_EQ(alone(design, load(56, 3)), 8U + 16 + 2 * 16 + 7 + 1);
  Insn gathered = load(64);
  std::get<Load>(gathered.work).axes[4].spad_step = 16;
  EXPECT_EQ(alone(design, gathered), 8U + 16 + 64 + 1);
}

TEST(SpatialMachine, LoadsZeros) {
  // 25 rows of zeros, a line each; then a row of 64 bytes.
  const Design design;
  Insn insn = load(64, 26);
  std::get<Load>(insn.work).axes[3].before = 25;
  EXPECT_EQ(alone(design, insn), 8U + 25 + 8 + 1);
  // Behind the data they come later.
  std::get<Load>(insn.work).axes[3] = {26, 0, 25, 1000, 64};
  EXPECT_EQ(alone(design, insn), 8U + 16 + 8 + 25 + 1);
}

TEST(SpatialMachine, Computes) {
  Design design;
  EXPECT_EQ(alone(design, weight_stationary(1, 28)), 7U + 16 + 28 + 30);
  EXPECT_EQ(alone(design, weight_stationary(3, 28)), 7U + 16 + 3 * 28 + 30);
  EXPECT_EQ(alone(design, weight_stationary(3, 8)), 7U + 16 + 2 * 16 + 8 + 30);
  design.banks = 1;  // 28 rows and 16 rows of weights, one after the other
  EXPECT_NEAR(double(alone(design, weight_stationary(3, 28))), 7 + 16 + 2 * 44 + 28 + 30, 2);
}

TEST(SpatialMachine, Stores) {
  Store store;
  store.axes[3] = {2, 100, 1, 0, 28};
  store.axes[4] = {28, 1, 1, 0, 1};
  EXPECT_EQ(alone({}, Insn{0, 0, store}), 2U + 2 * 9 + 4 * 3);
}

TEST(SpatialMachine, TokensOverlap) {
  // Two tiles with two copies: the second LOAD runs beside the first COMPUTE.
  const Design design;
  Insn first = weight_stationary(1, 400), second = first, a = load(64), b = load(2048);
  const uint8_t to_load = 1, to_compute = 2;
  a.gives = b.gives = to_compute;
  first.takes = second.takes = to_load;
  std::get<Load>(b.work).spad = 8192;
  const uint64_t both = cycles_of(design, {a, first, b, second});
  EXPECT_EQ(both, kFirstBegins + 33 + 2 * (7 + 16 + 400 + 30));
  first.gives = to_load;  // one copy: it waits
  b.takes = to_compute;
  EXPECT_EQ(cycles_of(design, {a, first, b, second}), both + 8 + 16 + 256 + 1);
}

TEST(SpatialMachine, FindsDeadlocksAndTokensLeftBehind) {
  Insn waits = load(64), gives = load(64);
  waits.takes = 2;
  const auto stuck = simulate({}, {waits});
  ASSERT_FALSE(stuck.has_value());
  EXPECT_NE(stuck.error().what.find("deadlock"), std::string::npos);
  gives.gives = 2;
  const auto left = simulate({}, {gives});
  ASSERT_FALSE(left.has_value());
  EXPECT_NE(left.error().what.find("tokens behind"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::spatial
