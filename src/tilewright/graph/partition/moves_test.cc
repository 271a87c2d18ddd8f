#include "tilewright/graph/partition/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"

namespace tilewright::graph {
namespace {

/// The move of the last node of a graph.
std::optional<BlockMove> move_of(Builder& b, ValueId y) {
  b.output(y, "y");
  const Result<Graph> graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return block_move(*graph, graph->nodes.back());
}

TEST(BlockMove, ConcatOfChannelBlocksIsOneRunPerInput) {
  Builder b("net");
  const ValueId x = b.input("x", DType::I8, {1, 2, 3, 5, 1, 4});
  const ValueId z = b.input("z", DType::I8, {1, 7, 3, 5, 1, 4});
  const auto move = move_of(b, b.node("Concat", {x, z}, {{"axis", int64_t{1}}}));
  ASSERT_TRUE(move);
  EXPECT_TRUE(move->gathers);
  ASSERT_EQ(move->parts.size(), 2u);
  EXPECT_EQ(move->parts[0].offset, 0);
  EXPECT_EQ(move->parts[1].value, z);
  EXPECT_EQ(move->parts[1].offset, 2 * 3 * 5 * 4);
}

TEST(BlockMove, SliceOfChannelBlocksIsAView) {
  Builder b("net");
  const ValueId x = b.input("x", DType::I8, {1, 6, 3, 5, 1, 4});
  const auto move = move_of(b, b.node("Slice", {x, b.ints({2}), b.ints({5}), b.ints({1})}));
  ASSERT_TRUE(move);
  EXPECT_FALSE(move->gathers);
  EXPECT_EQ(move->whole, x);
  EXPECT_EQ(move->parts[0].offset, 2 * 3 * 5 * 4);
}

TEST(BlockMove, OthersAreNone) {
  const auto concat = [](const Shape& shape, int64_t axis, DType dtype) {
    Builder b("net");
    const ValueId x = b.input("x", dtype, shape);
    return move_of(b, b.node("Concat", {x, b.node("Identity", {x})}, {{"axis", axis}})).has_value();
  };
  EXPECT_TRUE(concat({1, 2, 3, 5, 1, 4}, 1, DType::I8));
  EXPECT_FALSE(concat({2, 2, 3, 5, 1, 4}, 1, DType::I8));   // two images: not one run
  EXPECT_FALSE(concat({1, 2, 3, 5, 1, 4}, 2, DType::I8));   // rows
  EXPECT_FALSE(concat({1, 2, 3, 5, 1, 4}, 1, DType::I32));  // sums
  EXPECT_FALSE(concat({1, 2, 3, 5}, 1, DType::I8));         // no tiles
}

}  // namespace
}  // namespace tilewright::graph
