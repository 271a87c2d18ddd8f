#include "tilewright/accel/spatial/footprint.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/accel/spatial/testing/naive_machine.h"
#include "tilewright/accel/spatial/testing/random_program.h"

namespace tilewright::spatial {
namespace {

constexpr int64_t kBase = 4096;
using Places = std::set<testing::NaiveMachine::Place>;

Places places(const accel::Footprint& footprint, bool write) {
  Places all;
  for (const accel::Access& access : footprint)
    for (uint32_t row = 0; access.write == write && row < access.rows; ++row)
      for (uint64_t w = 0; w < access.width; ++w)
        all.insert({access.memory, static_cast<int64_t>(access.address + row * access.pitch + w)});
  return all;
}

uint64_t rows_of(const accel::Footprint& footprint) {
  uint64_t rows = 0;
  for (const accel::Access& access : footprint) rows = std::max<uint64_t>(rows, access.rows);
  return rows;
}

/// Sums are read only where they are written, so footprints do not list those reads.
void without_sums(Places& places) {
  std::erase_if(
      places, [](const auto& place) { return place.first == static_cast<int>(ChipMemory::Sums); });
}

TEST(SpatialFootprint, CoversWhatInstructionsTouch) {
  size_t exact = 0, all = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const Design design = testing::small_design(rng);
    testing::NaiveMachine naive(design, kBase, std::string(testing::kRandomDram, '\1'));
    naive.record = true;
    testing::RandomInsns random(design, kBase, rng);
    for (int n = 0; n < 20; ++n) {
      const Insn insn = random.next();
      naive.run(insn);
      const accel::Footprint touched = footprint(design, insn);
      const Places reads = places(touched, false), writes = places(touched, true);
      if (insn.queue() == Queue::Compute) without_sums(naive.reads);
      EXPECT_TRUE(std::includes(reads.begin(), reads.end(), naive.reads.begin(), naive.reads.end()))
          << to_string(insn);
      EXPECT_TRUE(
          std::includes(writes.begin(), writes.end(), naive.writes.begin(), naive.writes.end()))
          << to_string(insn);
      EXPECT_LE(rows_of(touched), 64);
      exact += reads == naive.reads && writes == naive.writes;
      ++all;
    }
  }
  EXPECT_GT(exact * 10, all * 8) << exact << " of " << all;
}

TEST(SpatialFootprint, DenseBoxesAreOneRow) {
  Load load;
  load.dram = 4096;
  load.axes[2] = {3, 0, 0, 80, 40};
  load.axes[3] = {5, 0, 0, 16, 8};
  load.axes[4] = {16, 0, 0, 1, 1};
  load.run_axes = 3;
  load.lane_axis = 4;
  load.lanes = 8;
  load.lane_pitch = 120;
  const accel::Footprint touched = footprint({}, {0, 0, load});
  ASSERT_EQ(touched.size(), 2);
  EXPECT_EQ(touched[0].rows, 1);
  EXPECT_EQ(touched[0].width, 240);
  EXPECT_EQ(touched[1].rows, 1);
  EXPECT_EQ(touched[1].width, 240);
}

TEST(SpatialTokens, AreNoMoreThanNeeded) {
  // Two tiles in a row with two copies: only the second COMPUTE's sums wait for a STORE.
  Load load;
  load.axes[4] = {16, 0, 0, 1, 1};
  load.dram = 4096;
  Compute compute;
  compute.begins = true;
  compute.k.count = compute.j.count = 4;
  compute.row_step = 4;
  Store store;
  store.dram = 8192;
  store.axes[4] = {4, 1, 16, 1, 0};
  std::vector<Insn> insns = {{0, 0, load}, {0, 0, compute}, {0, 0, store}};
  load.spad = 16;
  compute.spad = {16, 16};
  insns.insert(insns.end(), {{0, 0, load}, {0, 0, compute}});
  const std::vector<Insn> out = with_tokens({}, insns).value();
  EXPECT_EQ(out[0].gives, 0b010);
  EXPECT_EQ(out[1].takes, 0b001);
  EXPECT_EQ(out[1].gives, 0b100);
  EXPECT_EQ(out[2].takes, 0b010);
  EXPECT_EQ(out[2].gives, 0b010);
  EXPECT_EQ(out[3].takes, 0);
  EXPECT_EQ(out[4].takes, 0b101);
  EXPECT_EQ(out[4].gives, 0);
}

TEST(SpatialTokens, NameTheInstructionThatCannotBe) {
  Load load;
  load.axes[4].count = 0;
  const auto insns = with_tokens({}, {{0, 0, Store{}}, {0, 0, load}});
  ASSERT_FALSE(insns);
  EXPECT_EQ(insns.error().place, "instruction 0");
}

}  // namespace
}  // namespace tilewright::spatial
