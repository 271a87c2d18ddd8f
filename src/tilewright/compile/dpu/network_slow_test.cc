// Layers for the DPU compute what the integer graph does, for networks of the zoo and many random
// ones.
#include "tilewright/compile/dpu/network_testing.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::compile::dpu_testing {
namespace {

Graph zoo_network(const std::string& name, int64_t size, int64_t batch = 1) {
  zoo::Options options;
  options.size = size;
  options.batch = batch;
  auto graph = zoo::build(name, options);
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

TEST(DpuNetworkSlow, NetworksOfTheZooAreEqualValueByValue) {
  EXPECT_EQ(expect_layers_equal(zoo_network("squeezenet1.1", 64)), 38u);
  EXPECT_EQ(expect_layers_equal(zoo_network("mobilenet_v2", 32)), 64u);
}

TEST(DpuNetworkFull, NetworksOfTheZooAreEqualValueByValue) {
  // 21 products, 8 sums, 2 pools
  EXPECT_EQ(expect_layers_equal(zoo_network("resnet18", 48, 2)), 31u);
  EXPECT_EQ(expect_layers_equal(zoo_network("yolov3_tiny", 64)), 21u);
  EXPECT_EQ(expect_layers_equal(zoo_network("inception_v1_bn", 64)), 81u);
  expect_layers_equal(zoo_network("yolov1", 64));
  expect_layers_equal(zoo_network("dcgan", 16));
}

TEST(DpuNetworkSlow, RandomNetworksAreEqualValueByValue) {
  for (uint64_t seed = 5; seed <= 14; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    EXPECT_GT(expect_layers_equal(RandomNet(seed).make()), 6u);
  }
}

}  // namespace
}  // namespace tilewright::compile::dpu_testing
