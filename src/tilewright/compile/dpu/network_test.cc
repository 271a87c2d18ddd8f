// Layers for the DPU compute what the integer graph does, for small networks.
#include "tilewright/compile/dpu/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/compile/dpu/network_testing.h"
#include "tilewright/graph/layout/border.h"

namespace tilewright::compile::dpu_testing {
namespace {

using ::testing::HasSubstr;

TEST(DpuNetworkSlow, SmallNetworksAreEqualValueByValue) {
  EXPECT_EQ(expect_layers_equal(graph::residual_net(3), {"it clips to 0 ... "}), 10u);
  expect_layers_equal(graph::branching_net());
  EXPECT_EQ(expect_layers_equal(small_unet(2)), 17u);
}

TEST(DpuNetworkSlow, RandomNetworksAreEqualValueByValue) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    EXPECT_GT(expect_layers_equal(RandomNet(seed).make()), 6u);
  }
}

/// A part of `x`: `from` to `to` along `axes`.
ValueId cut(Layers& l, ValueId x, const Sizes& from, const Sizes& to, const Sizes& axes,
            int64_t step = 1) {
  return l.b.node("Slice", {x, l.b.ints(from), l.b.ints(to), l.b.ints(axes),
                            l.b.ints(Sizes(axes.size(), step))});
}

// A U-Net of one level whose convolutions have no padding: what is skipped is cropped.
TEST(DpuNetwork, SlicesArePartsOfMaps) {
  Layers l(6);
  const ValueId a = l.relu(l.conv(l.relu(l.conv(l.input({1, 1, 20, 18}), 6, 3)), 6, 3));
  ValueId x = l.b.node("MaxPool", {a}, {{"kernel_shape", Sizes{2, 2}}, {"strides", Sizes{2, 2}}});
  x = l.relu(l.conv(x, 10, 3));
  x = l.b.node("ConvTranspose", {x, l.weight({10, 5, 2, 2}, 0.3), l.weight({5}, 0.1)},
               {{"strides", Sizes{2, 2}}});
  const ValueId skip = cut(l, a, {2, -12}, {14, 12}, {2, 3});
  x = l.relu(l.conv(l.b.node("Concat", {skip, x}, {{"axis", int64_t{1}}}), 9, 3));
  x = l.b.node("Add", {cut(l, x, {0}, {4}, {1}), cut(l, x, {-4}, {100}, {-3})});
  EXPECT_EQ(expect_layers_equal(l.finish(l.conv(x, 4, 1))), 12u);
}

TEST(DpuNetwork, SlicesWithStepsAndWidePaddingAreNoLayers) {
  Layers l(7);
  ValueId x = l.relu(l.conv(l.input({1, 3, 30, 30}), 12, 3, 1, 1));
  x = cut(l, l.conv(l.conv(x, 8, 3), 5, 3, 1, 4), {1}, {30}, {2}, 2);
  expect_layers_equal(l.finish(l.conv(x, 4, 1)),
                      {"pad_top 4 is not 0 to 2", "it takes one of 2 elements along axis 2"});
}

TEST(DpuNetwork, TilesAtBordersAreInputsAndOutputs) {
  const QuantizedGraph q = dpu_integers(small_unet(5));
  const Choice choice = choose(q);
  std::vector<int> launch(q.graph.nodes.size(), -1);
  for (const int n : choice.nodes) launch[static_cast<size_t>(n)] = 0;
  const graph::TileShape tile{4, 16, 16, graph::TileOrder::PixelsFirst};
  const auto tiled = graph::tile_borders(q.graph, launch, tile);
  ASSERT_TRUE(tiled) << to_string(tiled.error());
  const FixPoints before = fix_points(q);
  FixPoints points(tiled->graph.values.size());
  for (size_t v = 0; v < points.size(); ++v)
    if (tiled->origin[v] >= 0) points[v] = before[static_cast<size_t>(tiled->origin[v])];
  std::vector<int> nodes;
  for (size_t n = 0; n < tiled->launch.size(); ++n)
    if (tiled->launch[n] == 0) nodes.push_back(static_cast<int>(n));
  const auto plain = dpu_network(q.graph, choice.nodes, before);
  const auto made = dpu_network(tiled->graph, nodes, points);
  ASSERT_TRUE(plain && made);
  ASSERT_EQ(made->network.layers.size(), plain->network.layers.size());
  ASSERT_EQ(made->network.inputs.size(), 1u);
  ASSERT_EQ(made->network.outputs.size(), 1u);
  for (const dpu::ValueId v : {made->network.inputs[0], made->network.outputs[0]}) {
    const Shape& s = value_of(tiled->graph, made->origin[static_cast<size_t>(v)]).type.shape;
    EXPECT_EQ(s.size(), 6u);
    EXPECT_EQ(s[0], 2);
    EXPECT_EQ(made->network.values[static_cast<size_t>(v)].height, s[1]);
  }
  std::vector<int8_t> image(static_cast<size_t>(
      plain->network.values[static_cast<size_t>(plain->network.inputs[0])].elements()));
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<int8_t>(i * 37);
  const auto want = dpu::interpret(plain->network, {{plain->network.inputs[0], image}});
  const auto got = dpu::interpret(made->network, {{made->network.inputs[0], image}});
  EXPECT_EQ(want.at(plain->network.outputs[0]), got.at(made->network.outputs[0]));
}

TEST(DpuNetwork, WhatIsNoLayerSaysWhy) {
  Layers l(4);
  const ValueId x = l.relu(l.conv(l.input({1, 3, 8, 8}), 6, 3, 1, 1));
  const ValueId low = l.b.constant("lo", Array::scalar(DType::F32, 0));
  const ValueId high = l.b.constant("hi", Array::scalar(DType::F32, 0.4));
  const ValueId y = l.b.node("Clip", {l.conv(x, 6, 3, 1, 1), low, high});
  const ValueId wide = l.conv(y, 4, 8);
  const QuantizedGraph q = dpu_integers(l.finish(wide));
  const Choice choice = choose(q);
  ASSERT_EQ(choice.left.size(), 1u);
  EXPECT_THAT(choice.left[0], HasSubstr("it clips to 0 ... "));
  std::vector<int> all;
  for (size_t n = 0; n < q.graph.nodes.size(); ++n) all.push_back(static_cast<int>(n));
  const auto made = dpu_network(q.graph, all, fix_points(q));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(to_string(made.error()), HasSubstr("there is no layer for QuantizeLinear"));
  EXPECT_THAT(to_string(made.error()), HasSubstr("node '"));
}

}  // namespace
}  // namespace tilewright::compile::dpu_testing
