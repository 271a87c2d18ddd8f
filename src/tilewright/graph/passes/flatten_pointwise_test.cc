// 1x1 convolutions as products: the interpreter must give the same, and no value changes its
// layout.
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

/// The default passes, with vectors of 4.
Graph transform(Builder& b) {
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  PassContext context;
  context.evaluate = interp_evaluate;
  context.vector_bytes = 16;
  context.verify_each = true;
  auto result = run_passes(*graph, default_passes(), context);
  EXPECT_TRUE(result) << to_string(result.error());
  const std::vector<Array> inputs = random_inputs(*graph, 5);
  const auto expected = run_graph(*graph, inputs), got = run_graph(result->graph, inputs);
  EXPECT_TRUE(expected && got);
  for (size_t i = 0; expected && got && i < got->size(); ++i)
    EXPECT_EQ(max_difference((*got)[i], (*expected)[i]), 0) << print(result->graph);
  return result->graph;
}

class FlattenPointwise : public testing::Test {
 protected:
  ValueId conv(ValueId x, const Shape& w, int64_t groups = 1, const AttrList& more = {}) {
    const std::string name = "w" + std::to_string(weights_++);
    AttrList attrs = more;
    attrs.emplace_back("group", groups);
    return b_.node("Conv",
                   {x, b_.constant(name, random_array(rng_, DType::F32, w, 2)),
                    b_.constant(name + "b", random_array(rng_, DType::F32, {w[0]}, 2))},
                   attrs);
  }

  Rng rng_{3};
  Builder b_{"net"};
  int weights_ = 0;
};

TEST_F(FlattenPointwise, BetweenInputsAndOutputs) {
  for (const Shape& x : {Shape{1, 8, 24}, Shape{2, 8, 4, 6}, Shape{1, 8, 2, 3, 4}}) {
    b_ = Builder("net");
    Shape w = {6, 8}, grouped = {8, 2};
    w.resize(x.size(), 1), grouped.resize(x.size(), 1);
    const ValueId in = b_.input("x", DType::F32, x);
    b_.output(b_.node("Relu", {conv(in, w)}), "y");
    b_.output(conv(b_.node("Relu", {conv(in, grouped, 4)}), w), "z");
    const Graph after = transform(b_);
    EXPECT_EQ(count(after, "MatMul"), 3) << print(after);
    EXPECT_EQ(count(after, "ToBlocked") + count(after, "Conv"), 0) << print(after);
  }
}

TEST_F(FlattenPointwise, NeighboursOfOtherConvolutionsStay) {
  const ValueId x = b_.input("x", DType::F32, {1, 8, 4, 6});
  // Before and behind a wider window; with a stride; padded; two values added.
  b_.output(conv(conv(x, {8, 8, 1, 1}), {8, 8, 3, 3}), "a");
  b_.output(conv(conv(x, {8, 8, 3, 3}), {8, 8, 1, 1}), "b");
  b_.output(conv(x, {8, 8, 1, 1}, 1, {{"strides", Ints{1, 2}}}), "c");
  b_.output(conv(x, {8, 8, 1, 1}, 1, {{"pads", Ints{0, 0, 1, 0}}}), "d");
  b_.output(b_.node("Add", {conv(x, {8, 8, 1, 1}), x}), "e");
  EXPECT_EQ(count(transform(b_), "MatMul"), 0);
}

TEST_F(FlattenPointwise, PlanesThatFillFewVectorsStay) {
  b_.output(conv(b_.input("x", DType::F32, {1, 8, 3, 3}), {8, 8, 1, 1}), "y");
  EXPECT_EQ(count(transform(b_), "MatMul"), 0);
}

TEST_F(FlattenPointwise, TheProductIsWrittenIntoTheOutput) {
  const ValueId x = b_.input("x", DType::F32, {1, 8, 4, 6});
  b_.output(b_.node("Relu", {conv(x, {8, 8, 1, 1})}), "y");
  const Graph after = transform(b_);
  const std::vector<Group> groups = fuse(after);
  const MemoryPlan plan = plan_memory(after, groups);
  const auto kernels = std::count_if(groups.begin(), groups.end(),
                                     [](const Group& g) { return g.kind == GroupKind::Kernel; });
  EXPECT_EQ(kernels, 1);
  EXPECT_EQ(plan.arena_bytes, 0);
  const auto product = std::find_if(groups.begin(), groups.end(),
                                    [](const Group& g) { return g.kind == GroupKind::Kernel; });
  EXPECT_EQ(plan.made_in[static_cast<size_t>(product->outputs[0])], after.outputs[0]);
}

TEST_F(FlattenPointwise, AnOutputThatIsOtherMemoryIsCopied) {
  // The sum is an output itself: its other shape needs bytes of its own.
  const ValueId sum = b_.node("ReduceSum", {b_.input("x", DType::F32, {4, 6, 5}), b_.ints({2})});
  b_.output(sum, "y");
  b_.output(b_.node("Reshape", {sum, b_.ints({8, 3})}), "z");
  const Graph after = transform(b_);
  for (const ValueId id : plan_memory(after, fuse(after)).made_in) EXPECT_EQ(id, -1);
}

}  // namespace
}  // namespace tilewright::graph
