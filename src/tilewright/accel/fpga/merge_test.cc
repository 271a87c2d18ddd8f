#include "tilewright/accel/fpga/merge.h"

#include <gtest/gtest.h>

#include <functional>

#include "tilewright/accel/fpga/testing/matmul_design.h"

namespace tilewright::fpga {
namespace {

Nest& product_of(Design& design) {
  for (Item& item : design.processes[2].items)
    if (auto* nest = std::get_if<Nest>(&item)) return *nest;
  std::abort();
}

TEST(FpgaMerge, TakesTheLargest) {
  testing::Matmul small, large;
  large.m = 20;
  large.k = 24;
  large.tk = 12;
  std::vector<Design> designs = {testing::design_of(small), testing::design_of(large)};
  product_of(designs[0]).ii = 5;
  const std::vector<Design> before = designs;
  const auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  for (size_t m = 0; m < before[0].memories.size(); ++m)
    for (const Design& one : *merged) {
      EXPECT_EQ(one.memories[m].words,
                std::max(before[0].memories[m].words, before[1].memories[m].words));
      EXPECT_EQ(problems(one), std::vector<std::string>{});
    }
  designs = *merged;
  EXPECT_EQ(product_of(designs[1]).ii, 5);
  Design own = before[1];
  EXPECT_EQ(product_of(designs[1]).extents, product_of(own).extents);
}

// -3 in 4 bits is 13, in 6 bits 61.
TEST(FpgaMerge, WidensIntegersAndTheirConstants) {
  const Number narrow{Number::Kind::Signed, 4}, wide{Number::Kind::Signed, 6};
  std::vector<Design> designs(2, testing::design_of({}));
  const Number types[] = {narrow, wide};
  const uint64_t bits[] = {13, 61};
  for (size_t i = 0; i < 2; ++i) {
    Node node;
    node.type = types[i];
    node.bits = bits[i];
    product_of(designs[i]).nodes.push_back(node);
  }
  auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  for (Design& one : *merged) {
    EXPECT_EQ(product_of(one).nodes.back().type, wide);
    EXPECT_EQ(product_of(one).nodes.back().bits, 61);
  }
}

// A shift by 7 and one by 8: numbers of the table.
TEST(FpgaMerge, ConstantsMayDiffer) {
  std::vector<Design> designs(3, testing::design_of({}));
  for (size_t i = 0; i < 3; ++i) {
    Node node;
    node.type = {Number::Kind::Unsigned, 4};
    node.bits = i == 1 ? 8 : 7;
    product_of(designs[i]).nodes.push_back(node);
  }
  auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  for (size_t i = 0; i < 3; ++i) {
    const Node node = product_of((*merged)[i]).nodes.back();
    EXPECT_TRUE(node.varies);
    EXPECT_EQ(node.bits, i == 1 ? 8 : 7);
  }
  for (size_t i = 0; i < 3; ++i) product_of(designs[i]).nodes.back().type.bits = 40;
  const auto refused = merge(designs);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, "multiply: constant: 7 and 8");
}

// What always holds is added where another design asks for more.
TEST(FpgaMerge, EvensOutConditions) {
  std::vector<Design> designs(2, testing::design_of({}));
  const Range third{{2, {1}, {0, 1}}, 5};
  product_of(designs[1]).stores[0].ranges = {third};
  const auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  Design first = (*merged)[0], second = (*merged)[1];
  EXPECT_EQ(product_of(second).stores[0].ranges, std::vector<Range>{third});
  ASSERT_EQ(product_of(first).stores[0].ranges.size(), 1);
  const Range& always = product_of(first).stores[0].ranges[0];
  EXPECT_FALSE(always.value.is_constant());  // the same wires
  EXPECT_EQ(always.value.counters, std::vector<int64_t>{0});
  EXPECT_EQ(always.extent, 1);
}

TEST(FpgaMerge, EvensOutCounters) {
  std::vector<Design> designs(2, testing::design_of({}));
  Nest& nest = product_of(designs[1]);
  const std::vector<int64_t> extents = nest.extents, word = nest.stores[0].place.word.counters;
  nest.extents.insert(nest.extents.begin(), 3);
  nest.stores[0].place.word.counters.insert(nest.stores[0].place.word.counters.begin(), 7);
  const auto merged = merge(designs);
  ASSERT_TRUE(merged) << to_string(merged.error());
  Design first = (*merged)[0];
  EXPECT_EQ(product_of(first).extents.size(), extents.size() + 1);
  EXPECT_EQ(product_of(first).extents[0], 1);
  EXPECT_EQ(product_of(first).stores[0].place.word.counters.size(), word.size() + 1);
  EXPECT_EQ(product_of(first).stores[0].place.word.counters[0], 0);
  EXPECT_EQ(problems(first), std::vector<std::string>{});
}

TEST(FpgaMerge, GroupsWhatIsAlike) {
  testing::Matmul two, four;
  four.un = 4;
  std::vector<Design> designs = {testing::design_of(two), testing::design_of(four)};
  two.k = 12;
  four.m = 5;
  designs.push_back(testing::design_of(four));
  designs.push_back(testing::design_of(two));
  for (size_t i = 0; i < designs.size(); ++i)
    designs[i].name = std::string(1, static_cast<char>('a' + i));
  const MergedDesigns merged = merge_alike(designs);
  EXPECT_EQ(merged.structure, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(merged.structures, 2);
  ASSERT_EQ(merged.differences.size(), 1);
  EXPECT_EQ(merged.differences[0], "'a' and 'b' are not one design: B: banks: 4 and 8");
  for (size_t i = 0; i < designs.size(); ++i) EXPECT_EQ(merged.designs[i].name, designs[i].name);
}

/// A difference that no table holds, and the words for it.
struct Different {
  const char* name;
  std::function<void(Design&)> change;
  const char* says;
};

class FpgaMergeRefuses : public ::testing::TestWithParam<Different> {};

TEST_P(FpgaMergeRefuses, WithTheDifference) {
  std::vector<Design> designs(2, testing::design_of({}));
  GetParam().change(designs[1]);
  const auto merged = merge(designs);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().why, GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    All, FpgaMergeRefuses,
    ::testing::Values(
        Different{"Banks", [](Design& d) { d.memories[0].banks = 4; }, "A: banks: 2 and 4"},
        Different{"Slots", [](Design& d) { d.memories[1].slots = 3; }, "B: slots: 2 and 3"},
        Different{"Beat", [](Design& d) { d.bus.beat_bytes = 16; }, "bytes of a beat: 8 and 16"},
        Different{"Loops",
                  [](Design& d) { d.processes[0].items.erase(d.processes[0].items.begin()); },
                  "read_A: loops, blocks and nests: 9 and 8"},
        Different{"Latency", [](Design& d) { product_of(d).nodes.back().latency = 9; },
                  "multiply: cycles of an operator: 1 and 9"}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tilewright::fpga
