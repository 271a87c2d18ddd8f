// Tiled graphs give the integers of the plain ones, run node by node in the interpreter.
#include "tilewright/graph/layout/tiles.h"

#include <gmock/gmock.h>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/place.h"
#include "tilewright/graph/testing/quantize.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

Graph tiled(const Graph& graph, const TileShape& tile) {
  auto result = tile_layout(graph, tile);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  const Status sound = verify(*result);
  EXPECT_TRUE(sound.has_value()) << to_string(sound.error());
  return *result;
}

/// Values of the two graphs that have the same name are equal.
void expect_same_integers(const QuantizedGraph& q, const TileShape& tile, const std::string& what) {
  const Graph t = tiled(q.graph, tile);
  const auto inputs = normal_inputs(q.graph, 31);
  const auto want = run_all(q.graph, inputs), got = run_all(t, inputs);
  std::map<std::string, size_t> index;
  for (size_t v = 0; v < q.graph.values.size(); ++v) index[q.graph.values[v].name] = v;
  int compared = 0;
  for (size_t v = 0; v < t.values.size(); ++v) {
    const auto found = index.find(t.values[v].name);
    if (t.values[v].constant || found == index.end()) continue;
    EXPECT_TRUE(identical(got[v], want[found->second])) << what << " " << t.values[v].name;
    ++compared;
  }
  EXPECT_GE(compared, 3) << what;
  const auto counts = count_ops(t);
  EXPECT_FALSE(counts.contains("ConvInteger")) << what;
  EXPECT_FALSE(counts.contains("MaxPool")) << what;
}

const std::vector<TileShape> kTiles = {{1, 4, 4}, {2, 4, 4}, {1, 16, 16}, {1, 2, 4}, {1, 4, 2}};

TEST(TileLayout, ResidualNetworkIsTheSame) {
  const QuantizedGraph q = quantized(residual_net());
  for (const TileShape& tile : kTiles)
    expect_same_integers(q, tile,
                         std::to_string(tile.block_in) + "x" + std::to_string(tile.block_out));
  const QuantizedGraph two = quantized(residual_net(3));
  expect_same_integers(two, {2, 4, 4}, "three samples");
}

TEST(TileLayout, BranchesWithGapsAreTheSame) {
  const QuantizedGraph q = quantized(branching_net());
  for (const TileShape& tile : kTiles)
    expect_same_integers(q, tile,
                         std::to_string(tile.block_in) + "x" + std::to_string(tile.block_out));
  QuantizeOptions options;
  options.per_channel = true;
  expect_same_integers(quantized(branching_net(), options), {1, 4, 4}, "per channel");
}

TEST(TileLayout, ResizedAndSlicedImagesStayInTiles) {
  Layers l;
  ValueId x = l.relu(l.conv(l.input({1, 5, 4, 4}), 6, 3, 1, 1));
  const ValueId scales = l.b.constant("s", Array::of(DType::F32, std::vector<double>{1, 1, 2, 2}));
  x = l.b.node("Resize", {x, -1, scales},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}});
  x = l.b.node("Slice", {x, l.b.ints({1}), l.b.ints({7}), l.b.ints({2})});
  x = l.b.node("Pad", {x, l.b.ints({0, 0, 1, 0, 0, 0, 0, 1})});
  const QuantizedGraph q = quantized(l.finish(l.b.node("Exp", {l.conv(x, 4, 1)})));
  expect_same_integers(q, {1, 4, 4}, "moves");
  const auto counts = count_ops(tiled(q.graph, {1, 4, 4}));
  EXPECT_EQ(counts.at("ToTiles"), 1);
}

TEST(TileLayout, PoolsOfPositiveNumbersStartFromZero) {
  for (const bool positive : {true, false}) {
    Layers l;
    ValueId x = l.conv(l.input({1, 4, 5, 5}), 4, 1);
    if (positive) x = l.relu(x);
    x = l.b.node("MaxPool", {x}, {{"kernel_shape", Sizes{3, 3}}, {"pads", Sizes{1, 1, 1, 1}}});
    const QuantizedGraph q = quantized(l.finish(l.b.node("Exp", {l.conv(x, 4, 1)})));
    expect_same_integers(q, {1, 4, 4}, "pool");
    for (const Node& node : tiled(q.graph, {1, 4, 4}).nodes)
      if (node.op == "TileMaxPool") {
        EXPECT_EQ(node.attrs.get_int("floor", 1), positive ? 0 : -128);
      }
  }
}

