#include "tilewright/driver/verify/checked_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"

namespace tilewright::driver {
namespace {

using graph::ValueId;
using testing::ElementsAre;

/// x -> Relu -> Cast (i32) -> Cast (f32) -> Softmax -> y
graph::Graph scores() {
  graph::Builder b("net");
  ValueId value = b.node("Relu", {b.input("x", DType::F32, {2, 4})});
  value = b.node("Cast", {value}, {{"to", int64_t{6}}});
  value = b.node("Cast", {value}, {{"to", int64_t{1}}});
  b.output(b.node("Softmax", {value}, {{"axis", int64_t{1}}}), "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *std::move(graph);
}

ValueId result_of(const graph::Graph& graph, size_t node) {
  return graph.nodes.at(node).outputs[0];
}

TEST(CheckedValues, LogitsBesideProbabilities) {
  graph::Graph graph = scores();
  add_checked_values(graph, false, false);
  EXPECT_THAT(graph.outputs, ElementsAre(result_of(graph, 3), result_of(graph, 2)));
}

TEST(CheckedValues, EveryNodeInItsOrder) {
  graph::Graph graph = scores();
  add_checked_values(graph, true, false);
  EXPECT_THAT(graph.outputs, ElementsAre(result_of(graph, 0), result_of(graph, 1),
                                         result_of(graph, 2), result_of(graph, 3)));
}

TEST(CheckedValues, NoSumsInsideAnAccelerator) {
  graph::Graph graph = scores();
  add_checked_values(graph, true, true);
  EXPECT_THAT(graph.outputs,
              ElementsAre(result_of(graph, 0), result_of(graph, 2), result_of(graph, 3)));
}

TEST(CheckedValues, NoInputsAndNothingTwice) {
  graph::Graph graph = scores();
  const std::vector<ValueId> outputs = graph.outputs;
  add_outputs(graph, {graph.inputs.at(0), outputs.at(0)});
  EXPECT_EQ(graph.outputs, outputs);
}

}  // namespace
}  // namespace tilewright::driver
