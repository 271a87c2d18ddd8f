#include "tilewright/accel/spatial/merge.h"

#include <gtest/gtest.h>

#include "tilewright/accel/spatial/testing/naive_machine.h"
#include "tilewright/accel/spatial/testing/random_insn.h"

namespace tilewright::spatial {
namespace {

size_t axes_in_use(const auto& work) {
  size_t count = 0;
  for (const auto& axis : work.axes) count += axis.count > 1;
  return count;
}

TEST(SpatialMerge, JoinsAxesThatFollowEachOther) {
  Load load;
  load.axes[2] = {3, 1, 0, 20, 20};
  load.axes[3] = {4, 0, 0, 5, 5};
  load.axes[4] = {5, 0, 0, 1, 1};
  load.run_axes = 3;
  const Load out = merged(load);
  EXPECT_EQ(out.axes[4], (LoadAxis{60, 20, 0, 1, 1}));
  EXPECT_EQ(out.run_axes, kAxes);
  load.axes[4].before = 1;  // zeros between: rows do not follow each other
  load.axes[3].dram_step = 4;
  load.axes[2].dram_step = 16;
  EXPECT_EQ(axes_in_use(merged(load)), 2U);
  Store store;
  store.axes[3] = {3, 5, 1, 0, 5};
  store.axes[4] = {5, 1, 1, 0, 1};
  store.run_axes = 2;
  EXPECT_EQ(merged(store).axes[4], (StoreAxis{15, 1, 1, 0, 1}));
  store.axes[4].lanes = 4;  // lanes are other parts
  EXPECT_EQ(axes_in_use(merged(store)), 2U);
}

TEST(SpatialMergeSlow, RandomTransfersDoTheSame) {
  constexpr int64_t kFirstByte = 4096;
  int shorter = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const Design design = testing::small_design(rng);
    std::string image(testing::kRandomDram, '\0');
    for (char& byte : image) byte = static_cast<char>(rng.next());
    testing::NaiveMachine a(design, kFirstByte, image), b = a;
    testing::RandomInsns random(design, kFirstByte, rng);
    for (const Insn& insn : random.prologue()) ASSERT_TRUE(a.run(insn) && b.run(insn));
    for (int i = 0; i < 20; ++i) {
      const Insn insn = random.next();
      testing::NaiveMachine after = a;
      if (!after.run(insn)) continue;
      a = after;
      Insn other = insn;
      if (auto* load = std::get_if<Load>(&other.work)) *load = merged(*load);
      if (auto* store = std::get_if<Store>(&other.work)) *store = merged(*store);
      shorter += !(other == insn);
      ASSERT_TRUE(check_fields(design, other)) << to_string(insn) << "\n" << to_string(other);
      ASSERT_TRUE(b.run(other)) << to_string(other);
      ASSERT_TRUE(a.dram == b.dram) << to_string(insn) << "\n" << to_string(other);
    }
  }
  EXPECT_GT(shorter, 500);
}

}  // namespace
}  // namespace tilewright::spatial
