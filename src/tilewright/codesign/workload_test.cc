// Workloads: which nodes of a model become layers, how often, and what the host keeps.
#include "tilewright/codesign/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tilewright/zoo/zoo.h"

namespace tilewright::codesign {
namespace {

using ::testing::ElementsAre;

Workload workload(const std::string& network, int64_t size) {
  zoo::Options options;
  options.size = size;
  const Result<graph::Graph> graph = zoo::build(network, options);
  EXPECT_TRUE(graph);
  Result<Workload> made = workload_of(*graph);
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}

/// Runs of all layers that are convolutions.
int64_t convolutions(const Workload& workload) {
  int64_t count = 0;
  for (const WorkloadLayer& layer : workload.layers)
    if (layer.layer.find("r") >= 0) count += layer.runs;
  return count;
}

// source: the ResNet paper, table 1: 53 convolutions with their shortcuts, a product; 3.8 GMAC at
// 224x224.
TEST(WorkloadSlow, Resnet50HasItsLayersAndItsWork) {
  const Workload made = workload("resnet50", 224);
  EXPECT_EQ(convolutions(made), 53);
  EXPECT_NEAR(static_cast<double>(made.macs()), 3.8e9, 0.1e9);
  EXPECT_LT(made.layers.size(), 30u);
  std::map<std::string, int> host;
  for (const HostNode& node : made.host) ++host[node.op];
  EXPECT_EQ(host["Add"], 16);
  EXPECT_EQ(host["MaxPool"], 1);
  EXPECT_FALSE(host.contains("Relu"));
}

// A depthwise convolution of n channels is n runs of one with a channel.
TEST(Workload, GroupsAreRuns) {
  const Workload made = workload("mobilenet_v2", 224);
  int64_t depthwise = 0;
  for (const WorkloadLayer& layer : made.layers)
    if (layer.layer.find("r") >= 0 && layer.layer.loops[layer.layer.find("c")].extent == 1)
      depthwise += layer.runs;
  EXPECT_GT(depthwise, 5000);  // the sum of the channels of its 17 depthwise layers
  EXPECT_NEAR(static_cast<double>(made.macs()), 3.0e8, 0.1e8);  // source: the MobileNet-v2 paper
}

TEST(Workload, AxesHaveTheirOwnStridesAndPadding) {
  graph::Graph graph;
  const auto value = [&](const char* name, Shape shape) {
    return graph.add_value(name, {DType::F32, std::move(shape)});
  };
  const auto x = value("x", {1, 8, 20, 30}), w = value("w", {4, 8, 3, 5}),
             y = value("y", {1, 4, 10, 31});
  graph::Node node;
  node.name = "conv", node.op = "Conv", node.inputs = {x, w}, node.outputs = {y};
  node.attrs.values["strides"] = std::vector<int64_t>{2, 1};
  node.attrs.values["pads"] = std::vector<int64_t>{1, 2, 0, 3};
  graph.nodes = {node}, graph.inputs = {x, w}, graph.outputs = {y};
  const Result<Workload> made = workload_of(graph);
  ASSERT_TRUE(made) << to_string(made.error());
  const cost::SpatialLayer& layer = made->layers[0].layer;
  std::vector<int64_t> extents;
  for (const cost::SpatialLoop& loop : layer.loops) extents.push_back(loop.extent);
  EXPECT_THAT(extents, ElementsAre(4, 10, 31, 8, 3, 5));
  const cost::SpatialTensor& input = layer.tensors[0];
  EXPECT_EQ(input.dims[1].begin, 1);
  EXPECT_EQ(input.dims[2].begin, 2);
  EXPECT_EQ(input.dims[1].terms[0].stride, 2);
  EXPECT_EQ(input.dims[2].terms[0].stride, 1);
}

/// A model of one node.
graph::Graph one_node(const std::string& op, const std::vector<Shape>& inputs,
                      const Shape& output) {
  graph::Graph graph;
  graph::Node node;
  node.name = "node", node.op = op;
  for (size_t i = 0; i < inputs.size(); ++i)
    node.inputs.push_back(graph.add_value("x" + std::to_string(i), {DType::F32, inputs[i]}));
  node.outputs = {graph.add_value("y", {DType::F32, output})};
  graph.inputs = node.inputs, graph.outputs = node.outputs;
  graph.nodes = {node};
  return graph;
}

// What has no shape of its own here becomes layers by its definition.
TEST(Workload, OperatorsAreReadByTheirDefinitions) {
  const Result<Workload> stack =
      workload_of(one_node("MatMul", {{6, 10, 8}, {6, 8, 12}}, {6, 10, 12}));
  ASSERT_TRUE(stack) << to_string(stack.error());
  ASSERT_EQ(stack->layers.size(), 1u);
  const cost::SpatialLayer& layer = stack->layers[0].layer;
  EXPECT_EQ(layer.name, "MatMul 6x10x8 6x8x12");
  EXPECT_EQ(layer.macs(), 6 * 10 * 8 * 12);
  EXPECT_TRUE(layer.moves(0, 0) && layer.moves(1, 0) && layer.moves(2, 0));
  EXPECT_TRUE(stack->host.empty());
  const Result<Workload> volume =
      workload_of(one_node("Conv", {{1, 4, 6, 6, 6}, {8, 4, 3, 3, 3}}, {1, 8, 4, 4, 4}));
  ASSERT_TRUE(volume) << to_string(volume.error());
  EXPECT_EQ(volume->layers[0].layer.loops.size(), 8u);
}

TEST(Workload, AModelWithoutLayersSaysWhyNodeByNode) {
  graph::Graph graph;
  const auto x = graph.add_value("x", {DType::F32, {4, 4}}),
             y = graph.add_value("y", {DType::F32, {4, 4}});
  graph::Node node;
  node.name = "top", node.op = "Softmax", node.inputs = {x}, node.outputs = {y};
  graph.nodes = {node}, graph.inputs = {x}, graph.outputs = {y};
  const Result<Workload> made = workload_of(graph);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
  ASSERT_EQ(made.error().others.size(), 1u);
  EXPECT_EQ(made.error().others[0].what, "top");
}

}  // namespace
}  // namespace tilewright::codesign
