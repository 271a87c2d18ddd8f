#include "tilewright/graph/ir/rewriter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

using ::testing::ElementsAre;

/// The pass of the example in rewriter.h, for Neg: x => 0 - x.
class NoNeg : private Rewriter {
 public:
  using Rewriter::Rewriter;

  Result<Graph> run() {
    for (const Node& node : old().nodes) {
      release(node);
      if (node.op == "Neg") {
        const ValueId zero = constant("zero", Array::scalar(DType::F32, 0));
        const ValueId x = keep(node.inputs[0]);
        define(node.outputs[0], TW_TRY(append(node.name, "Sub", {zero, x})));
      } else {
        copy(node);
      }
    }
    for (const ValueId id : old().outputs) output(keep(id));
    return finish();
  }
};

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(graph.values[static_cast<size_t>(id)].name);
  return names;
}

TEST(Rewriter, ReplacesNodesAndKeepsTheRest) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  b.input("not read", DType::F32, {1});
  const ValueId first = b.node("Neg", {x}, {}, "first");
  b.output(b.node("Abs", {first}, {}, "abs"), "y");
  b.output(b.node("Neg", {first}, {}, "second"), "z");
  const Graph graph = finish(b);
  const Result<Graph> made = NoNeg(graph).run();
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_TRUE(verify(*made));
  EXPECT_EQ(made->name, "net");
  EXPECT_THAT(names_of(*made, made->inputs), ElementsAre("x", "not read"));
  EXPECT_THAT(names_of(*made, made->outputs), ElementsAre("y", "z"));
  ASSERT_EQ(made->nodes.size(), 3u);
  // Nodes and values keep their names; a name that is asked for twice is made new.
  EXPECT_EQ(made->nodes[0].name, "first");
  EXPECT_EQ(made->nodes[0].op, "Sub");
  EXPECT_EQ(made->nodes[1].name, "abs");
  EXPECT_EQ(made->nodes[1].inputs, made->nodes[0].outputs);
  EXPECT_THAT(names_of(*made, made->nodes[0].inputs), ElementsAre("zero", "x"));
  EXPECT_THAT(names_of(*made, made->nodes[0].outputs), ElementsAre("first"));
  EXPECT_THAT(names_of(*made, made->nodes[2].inputs), ElementsAre("zero_2", "first"));
  const std::vector<Array> inputs = random_inputs(graph, 1);
  const auto before = run_graph(graph, inputs), after = run_graph(*made, inputs);
  ASSERT_TRUE(before && after);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(max_difference((*before)[i], (*after)[i]), 0);
}

TEST(Rewriter, KnowsWhatOldValuesBecame) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4});
  const ValueId w = b.constant("w", Array(DType::F32, {4}));
  const ValueId sum = b.node("Add", {x, w});
  b.output(sum, "y");
  const Graph graph = finish(b);
  Rewriter rewriter(graph);
  EXPECT_EQ(rewriter.now(x), rewriter.graph().inputs[0]);
  EXPECT_EQ(rewriter.now(w), -1);
  const ValueId mine = rewriter.keep(w);
  EXPECT_EQ(rewriter.keep(w), mine);
  EXPECT_EQ(rewriter.now(w), mine);
  EXPECT_EQ(rewriter.keep(-1), -1);
  EXPECT_EQ(rewriter.known(-1), nullptr);
  EXPECT_EQ(rewriter.known(x), nullptr);
  EXPECT_NE(rewriter.known(w), nullptr);
  EXPECT_EQ(rewriter.value_name("x"), "x_2");  // names of the old graph are taken
  EXPECT_EQ(rewriter.node_name("Add"), "Add_2");
  rewriter.replace(sum, mine);
  EXPECT_EQ(rewriter.keep(sum), mine);
  EXPECT_EQ(rewriter.new_value(mine).name, "w");
}

TEST(Editor, GoesOnWithAGraph) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 6});
  const ValueId y = b.node("Neg", {x}, {}, "neg");
  b.output(y, "y");
  Editor editor(finish(b));
  const std::vector<Node> nodes = editor.take_nodes();
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_TRUE(editor.graph().nodes.empty());
  const Result<ValueId> flat = editor.reshape("neg", x, {12});
  ASSERT_TRUE(flat) << to_string(flat.error());
  EXPECT_EQ(editor.graph().nodes[0].name, "neg_2");  // the name of the node taken out stays taken
  EXPECT_EQ(editor.shape(*flat), Shape{12});
  const Result<ValueId> own =
      editor.append_own("blocks", "ToBlocked", {x}, attrs_of({{"block", 4}}));
  ASSERT_TRUE(own) << to_string(own.error());
  EXPECT_EQ(editor.shape(*own), (Shape{2, 2, 4}));
  editor.put(nodes[0]);
  EXPECT_EQ(editor.graph().nodes.back().outputs, std::vector<ValueId>{y});
  EXPECT_TRUE(verify(editor.graph()));
  editor.release(nodes[0]);
  EXPECT_EQ(editor.node_name("neg"), "neg");
  EXPECT_EQ(editor.value_name("x"), "x_2");
}

TEST(Editor, SaysWhatCannotBeAppended) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  b.output(b.node("Neg", {x}), "y");
  Editor editor(finish(b));
  const auto wrong = editor.append("product", "MatMul", {x, x});
  ASSERT_FALSE(wrong);
  EXPECT_NE(to_string(wrong.error()).find("node 'product'"), std::string::npos);
  EXPECT_EQ(editor.graph().nodes.size(), 1u);
}

}  // namespace
}  // namespace tilewright::graph
