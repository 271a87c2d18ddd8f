// Convolutions with the copies that bring values into channel blocks and out of them, as one
// kernel, compute what their tensor form does.
#include "tilewright/rules/cpu/blocking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/strips.h"
#include "tilewright/rules/cpu/testing/chains.h"

namespace tilewright::rules {
namespace {

using graph::Builder;
using graph::ValueId;

constexpr int64_t kBlock = 4;  // channels: the lanes of the target

struct Layer {
  bool depthwise = true, before = true, after = true;  ///< copies around it
  Shape spatial = {13, 14};
  int64_t batch = 1, channels = 12, filters = 8;
  int64_t kernel = 3, stride = 1, pad = 1;
  bool bias = true, leaky = false, residual = false;
};

/// [ToBlocked], convolution, [LeakyRelu], [Add], [FromBlocked].
graph::Graph graph_of(const Layer& c) {
  Rng rng(3);
  Builder b("layer");
  const int64_t blocks = (c.channels + kBlock - 1) / kBlock;
  const int64_t filters = c.depthwise ? c.channels : c.filters;
  const int64_t rows = (filters + kBlock - 1) / kBlock;
  const size_t rank = c.spatial.size();
  Shape shape = {c.batch, c.before ? c.channels : blocks};
  shape.insert(shape.end(), c.spatial.begin(), c.spatial.end());
  if (!c.before) shape.push_back(kBlock);
  ValueId v = b.input("x", DType::F32, shape);
  if (c.before) v = b.node("ToBlocked", {v}, {{"block", kBlock}}, "", "tilewright");
  Shape weight = c.depthwise ? Shape{rows} : Shape{rows, blocks};
  weight.insert(weight.end(), rank, c.kernel);
  if (!c.depthwise) weight.push_back(kBlock);
  weight.push_back(kBlock);
  std::vector<ValueId> inputs = {v, b.constant("w", small_integers(rng, weight))};
  if (c.bias) inputs.push_back(b.constant("bias", small_integers(rng, {rows * kBlock})));
  const ValueId made = b.node(c.depthwise ? "DepthwiseConvBlocked" : "ConvBlocked", inputs,
                              {{"pads", std::vector<int64_t>(2 * rank, c.pad)},
                               {"strides", std::vector<int64_t>(rank, c.stride)}},
                              "", "tilewright");
  ValueId y = c.leaky ? b.node("LeakyRelu", {made}) : made;
  if (c.residual) y = b.node("Add", {y, v});
  if (c.after) y = b.node("FromBlocked", {y}, {{"channels", filters}}, "", "tilewright");
  b.output(y, "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

class Layers : public testing::TestWithParam<Layer> {};

TEST_P(Layers, AreOneNestThatComputesWhatTheTensorFormDoes) {
  const Func func = joined(graph_of(GetParam()));
  EXPECT_TRUE(worth_strips(func, small_target(), 2));
  const Func scheduled = scheduled_and_checked(func, GetParam().leaky ? 1e-6 : 0);
  // A sum over channels may read an operand that was padded as a whole.
  EXPECT_LE(nests(scheduled), GetParam().depthwise ? 1 : 2) << print(scheduled);
}

INSTANTIATE_TEST_SUITE_P(
    Depthwise, Layers,
    testing::Values(Layer{}, Layer{.after = false}, Layer{.before = false},
                    Layer{.spatial = {7, 7}, .bias = false}, Layer{.spatial = {12, 9}, .stride = 2},
                    Layer{.spatial = {16, 21}, .batch = 2, .kernel = 5, .pad = 2},
                    Layer{.spatial = {14, 14}, .pad = 0, .leaky = true}, Layer{.spatial = {17, 3}},
                    Layer{.spatial = {24, 5}, .channels = 4},
                    Layer{.after = false, .spatial = {16, 9}, .stride = 2},
                    Layer{.after = false, .spatial = {12, 9}, .batch = 2},
                    Layer{.spatial = {16, 13}, .kernel = 7, .pad = 3}, Layer{.spatial = {29}},
                    Layer{.spatial = {37, 13}, .kernel = 7, .pad = 3},
                    Layer{.spatial = {6, 5, 7}}));

// The last block has channels that do not exist.
INSTANTIATE_TEST_SUITE_P(
    FilledUp, Layers,
    testing::Values(Layer{.channels = 10}, Layer{.after = false, .channels = 10},
                    Layer{.before = false, .channels = 10},
                    Layer{.spatial = {12, 9}, .channels = 7, .stride = 2},
                    Layer{.spatial = {24, 5}, .channels = 3},
                    Layer{.spatial = {16, 13}, .batch = 2, .channels = 6, .kernel = 7, .pad = 3}));

INSTANTIATE_TEST_SUITE_P(
    Dense, Layers,
    testing::Values(
        Layer{.depthwise = false, .before = false},
        Layer{.depthwise = false, .before = false, .bias = false},
        Layer{.depthwise = false,
              .before = false,
              .spatial = {7, 7},
              .kernel = 1,
              .pad = 0,
              .leaky = true},
        Layer{.depthwise = false, .before = false, .spatial = {9, 15}, .stride = 2},
        Layer{.depthwise = false, .before = false, .spatial = {5, 30}, .batch = 2, .filters = 16},
        Layer{.depthwise = false,
              .before = false,
              .spatial = {8, 8},
              .filters = 12,
              .bias = false,
              .residual = true}));

TEST(Blocking, StripsAreCopiedWhereTheWindowReadsThem) {
  hw::CpuTarget target = small_target();
  const Func func = joined(graph_of({.spatial = {24, 18}, .channels = 4}));
  const auto scheduled = schedule::replay(func, default_trace(func, target, 2));
  ASSERT_TRUE(scheduled);
  EXPECT_TRUE(is_inside(*scheduled, "to_blocked", "conv")) << print(*scheduled);
  // One channel block feeds two threads only in strips.
  EXPECT_EQ(collect_blocks(*scheduled).front().extents.front() % 2, 0) << print(*scheduled);
}

/// A height that only 1 divides: single rows would be copied once for each tap.
TEST(Blocking, TheLastStripMayBeShorter) {
  hw::CpuTarget target = small_target();
  target.l2_bytes = 4 * 8 * 18 * 4 * 4;  // of a channel block, 16 rows of 18 elements
  const Func func = joined(graph_of({.spatial = {29, 18}, .channels = 4}));
  const auto scheduled = schedule::replay(func, default_trace(func, target, 1));
  ASSERT_TRUE(scheduled);
  const std::vector<BlockFacts> blocks = collect_blocks(*scheduled);
  const BlockFacts* copy = find_block(blocks, "to_blocked");
  ASSERT_NE(copy, nullptr) << print(*scheduled);
  int64_t copied = 1;  // elements, those that two strips read twice
  for (const int64_t extent : copy->extents) copied *= extent;
  EXPECT_LT(copied, 2 * 29 * 18 * 4) << print(*scheduled);
}

/// The loop that threads share.
std::string shared_loop(const Layer& layer) {
  const Func func = joined(graph_of(layer));
  const auto scheduled = schedule::replay(func, default_trace(func, small_target(), 2));
  EXPECT_TRUE(scheduled);
  std::string name;
  walk(scheduled->body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    if (loop != nullptr && loop->kind == ForKind::Parallel) name = loop->var.name();
  });
  return name;
}

TEST(Blocking, WorkersShareRowsWhereResultsStayInBlocks) {
  for (const bool after : {false, true}) {
    const std::string loop = shared_loop({.after = after, .spatial = {24, 18}, .channels = 32});
    EXPECT_EQ(loop.find("conv.h") < loop.find("conv.co"), !after) << loop;
  }
}

TEST(Blocking, WorkersShareChannelsOfFewRows) {
  for (const int64_t rows : {14, 28}) {
    const std::string loop =
        shared_loop({.before = false, .after = false, .spatial = {rows, 9}, .channels = 64});
    EXPECT_EQ(loop.find("conv.h") < loop.find("conv.co"), rows == 28) << loop;
  }
}

TEST(Blocking, StaysApartWhereNoRowFits) {
  hw::CpuTarget target = small_target();
  const Func func = joined(graph_of({}));
  target.l2_bytes = 64;
  EXPECT_FALSE(worth_strips(func, target, 2));
}

}  // namespace
}  // namespace tilewright::rules
