#include "tilewright/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tilewright::zoo {
namespace {

using ::testing::HasSubstr;

/// Networks whose weights are few enough to be drawn in well under a second.
const std::set<std::string> kSmall = {
    "mobilenet_v1", "mobilenet_v2", "inception_v1", "squeezenet1.1", "dcgan", "dqn", "lenet5"};

const Entry& entry(const std::string& name) {
  for (const Entry& candidate : entries())
    if (candidate.name == name) return candidate;
  ADD_FAILURE() << "no network " << name;
  return entries()[0];
}

int64_t weight_count(const graph::Graph& graph) {
  int64_t count = 0;
  for (const graph::Value& value : graph.values)
    if (value.constant) count += value.constant->size();
  return count;
}

/// Whether both graphs hold the same constants, bit by bit.
bool same_weights(const graph::Graph& a, const graph::Graph& b) {
  if (a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const auto &x = a.values[i].constant, &y = b.values[i].constant;
    if (x.has_value() != y.has_value()) return false;
    if (x && !identical(*x, *y)) return false;
  }
  return true;
}

TEST(Zoo, NamesAreUniqueAndDescribed) {
  std::set<std::string> names;
  for (const Entry& candidate : entries()) {
    EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
    EXPECT_FALSE(candidate.doc.empty()) << candidate.name;
    EXPECT_LE(candidate.smallest_size, candidate.default_size) << candidate.name;
    EXPECT_GE(candidate.smallest_size, 1) << candidate.name;
  }
  EXPECT_EQ(names.size(), 33u);
  for (const std::string& name : kSmall) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(ZooSlow, BuildsAtTheSmallestSizeAndVerifies) {
  for (const std::string& name : kSmall) {
    Options options;
    options.size = entry(name).smallest_size;
    const Result<graph::Graph> graph = build(name, options);
    ASSERT_TRUE(graph) << name << to_string(graph.error());
    const Status status = graph::verify(*graph);
    EXPECT_TRUE(status) << name << to_string(status.error());
    EXPECT_EQ(graph->inputs.size(), 1u) << name;
    EXPECT_GE(graph->outputs.size(), 1u) << name;
  }
}

// source: the numbers of weights printed in, or counted from, the networks' papers: LeNet-5 has
// 61 706 in its usual form, SqueezeNet 1.1 1.2 million, MobileNet 4.2 and 3.5.
TEST(Zoo, WeightCountsAreThoseOfTheNetworks) {
  const std::vector<std::pair<std::string, std::pair<double, double>>> expected = {
      {"lenet5", {0.060, 0.063}},
      {"squeezenet1.1", {1.2, 1.3}},
      {"mobilenet_v1", {4.2, 4.35}},
      {"mobilenet_v2", {3.45, 3.65}},
  };
  for (const auto& [name, range] : expected) {
    const Result<graph::Graph> graph = build(name);
    ASSERT_TRUE(graph) << name;
    const double millions = static_cast<double>(weight_count(*graph)) / 1e6;
    EXPECT_GE(millions, range.first) << name;
    EXPECT_LE(millions, range.second) << name;
  }
}

/// Multiplications and additions of convolutions and dense layers, in billions per image.
double giga_operations(const graph::Graph& graph) {
  double total = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != "Conv" && node.op != "Gemm") continue;
    const Shape& w = graph.values[static_cast<size_t>(node.inputs[1])].type.shape;
    const Shape& y = graph.values[static_cast<size_t>(node.outputs[0])].type.shape;
    const int64_t out_axis = node.op == "Conv" ? w[0] : y.back();
    const int64_t products = element_count(w) / out_axis;  // of an output
    total += 2.0 * static_cast<double>(products * element_count(y));
  }
  return total / 1e9;
}

// source: the operations per image that the vendor of the DPU lists for its networks.
TEST(ZooSlow, OperationsOfTheNetworksOfTheDpuAreThoseListed) {
  const std::vector<std::pair<std::string, double>> expected = {
      {"inception_v1_bn", 3.16}, {"yolov3_voc", 65.43}, {"squeezenet1.1", 0.78}};
  for (const auto& [name, operations] : expected) {
    Options options;
    if (name == "squeezenet1.1") options.size = 227;
    const Result<graph::Graph> graph = build(name, options);
    ASSERT_TRUE(graph) << name;
    EXPECT_NEAR(giga_operations(*graph), operations, 0.01) << name;
  }
}

TEST(Zoo, BatchAndSizeReachTheInput) {
  Options options;
  options.batch = 3;
  options.size = 64;
  const Result<graph::Graph> graph = build("squeezenet1.1", options);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->values[graph->inputs[0]].type.shape, (Shape{3, 3, 64, 64}));
  for (graph::ValueId id : graph->outputs) EXPECT_EQ(graph->values[id].type.shape[0], 3);
  const Result<graph::Graph> usual = build("squeezenet1.1");
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->values[usual->inputs[0]].type.shape, (Shape{1, 3, 224, 224}));
}

TEST(ZooSlow, SeedsDecideTheWeights) {
  for (const std::string name : {"lenet5", "dqn", "mobilenet_v2"}) {
    Options other;
    other.seed = 2;
    const Result<graph::Graph> first = build(name), second = build(name),
                               third = build(name, other);
    ASSERT_TRUE(first && second && third);
    EXPECT_TRUE(same_weights(*first, *second)) << name;
    EXPECT_FALSE(same_weights(*first, *third)) << name;
  }
}

TEST(Zoo, UnknownNameNamesTheNearest) {
  const Result<graph::Graph> graph = build("resnt18");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().kind, ErrorKind::Usage);
  EXPECT_THAT(to_string(graph.error()), HasSubstr("resnt18"));
  EXPECT_THAT(to_string(graph.error()), HasSubstr("'resnet18'"));
}

TEST(Zoo, SizesAndBatchesOutsideAreUsageErrors) {
  for (const Entry& candidate : entries()) {
    for (int64_t size : {candidate.smallest_size - 1, int64_t{-7}, int64_t{8193}}) {
      if (size == 0) continue;  // 0 stands for the usual size
      Options options;
      options.size = size;
      const Result<graph::Graph> graph = build(candidate.name, options);
      ASSERT_FALSE(graph) << candidate.name << " " << size;
      EXPECT_EQ(graph.error().kind, ErrorKind::Usage);
      EXPECT_THAT(to_string(graph.error()), HasSubstr(std::to_string(candidate.smallest_size)));
    }
  }
  for (int64_t batch : {int64_t{0}, int64_t{-1}, int64_t{65537}}) {
    Options options;
    options.batch = batch;
    const Result<graph::Graph> graph = build("lenet5", options);
    ASSERT_FALSE(graph) << batch;
    EXPECT_EQ(graph.error().kind, ErrorKind::Usage);
    EXPECT_THAT(to_string(graph.error()), HasSubstr(std::to_string(batch)));
  }
}

}  // namespace
}  // namespace tilewright::zoo
