#include "tilewright/graph/partition/traffic.h"

#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

Traffic traffic_of(Builder& b, bool fused) {
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  FuseOptions options;
  options.enable = fused;
  return traffic_of(*graph, fuse(*graph, options));
}

constexpr int64_t kBytes = 16 * 16 * 4;  ///< of every value below

Builder relu_between_products() {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId relu = b.node("Relu", {first});
  b.output(b.node("MatMul", {relu, w}), "y");
  return b;
}

TEST(Traffic, AChainWritesAndReadsEachValueOnce) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId second = b.node("MatMul", {first, w});
  b.output(b.node("MatMul", {second, w}), "y");
  const Traffic traffic = traffic_of(b, true);
  EXPECT_EQ(traffic.moved, 4 * kBytes);
  EXPECT_EQ(traffic.compulsory, 4 * kBytes);
  EXPECT_TRUE(traffic.movers.empty());
}

TEST(Traffic, AnElementwiseStepOfItsOwnIsNotCompulsory) {
  Builder b = relu_between_products();
  const Traffic apart = traffic_of(b, false);
  EXPECT_EQ(apart.moved, 4 * kBytes);
  EXPECT_EQ(apart.compulsory, 2 * kBytes);
  ASSERT_EQ(apart.movers.size(), 1u);
  EXPECT_EQ(apart.movers[0].second, 2 * kBytes);
}

TEST(Traffic, FusionReachesTheCompulsoryBytes) {
  Builder b = relu_between_products();
  const Traffic traffic = traffic_of(b, true);
  EXPECT_EQ(traffic.moved, 2 * kBytes);
  EXPECT_EQ(traffic.compulsory, 2 * kBytes);
}

TEST(Traffic, EveryWorkerThatNeedsAValueReadsIt) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId second = b.node("MatMul", {first, w});
  // The sum is fused into the third product's step, which reads `first` again.
  b.output(b.node("Add", {b.node("MatMul", {second, w}), first}), "y");
  const Traffic traffic = traffic_of(b, true);
  EXPECT_EQ(traffic.moved, (2 + 2 + 1) * kBytes);
  EXPECT_EQ(traffic.compulsory, traffic.moved);
}

TEST(Traffic, OnlyThePartThatIsNeededIsCompulsory) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId part = b.node("Slice", {first, b.ints({3}), b.ints({7}), b.ints({0})});
  b.output(b.node("MatMul", {part, w}), "y");
  const Traffic traffic = traffic_of(b, false);
  EXPECT_EQ(traffic.compulsory, 2 * kBytes / 4);
  EXPECT_EQ(traffic.moved, kBytes + 3 * kBytes / 4);  // all is made, a quarter read and copied
}

TEST(Traffic, AWorkerThatSlicesReadsThePart) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  const ValueId first = b.node("MatMul", {x, w});
  const ValueId part = b.node("Slice", {first, b.ints({3}), b.ints({7}), b.ints({0})});
  b.output(b.node("ReduceMax", {part, b.ints({1})}), "y");
  const Traffic traffic = traffic_of(b, true);
  EXPECT_EQ(traffic.moved, kBytes + kBytes / 4);
  EXPECT_EQ(traffic.compulsory, 2 * kBytes / 4);
}

TEST(Traffic, InputsAndOutputsOfTheGraphAreNotBetweenKernels) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {16, 16});
  const ValueId w = b.constant("w", Array(DType::F32, {16, 16}));
  b.output(b.node("MatMul", {x, w}), "y");
  const Traffic traffic = traffic_of(b, true);
  EXPECT_EQ(traffic.moved, 0);
  EXPECT_EQ(traffic.compulsory, 0);
}

}  // namespace
}  // namespace tilewright::graph
