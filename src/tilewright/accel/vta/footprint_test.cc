#include "tilewright/accel/vta/footprint.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/accel/vta/testing/hand_program.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta {
namespace {

using namespace testing;  // NOLINT: the helpers of this layer

bool has(const Footprint& touched, Mem mem, uint32_t begin, uint32_t end, bool write) {
  for (const SramRange& range : touched.sram)
    if (range.mem == mem && range.begin == begin && range.end == end && range.write == write)
      return true;
  return false;
}

const std::vector<Uop> kUops = {{10, 20, 5}, {12, 40, 6}, {11, 30, 9}};

TEST(Footprint, OfTransfers) {
  Insn insn = load(Mem::Inp, 100, 7, 14);
  auto& move = std::get<Transfer>(insn.op);
  move.y_size = 3;
  move.x_stride = 56;
  move.x_pad_left = move.x_pad_right = move.y_pad_top = 1;
  const Footprint touched = footprint({}, insn, {});
  ASSERT_EQ(touched.sram.size(), 1u);
  EXPECT_TRUE(has(touched, Mem::Inp, 100, 100 + 16 * 4, true));
  ASSERT_EQ(touched.dram.size(), 1u);
  EXPECT_EQ(touched.dram[0].address, 7u * 16);
  EXPECT_EQ(touched.dram[0].pitch, 56u * 16);
  EXPECT_EQ(touched.dram[0].width, 14u * 16);
  EXPECT_EQ(touched.dram[0].rows, 3u);
  EXPECT_FALSE(touched.dram[0].write);

  const Footprint acc8 = footprint({}, load(Mem::Acc8, 3, 10, 2), {});
  EXPECT_TRUE(has(acc8, Mem::Acc, 3, 5, true));
  EXPECT_EQ(acc8.dram[0].address, 160u);

  const Footprint stored = footprint({}, store(3, 10, 2), {});
  EXPECT_TRUE(has(stored, Mem::Out, 3, 5, false));
  EXPECT_TRUE(has(stored, Mem::Acc, 3, 5, false));
  EXPECT_TRUE(stored.dram[0].write);

  EXPECT_TRUE(footprint({}, nothing(Mem::Inp), {}).sram.empty());
  move.y_size = 0;
  EXPECT_TRUE(footprint({}, insn, {}).dram.empty());
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
  EXPECT_EQ(reset.sram.size(), 3u);
  const Footprint alu = footprint({}, alu_reg(AluOp::Add, loops), kUops);
  EXPECT_TRUE(has(alu, Mem::Acc, 20, 55, false));
  EXPECT_FALSE(has(footprint({}, alu_imm(AluOp::Add, 1, loops), kUops), Mem::Acc, 20, 55, false));
  loops.inner = 0;
  EXPECT_TRUE(footprint({}, gemm(loops), kUops).sram.empty());
  EXPECT_TRUE(footprint({}, {{}, Finish{}}, {}).sram.empty());
}

TEST(Footprint, LargestTransferDoesNotWrap) {
  Insn insn = load(Mem::Inp, 0, 0, 65535);
  auto& move = std::get<Transfer>(insn.op);
  move.y_size = 65535;
  move.x_pad_left = move.x_pad_right = move.y_pad_top = move.y_pad_bottom = 15;
  EXPECT_EQ(footprint({}, insn, {}).sram[0].end, 0xffffffffu);
}

TEST(Conflict, OfSram) {
  const SramRange a = {Mem::Inp, 10, 20, true};
  EXPECT_TRUE(conflict(a, {Mem::Inp, 19, 25, false}));
  EXPECT_FALSE(conflict(a, {Mem::Inp, 20, 25, true}));
  EXPECT_FALSE(conflict(a, {Mem::Wgt, 10, 20, true}));
  EXPECT_FALSE(conflict({Mem::Inp, 10, 20, false}, {Mem::Inp, 10, 20, false}));
}

std::set<uint64_t> bytes(const DramRows& rows) {
  std::set<uint64_t> all;
  for (uint32_t r = 0; r < rows.rows; ++r)
    for (uint64_t b = 0; b < rows.width; ++b) all.insert(rows.address + r * rows.pitch + b);
  return all;
}

TEST(Conflict, OfDramIsExact) {
  Rng rng(1);
  int conflicts = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto rows = [&] {
      return DramRows{static_cast<uint64_t>(rng.below(60)), static_cast<uint64_t>(rng.below(12)),
                      static_cast<uint64_t>(rng.below(6)), static_cast<uint32_t>(rng.below(6)),
                      rng.chance(0.5)};
    };
    const DramRows a = rows(), b = rows();
    bool common = false;
    const std::set<uint64_t> other = bytes(b);
    for (const uint64_t byte : bytes(a)) common = common || other.count(byte) != 0;
    EXPECT_EQ(conflict(a, b), common && (a.write || b.write));
    conflicts += conflict(a, b);
  }
  EXPECT_GT(conflicts, 1000);
}

}  // namespace
}  // namespace tilewright::vta
