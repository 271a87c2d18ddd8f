// The cells that Yosys makes of a small board, run one by one, against three loops.
#include <gtest/gtest.h>

#include "tilewright/accel/fpga/rtl/board.h"
#include "tilewright/accel/fpga/rtl/ice40.h"
#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

/// Sums of 16 bits instead of 32: the board's memories move no more at a time.
void make_half(Number& number) {
  if (number.bits == 32) number.bits = 16;
}
void make_half(std::vector<int64_t>& steps) {
  for (int64_t& step : steps) step /= 2;
}
Design in_16_bits(Design design) {
  for (Memory& memory : design.memories) make_half(memory.element);
  for (Process& process : design.processes)
    for (Item& item : process.items) {
      Nest* nest = std::get_if<Nest>(&item);
      if (nest == nullptr) continue;
      for (Node& node : nest->nodes) make_half(node.type);
      if (nest->stream.port < 0 || nest->stream.element.bits != 32) continue;
      make_half(nest->stream.element);
      make_half(nest->stream.address.loops);
      make_half(nest->stream.address.counters);
    }
  return design;
}
std::string lower_halves(const std::string& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); i += 4) out += words.substr(i, 2);
  return out;
}

/// Products have two registers behind them, of which Yosys 0.23 loses one if it may.
TEST(FpgaIce40BoardSlow, CellsMultiplyMatrices) {
  testing::Matmul shape;
  shape.m = shape.n = shape.k = 4;
  shape.tm = shape.tn = 2;
  shape.un = 1;
  shape.bus.beat_bytes = 2;
  shape.bus.outstanding = 1;
  Rng rng(5);
  std::vector<std::string> arguments = testing::arguments_of(shape, rng);
  const std::string expected = lower_halves(testing::product_of(shape, arguments));
  arguments[2].resize(expected.size());
  std::vector<int64_t> bytes;
  for (const std::string& argument : arguments)
    bytes.push_back(static_cast<int64_t>(argument.size()));
  const auto verilog = board_verilog(in_16_bits(testing::design_of(shape)), bytes);
  ASSERT_TRUE(verilog) << to_string(verilog.error());
  const auto made = synthesise_board(*verilog, 600);
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(made->cells.dsps, 2);
  const auto run = run_board(made->netlist, {false, false, true}, 100000, arguments);
  ASSERT_TRUE(run) << to_string(run.error());
  EXPECT_EQ(arguments[2], expected);
  EXPECT_GT(run->cycles, 4 * 4 * 4 / 2);
}

}  // namespace
}  // namespace tilewright::fpga
