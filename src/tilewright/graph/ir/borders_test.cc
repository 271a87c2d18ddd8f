// Names, types and order of inputs and outputs are the user's: whatever a model calls its values
// inside, and whatever passes do.
#include "tilewright/graph/ir/borders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::string> names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> result;
  for (const ValueId id : ids) result.push_back(graph.values[static_cast<size_t>(id)].name);
  return result;
}

/// A branch that yields `from`, made of `node` if it is not empty.
void set_branch(onnx::NodeProto& node, const std::string& name, const std::string& from,
                const std::string& op) {
  auto& a = *node.add_attribute();
  a.set_name(name), a.set_type(5);
  a.mutable_g()->set_name(name);
  const std::string inner = op.empty() ? from : "inner";
  if (!op.empty()) *a.mutable_g()->add_node() = make_node(op, {from}, {inner});
  a.mutable_g()->add_output()->set_name(inner);
}

/// If over a constant: y is `op` of `from`, or `from` itself.
void add_if(onnx::ModelProto& m, const std::string& y, const std::string& from,
            const std::string& op = "") {
  if (m.graph().initializer_size() == 0) add_weight(m, "yes", Array::scalar(DType::Bool, 1));
  onnx::NodeProto& node = add_node(m, "If", {"yes"}, {y}, "if_" + y);
  set_branch(node, "then_branch", from, op);
  set_branch(node, "else_branch", "x", "Neg");
  add_output(m, y);
}

TEST(ImportedOutputs, KeepTheirNamesBehindIf) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2, 3});
  add_node(m, "Relu", {"x"}, {"r"});
  add_if(m, "made", "x", "Tanh");
  add_weight(m, "w", Array::of(DType::F32, std::vector<double>{1, 2}));
  add_if(m, "of_input", "x");
  add_if(m, "of_weight", "w");
  add_if(m, "of_value", "r");
  add_if(m, "again", "r");
  add_output(m, "r");
  add_output(m, "w");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_TRUE(verify(*graph));
  EXPECT_THAT(names(*graph, graph->outputs),
              ElementsAre("made", "of_input", "of_weight", "of_value", "again", "r", "w"));
  EXPECT_THAT(names(*graph, graph->inputs), ElementsAre("x"));
  const auto results = run_graph(
      *graph, {Array::of(DType::F32, std::vector<double>{-1, 0, 1, 2, 3, -4}).reshaped({2, 3})});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[1].to_doubles(), (std::vector<double>{-1, 0, 1, 2, 3, -4}));
  EXPECT_EQ((*results)[2].to_doubles(), (std::vector<double>{1, 2}));
  for (const size_t i : {3, 4, 5})
    EXPECT_EQ((*results)[i].to_doubles(), (std::vector<double>{0, 0, 1, 2, 3, 0})) << i;
}

TEST(ImportedOutputs, KeepTheirNamesBehindFunctions) {
  onnx::ModelProto m = empty_model();
  auto& f = *m.add_functions();
  f.set_name("F"), f.set_domain("own"), f.add_input("i");
  for (const char* out : {"a", "b", "i"}) f.add_output(out);
  *f.add_node() = make_node("Relu", {"i"}, {"a"}, "inside");
  *f.add_node() = make_node("Neg", {"a"}, {"b"});
  auto& opset = *f.add_opset_import();
  opset.set_version(17);
  add_input(m, "x", {2, 3});
  add_node(m, "F", {"x"}, {"y", "z", "same"}, "call").set_domain("own");
  // A value inside happens to have the name of an output.
  add_node(m, "Tanh", {"x"}, {"call/a"}, "outside");
  for (const char* name : {"y", "z", "same", "call/a"}) add_output(m, name);
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_TRUE(verify(*graph));
  EXPECT_THAT(names(*graph, graph->outputs), ElementsAre("y", "z", "same", "call/a"));
}

TEST(ImportedOutputs, OfOneNameAreRefused) {
  onnx::ModelProto m = sound_model();
  add_output(m, "y");
  const auto graph = import(m);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().what, "two outputs are named 'y'");
}

