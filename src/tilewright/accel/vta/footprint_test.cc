#include "tilewright/accel/vta/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tilewright/accel/vta/testing/hand_program.h"

namespace tilewright::vta {
namespace {

using accel::Footprint;
using namespace testing;  // NOLINT: the helpers of this layer

bool has(const Footprint& touched, Mem mem, uint64_t begin, uint64_t end, bool write) {
  return std::any_of(touched.begin(), touched.end(), [&](const accel::Access& access) {
    return access.memory == number(mem) && access.rows == 1 && access.address == begin &&
           access.address + access.width == end && access.write == write;
  });
}

/// The rows of DRAM, if there are any.
std::optional<accel::Access> dram_rows(const Footprint& touched) {
  for (const accel::Access& access : touched)
    if (access.memory == kDramMemory) return access;
  return std::nullopt;
}

const std::vector<Uop> kUops = {{10, 20, 5}, {12, 40, 6}, {11, 30, 9}};

TEST(Footprint, OfTransfers) {
  Insn insn = load(Mem::Inp, 100, 7, 14);
  auto& move = std::get<Transfer>(insn.op);
  move.y_size = 3;
  move.x_stride = 56;
  move.x_pad_left = move.x_pad_right = move.y_pad_top = 1;
  const Footprint touched = footprint({}, insn, {});
  ASSERT_EQ(touched.size(), 2u);
  EXPECT_TRUE(has(touched, Mem::Inp, 100, 100 + 16 * 4, true));
  const auto rows = dram_rows(touched);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->address, 7u * 16);
  EXPECT_EQ(rows->pitch, 56u * 16);
  EXPECT_EQ(rows->width, 14u * 16);
  EXPECT_EQ(rows->rows, 3u);
  EXPECT_FALSE(rows->write);

  const Footprint acc8 = footprint({}, load(Mem::Acc8, 3, 10, 2), {});
  EXPECT_TRUE(has(acc8, Mem::Acc, 3, 5, true));
  EXPECT_EQ(dram_rows(acc8)->address, 160u);

  const Footprint stored = footprint({}, store(3, 10, 2), {});
  EXPECT_TRUE(has(stored, Mem::Out, 3, 5, false));
  EXPECT_TRUE(has(stored, Mem::Acc, 3, 5, false));
  EXPECT_TRUE(dram_rows(stored)->write);

  EXPECT_TRUE(footprint({}, nothing(Mem::Inp), {}).empty());
  move.y_size = 0;
  EXPECT_FALSE(dram_rows(footprint({}, insn, {})));
  EXPECT_TRUE(has(footprint({}, insn, {}), Mem::Inp, 100, 116, true));
}

TEST(Footprint, OfLoops) {
  Loops loops = over_uops(0, 3);
  loops.outer = 3;
  loops.inner = 4;
  loops.dst_outer = 100;
  loops.dst_inner = 10;
  loops.src_outer = 7;
  loops.wgt_inner = 2;
  const Footprint gemmed = footprint({}, gemm(loops), kUops);
  EXPECT_TRUE(has(gemmed, Mem::Uop, 0, 3, false));
  EXPECT_TRUE(has(gemmed, Mem::Acc, 10, 12 + 200 + 30 + 1, true));
  EXPECT_TRUE(has(gemmed, Mem::Out, 10, 243, true));
  EXPECT_TRUE(has(gemmed, Mem::Inp, 20, 40 + 14 + 1, false));
  EXPECT_TRUE(has(gemmed, Mem::Wgt, 5, 9 + 6 + 1, false));
  const Footprint reset = footprint({}, gemm(loops, true), kUops);
  EXPECT_EQ(reset.size(), 3u);
  const Footprint alu = footprint({}, alu_reg(AluOp::Add, loops), kUops);
  EXPECT_TRUE(has(alu, Mem::Acc, 20, 55, false));
  EXPECT_FALSE(has(footprint({}, alu_imm(AluOp::Add, 1, loops), kUops), Mem::Acc, 20, 55, false));
  loops.inner = 0;
  EXPECT_TRUE(footprint({}, gemm(loops), kUops).empty());
  EXPECT_TRUE(footprint({}, {{}, Finish{}}, {}).empty());
}

TEST(Footprint, LargestTransferDoesNotWrap) {
  Insn insn = load(Mem::Inp, 0, 0, 65535);
  auto& move = std::get<Transfer>(insn.op);
  move.y_size = 65535;
  move.x_pad_left = move.x_pad_right = move.y_pad_top = move.y_pad_bottom = 15;
  EXPECT_TRUE(has(footprint({}, insn, {}), Mem::Inp, 0, uint64_t{65565} * 65565, true));
}

}  // namespace
}  // namespace tilewright::vta
