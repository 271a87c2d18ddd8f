// Products that make parts of their columns: the interpreter must give the same, and the copy that
// orders the parts becomes part of the product's group.
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

class SplitHeads : public testing::Test {
 protected:
  ValueId known(const Shape& shape) {
    return b_.constant("w" + std::to_string(weights_++), random_array(rng_, DType::F32, shape, 2));
  }

  /// x * w + bias, split into `parts` and transposed.
  ValueId heads(ValueId x, int64_t columns, const Ints& split, const Ints& order) {
    ValueId y = b_.node("MatMul", {x, known({8, columns})});
    y = b_.node("Relu", {b_.node("Add", {known({columns}), y})});
    return b_.node("Transpose", {b_.node("Reshape", {y, b_.ints(split)})}, {{"perm", order}});
  }

  /// After the default passes, with vectors of 4; products that make parts.
  int transform() {
    const auto graph = b_.finish();
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
    after_ = result->graph;
    return static_cast<int>(
        std::count_if(after_.nodes.begin(), after_.nodes.end(),
                      [](const Node& node) { return node.attrs.has("parts"); }));
  }

  Rng rng_{3};
  Builder b_{"net"};
  int weights_ = 0;
  Graph after_;
};

TEST_F(SplitHeads, ProductsMakeThePartsThatAreTransposed) {
  const ValueId x = b_.input("x", DType::F32, {2, 5, 8});
  b_.output(heads(x, 24, {2, 5, 3, 8}, {0, 2, 1, 3}), "q");
  b_.output(heads(x, 16, {2, 5, 4, 4}, {0, 2, 3, 1}), "k");
  EXPECT_EQ(transform(), 2) << print(after_);
  FuseOptions options;
  options.join = [](const Group&) { return true; };
  EXPECT_EQ(fuse(after_, options).size(), 2u) << print(after_);
}

TEST_F(SplitHeads, PartsOfBrokenBlocksStay) {
  const ValueId x = b_.input("x", DType::F32, {2, 5, 8});
  b_.output(heads(x, 12, {2, 5, 2, 6}, {0, 2, 1, 3}), "y");
  EXPECT_EQ(transform(), 0) << print(after_);
}

TEST_F(SplitHeads, OtherReshapesStay) {
  const ValueId x = b_.input("x", DType::F32, {2, 6, 8});
  b_.output(heads(x, 16, {2, 2, 3, 16}, {0, 2, 1, 3}), "rows");
  b_.output(heads(x, 16, {2, 6, 2, 2, 4}, {0, 2, 1, 3, 4}), "twice");
  EXPECT_EQ(transform(), 0) << print(after_);
}

TEST_F(SplitHeads, ResultsThatOthersReadStay) {
  const ValueId x = b_.input("x", DType::F32, {2, 5, 8});
  const ValueId y = b_.node("MatMul", {x, known({8, 16})});
  b_.output(y, "whole");
  b_.output(b_.node("Transpose", {b_.node("Reshape", {y, b_.ints({2, 5, 4, 4})})},
                    {{"perm", Ints{0, 2, 1, 3}}}),
            "parts");
  EXPECT_EQ(transform(), 0) << print(after_);
}

}  // namespace
}  // namespace tilewright::graph