/// Outputs that passes like to replace.
Graph graph_of_replaceable_outputs() {
  Builder b("borders");
  Rng rng(3);
  const ValueId x = b.input("x", DType::F32, {1, 8, 4, 4});
  b.input("unused", DType::I64, {2});
  const ValueId w = b.constant("w", random_array(rng, DType::F32, {8, 8, 1, 1}));
  const ValueId conv = b.node("Conv", {x, w});
  const auto act = [&](ValueId id) { return b.node("Relu", {id}); };
  b.output(b.node("Identity", {x}), "copy_of_input");
  b.output(b.node("Identity", {w}), "copy_of_weight");
  b.output(b.node("Reshape", {conv, b.ints({1, 8, 4, 4})}), "reshaped");
  b.output(b.node("Identity", {conv}), "copy");
  b.output(b.node("Identity", {conv}), "same_copy");
  b.output(conv, "conv");
  b.output(act(conv), "act");
  b.output(act(act(conv)), "twice");
  b.output(act(conv), "equal_to_act");
  b.output(b.node("Add", {w, w}), "folded");
  b.output(b.node("Dropout", {act(conv)}), "dropped");
  b.output(b.node("Mul", {conv, b.constant("one", Array::scalar(DType::F32, 1))}), "scaled");
  b.output(b.node("Transpose", {b.node("Transpose", {conv})}), "turned_back");
  b.output(b.node("Concat", {conv}, {{"axis", int64_t{1}}}), "alone");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << (graph ? "" : to_string(graph.error()));
  // An input and a weight as outputs, by their own names.
  graph->outputs.push_back(x);
  graph->outputs.push_back(w);
  return *std::move(graph);
}

TEST(Borders, SurviveEveryPass) {
  const Graph graph = graph_of_replaceable_outputs();
  const std::vector<Array> inputs = random_inputs(graph, 5);
  const auto want = run_graph(graph, inputs);
  ASSERT_TRUE(want) << to_string(want.error());
  std::vector<std::string> pipelines = {default_passes()};
  for (const Pass& pass : all_passes()) pipelines.push_back(pass.name);
  for (const std::string& passes : pipelines) {
    PassContext context;
    context.evaluate = interp_evaluate;
    context.vector_bytes = 16;
    context.verify_each = true;
    const auto made = run_passes(graph, passes, context);
    ASSERT_TRUE(made) << passes << ": " << to_string(made.error());
    EXPECT_EQ(border_difference(graph, made->graph), "") << passes;
    EXPECT_THAT(names(made->graph, made->graph.outputs),
                ElementsAreArray(names(graph, graph.outputs)));
    const auto got = run_graph(made->graph, inputs);
    ASSERT_TRUE(got) << passes << ": " << to_string(got.error());
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(max_difference((*want)[i], (*got)[i]), 0) << passes << ", output " << i;
  }
}

TEST(Borders, DifferencesAreFound) {
  const Graph graph = graph_of_replaceable_outputs();
  Graph renamed = graph, retyped = graph, dropped = graph, swapped = graph;
  renamed.values[static_cast<size_t>(graph.outputs[3])].name = "other";
  retyped.values[static_cast<size_t>(graph.inputs[0])].type.dtype = DType::F16;
  dropped.inputs.pop_back();
  std::swap(swapped.outputs[0], swapped.outputs[1]);
  EXPECT_EQ(border_difference(graph, graph), "");
  // A bound may become a number of elements within it, and nothing else.
  Graph bounded = graph, longer = graph, wider = graph;
  const auto last = static_cast<size_t>(graph.outputs[3]);
  bounded.values[last].type.dynamic_axis = 0;
  EXPECT_EQ(border_difference(bounded, graph), "");
  EXPECT_NE(border_difference(graph, bounded), "");
  ++longer.values[last].type.shape[0];
  EXPECT_NE(border_difference(bounded, longer), "");
  ++wider.values[last].type.shape[1];
  EXPECT_NE(border_difference(bounded, wider), "");
  EXPECT_THAT(border_difference(graph, renamed), testing::HasSubstr("'other'"));
  EXPECT_THAT(border_difference(graph, retyped), testing::HasSubstr("f16"));
  EXPECT_EQ(border_difference(graph, dropped), "1 inputs instead of 2");
  EXPECT_THAT(border_difference(graph, swapped), testing::HasSubstr("output 0"));
}

}  // namespace
}  // namespace tilewright::graph
