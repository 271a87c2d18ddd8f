// The Verilog under Verilator against the cycle simulator: what is computed, and in how many
// cycles.
#include <gtest/gtest.h>

#include "tilewright/accel/common/rtl/lint.h"
#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

using testing::Matmul;

void expect_matmul(RtlModel& model, const Matmul& shape, const MemoryTiming& memory, Rng& rng) {
  const Design design = testing::design_of(shape);
  std::vector<std::string> simulated = testing::arguments_of(shape, rng), run = simulated;
  const std::string product = testing::product_of(shape, simulated);
  RunOptions options;
  options.memory = memory;
  options.max_cycles = 1'000'000;
  const auto tsim = simulate(design, options, simulated);
  ASSERT_TRUE(tsim) << to_string(tsim.error()) << to_text(design);
  EXPECT_TRUE(simulated[2] == product) << to_text(design);
  const auto rtl = model.run(design, options, run);
  ASSERT_TRUE(rtl) << to_string(rtl.error()) << to_text(design);
  EXPECT_TRUE(run[2] == product) << to_text(design);
  EXPECT_EQ(tsim->cycles, rtl->cycles) << to_text(design);
}

Matmul odd_shape() {
  Matmul shape;
  shape.m = 6;
  shape.n = 10;
  shape.k = 14;
  return shape;
}

TEST(FpgaRtlSlow, IsLintClean) {
  const Design design = testing::design_of(odd_shape());
  for (const Numbers numbers : {Numbers::Fixed, Numbers::Table}) {
    const Status status = accel::lint_clean(kTop, verilog(design, numbers).text);
    EXPECT_TRUE(status) << to_string(status.error());
  }
}

TEST(FpgaRtlSlow, AMatmulByHand) {
  const Matmul shape = odd_shape();
  const auto model = make_rtl(testing::design_of(shape), Numbers::Fixed);
  ASSERT_TRUE(model) << to_string(model.error());
  Rng rng(1);
  expect_matmul(**model, shape, {}, rng);
}

/// A memory that is slow, fast, shared or stubborn.
MemoryTiming random_memory(Rng& rng) {
  MemoryTiming memory;
  memory.read_latency = static_cast<int32_t>(rng.between(1, 100));
  memory.write_latency = static_cast<int32_t>(rng.between(0, 60));
  memory.write_beat = static_cast<int32_t>(rng.between(0, 4));
  memory.write_gap = static_cast<int32_t>(rng.between(0, 6));
  memory.read_cost = static_cast<int32_t>(rng.between(20000, 200000));
  memory.write_cost = static_cast<int32_t>(rng.between(20000, 200000));
  memory.stall_percent = rng.chance(0.5) ? 0 : static_cast<int32_t>(rng.between(1, 60));
  memory.seed = static_cast<uint32_t>(rng.next());
  return memory;
}

/// Extents, tiles and addresses are numbers of the table: one build serves all of these.
TEST(FpgaRtlSlow, MatmulsOfManyShapesOnOneBuild) {
  Rng rng(2);
  Matmul shape = odd_shape();
  shape.un = 4;
  shape.slots = 3;
  shape.words = 256;
  shape.bus.beat_bytes = 16;
  shape.bus.burst_beats = 8;
  shape.bus.outstanding = 3;
  shape.bus.write_fifo = 5;
  shape.n = shape.tn = 8;
  const auto model = make_rtl(testing::design_of(shape), Numbers::Table);
  ASSERT_TRUE(model) << to_string(model.error());
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    shape.tm = rng.between(3, 9);
    shape.tn = 4 * rng.between(2, 5);
    shape.tk = 2 * rng.between(1, 9);
    shape.m = rng.between(1, 30);
    shape.n = 4 * rng.between(1, 12);
    shape.k = 2 * rng.between(1, 40);
    expect_matmul(**model, shape, random_memory(rng), rng);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilewright::fpga
