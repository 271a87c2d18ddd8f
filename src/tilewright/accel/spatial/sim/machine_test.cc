// The worked examples of docs/spatial-timing.md.
#include "tilewright/accel/spatial/sim/machine.h"

#include <gtest/gtest.h>

namespace tilewright::spatial {
namespace {

constexpr int64_t kFirstBegins = 16 + 16 + 1;  // latency, beats of one instruction, the next cycle

int64_t alone(const Design& design, const SimInstruction& instruction) {
  return simulate(design, {instruction}).cycles - kFirstBegins;
}

SimInstruction load(std::vector<int64_t> runs, int64_t padding = 0) {
  SimInstruction out;
  out.runs = std::move(runs);
  out.padding = padding;
  return out;
}

/// Weights of `blocks` blocks stay while `rows` rows of 16 bytes pass each.
SimInstruction weight_stationary(int64_t blocks, int64_t rows) {
  SimInstruction out;
  out.queue = Queue::Compute;
  out.stationary = true;
  out.block_loops = 1;
  out.block_rows = 16;
  out.loops = {{blocks, {0, 0}}, {rows, {16, 0}}};
  out.row_bytes = {16, 16};
  out.base = {4096, 0};
  out.fill = 30;
  return out;
}

TEST(SpatialMachine, Loads) {
  const Design design;
  EXPECT_EQ(alone(design, load({64})), 33);
  EXPECT_EQ(alone(design, load({2048 + 64})), 8 + 16 + 257 + 8 + 1);
  EXPECT_EQ(alone(design, load({56, 56, 56})), 8 + 16 + 2 * 16 + 7 + 1);
  EXPECT_EQ(alone(design, load({64}, 16 * 100)), 8 + 100 + 8 + 1);
  SimInstruction gathered = load({64});
  gathered.gathers = true;
  gathered.pitch = 16;
  EXPECT_EQ(alone(design, gathered), 8 + 16 + 64 + 1);
}

TEST(SpatialMachine, Computes) {
  Design design;
  EXPECT_EQ(alone(design, weight_stationary(1, 28)), 7 + 16 + 28 + 30);
  EXPECT_EQ(alone(design, weight_stationary(3, 28)), 7 + 16 + 3 * 28 + 30);
  EXPECT_EQ(alone(design, weight_stationary(3, 8)), 7 + 16 + 2 * 16 + 8 + 30);
  design.banks = 1;  // 28 rows and 16 rows of weights, one after the other
  EXPECT_NEAR(double(alone(design, weight_stationary(3, 28))), 7 + 16 + 2 * 44 + 28 + 30, 2);
}

TEST(SpatialMachine, Stores) {
  SimInstruction store = load({28, 28});
  store.queue = Queue::Store;
  EXPECT_EQ(alone({}, store), 2 + 2 * 9 + 4 * 3);
}

TEST(SpatialMachine, TokensOverlap) {
  // Two tiles with two copies: the second LOAD runs beside the first COMPUTE.
  const Design design;
  SimInstruction first = weight_stationary(1, 400), second = first;
  first.after = {1, 0, 0};
  second.after = {2, 0, 0};
  SimInstruction next = load({2048});
  next.address = 8192;
  const int64_t both = simulate(design, {load({64}), first, next, second}).cycles;
  EXPECT_EQ(both, kFirstBegins + 33 + 2 * (7 + 16 + 400 + 30));
  next.after = {0, 1, 0};  // one copy: it waits
  EXPECT_EQ(simulate(design, {load({64}), first, next, second}).cycles, both + 8 + 16 + 256 + 1);
}

}  // namespace
}  // namespace tilewright::spatial
