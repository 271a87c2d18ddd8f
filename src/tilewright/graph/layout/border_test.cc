// Tiles between launches keep the meaning of a graph.
#include "tilewright/graph/layout/border.h"

#include <gmock/gmock.h>

#include "tilewright/graph/testing/quantize.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

constexpr TileShape kPixels{4, 16, 16, TileOrder::PixelsFirst};

Graph integer_net(int64_t batch) {
  QuantizeOptions options;
  options.target = fixed_point_target();
  return quantized(residual_net(batch), options).graph;
}

bool is_byte_image(const Graph& graph, const Node& node) {
  for (const ValueId id : node.outputs) {
    const auto& type = graph.values[static_cast<size_t>(id)].type;
    if (type.shape.size() != 4 || type.dtype == DType::F32) return false;
  }
  return node.op != "QuantizeLinear";
}

TEST(TileBorders, RandomLaunchesComputeTheSame) {
  for (const int64_t batch : {1, 4, 5}) {
    const Graph graph = integer_net(batch);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Rng rng(seed);
      std::vector<int> launch;
      for (const Node& node : graph.nodes)
        launch.push_back(is_byte_image(graph, node) ? static_cast<int>(rng.between(-1, 1)) : -1);
      const auto tiled = tile_borders(graph, launch, kPixels);
      ASSERT_TRUE(tiled) << to_string(tiled.error());
      const Status sound = verify(tiled->graph);
      ASSERT_TRUE(sound) << to_string(sound.error());
      const auto inputs = normal_inputs(graph, 9 + seed);
      const auto want = run_all(graph, inputs), got = run_all(tiled->graph, inputs);
      for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const auto a = static_cast<size_t>(graph.outputs[i]);
        const auto b = static_cast<size_t>(tiled->graph.outputs[i]);
        EXPECT_TRUE(identical(want[a], got[b]));
        EXPECT_EQ(graph.values[a].name, tiled->graph.values[b].name);
      }
    }
  }
}

TEST(TileBorders, OnlyTilesPassBorders) {
  const Graph graph = integer_net(5);
  std::vector<int> launch;
  for (const Node& node : graph.nodes) launch.push_back(is_byte_image(graph, node) ? 0 : -1);
  const auto tiled = tile_borders(graph, launch, kPixels);
  ASSERT_TRUE(tiled) << to_string(tiled.error());
  const auto maker = producers(tiled->graph);
  int passed = 0;
  for (size_t n = 0; n < tiled->graph.nodes.size(); ++n)
    for (const ValueId id : tiled->graph.nodes[n].inputs) {
      if (id < 0 || tiled->graph.values[static_cast<size_t>(id)].constant) continue;
      const int p = maker[static_cast<size_t>(id)];
      if ((p < 0 ? -1 : tiled->launch[static_cast<size_t>(p)]) == tiled->launch[n]) continue;
      ++passed;
      const Shape& s = tiled->graph.values[static_cast<size_t>(id)].type.shape;
      ASSERT_EQ(s.size(), 6u);
      EXPECT_EQ(s[0], 2);  // 5 images in groups of 4
      EXPECT_EQ(s[4], 4);
      EXPECT_EQ(s[5], 16);
    }
  EXPECT_EQ(passed, 2);  // in and out
  for (const Node& node : tiled->graph.nodes)
    if (node.op == "ToTiles" || node.op == "FromTiles") {
      const auto origin = [&](ValueId id) { return tiled->origin[static_cast<size_t>(id)]; };
      EXPECT_GE(origin(node.outputs[0]), 0);
      EXPECT_EQ(origin(node.inputs[0]), origin(node.outputs[0]));
    }
}

TEST(TileBorders, OtherRanksAreNamed) {
  const Graph graph = integer_net(1);
  std::vector<int> launch(graph.nodes.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == "Softmax") launch[n] = 0;
  const auto tiled = tile_borders(graph, launch, kPixels);
  ASSERT_FALSE(tiled);
  EXPECT_EQ(tiled.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(to_string(tiled.error()), HasSubstr("only images"));
}

}  // namespace
}  // namespace tilewright::graph