TEST(TileLayoutSlow, ResNetMeetsPlainLayoutTwice) {
  const auto graph = zoo::build("resnet18", {1, 1, 64});
  ASSERT_TRUE(graph);
  const Graph p = prepared(*graph);
  const auto q = quantize(p, made_up_ranges(p), {});
  ASSERT_TRUE(q) << to_string(q.error());
  const Graph t = tiled(q->graph, {1, 16, 16});
  const auto counts = count_ops(t);
  EXPECT_EQ(counts.at("TileConv"), 23);
  EXPECT_EQ(counts.at("ToTiles"), 1);
  EXPECT_EQ(counts.at("FromTiles"), 2);
  // Each convolution runs as one kernel with the Requantize behind it.
  for (const Group& group : fuse(t))
    for (const int n : group.nodes) {
      if (t.nodes[static_cast<size_t>(n)].op != "TileConv") continue;
      ASSERT_EQ(group.nodes.size(), 2u) << t.nodes[static_cast<size_t>(n)].name;
      EXPECT_EQ(t.nodes[static_cast<size_t>(group.nodes[1])].op, "Requantize");
    }
  PlaceTarget target;
  int convolutions = 0;
  for (const Placement& entry : place(t, target)) {
    if (entry.where == Where::Accelerator) {
      convolutions += entry.op == "TileConv";
      EXPECT_TRUE(entry.why.empty());
    } else {
      EXPECT_FALSE(t.nodes[static_cast<size_t>(entry.node)].op == "Requantize") << entry.name;
    }
    EXPECT_EQ(entry.where == Where::Cpu, !entry.why.empty()) << entry.name;
  }
  EXPECT_EQ(convolutions, 23);
}

TEST(TileLayout, RejectsEmptyTiles) {
  const auto result = tile_layout(Graph{}, {0, 4, 4});
  ASSERT_FALSE(result);
  EXPECT_THAT(to_string(result.error()), HasSubstr("tiles of 0 x 4"));
}

std::string reason_of(const std::vector<Placement>& placements, const std::string& op) {
  for (const Placement& p : placements)
    if (p.op == op) return p.where == Where::Cpu ? p.why : "not on the CPU";
  return "absent";
}

TEST(Place, ReasonsHaveNumbers) {
  QuantizeOptions options;
  options.per_channel = true;
  const QuantizedGraph q = quantized(residual_net(), options);
  PlaceTarget target;
  target.name = "toy";
  target.tile = {1, 4, 4};
  const Graph t = tiled(q.graph, target.tile);
  const auto without = place(t, target);
  EXPECT_THAT(reason_of(without, "Requantize"), HasSubstr("scales 8 channels by multipliers"));
  EXPECT_THAT(reason_of(without, "Softmax"), HasSubstr("Softmax stays in f32[1, 10]"));
  EXPECT_THAT(reason_of(without, "QuantizeLinear"), HasSubstr("converts between f32 and i8"));
  EXPECT_THAT(reason_of(without, "ToTiles"), HasSubstr("tiles of 1 x 4"));
  EXPECT_THAT(reason_of(without, "TileConv"), HasSubstr("its sums are requantised on the CPU"));
  target.has_multiply = true;
  EXPECT_EQ(reason_of(place(t, target), "TileConv"), "not on the CPU");
  EXPECT_EQ(reason_of(place(t, target), "Requantize"), "not on the CPU");
  target.tile = {1, 16, 16};
  EXPECT_THAT(reason_of(place(t, target), "TileConv"), HasSubstr("is not in tiles of 1 x 16"));
  EXPECT_THAT(reason_of(place(q.graph, target), "ConvInteger"), HasSubstr("is not in tiles"));
  EXPECT_THAT(reason_of(place(residual_net(), target), "Conv"), HasSubstr("f32[1, 3, 13, 12]"));
  EXPECT_THAT(explain(without, target)[0], HasSubstr("nodes on toy"));
}

}  // namespace
}  // namespace tilewright::graph
