#include "tilewright/accel/spatial/footprint.h"

#include <gtest/gtest.h>

#include <set>

#include "tilewright/accel/spatial/device.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/accel/spatial/sim/testing/naive_machine.h"
#include "tilewright/accel/spatial/testing/random_insn.h"

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

TEST(SpatialTokens, MakeRandomProgramsRightWhereQueuesRunBesideEachOther) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const Design design = testing::small_design(rng);
    std::string image(testing::kRandomDram, '\0');
    for (char& byte : image) byte = static_cast<char>(rng.next());
    testing::NaiveMachine naive(design, kBase, image);
    testing::RandomInsns random(design, kBase, rng);
    std::vector<Insn> insns = random.prologue();
    for (const Insn& insn : insns) ASSERT_TRUE(naive.run(insn));
    while (insns.size() < 25) {
      const Insn insn = random.next();
      testing::NaiveMachine after = naive;
      if (!after.run(insn)) continue;
      naive = std::move(after);
      insns.push_back(insn);
    }
    Program program;
    program.design = design;
    program.base = kBase;
    program.image = image;
    program.runs = {spatial::Run{{}, with_tokens(design, insns).value(), {}}};
    // The functional simulator runs each queue as far as tokens let it.
    const auto device = make_fsim(design);
    const auto report = execute(*device, program);
    ASSERT_TRUE(report) << to_string(report.error()) << " seed " << seed;
    ASSERT_TRUE(device->read(kBase, image.data(), image.size()));
    ASSERT_TRUE(image == naive.dram) << "seed " << seed;
  }
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
