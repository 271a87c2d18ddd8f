#include "tilewright/graph/onnx/dynamic_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

void add_list(onnx::ModelProto& m, const std::string& name, const std::vector<double>& values) {
  add_weight(m, name, Array::of(DType::F64, values).cast(DType::I64));
}

/// `rows`: those of x [6, 4] whose flag is set.
onnx::ModelProto chosen_rows() {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {6, 4});
  add_input(m, "flags", {6}, 9);
  set_attr(add_node(m, "Compress", {"x", "flags"}, {"rows"}), "axis", int64_t{0});
  return m;
}

/// The types of the outputs `names`: an axis that the run decides as <=.
std::vector<std::string> types_of(onnx::ModelProto m, const std::vector<std::string>& names) {
  for (const std::string& name : names) add_output(m, name);
  const auto graph = import(m);
  EXPECT_TRUE(graph) << to_string(graph.error());
  std::vector<std::string> types;
  if (graph)
    for (ValueId id : graph->outputs)
      types.push_back(to_string(graph->values[static_cast<size_t>(id)].type));
  return types;
}

std::string refusal(onnx::ModelProto m, const std::string& output) {
  add_output(m, output);
  const auto graph = import(m);
  EXPECT_FALSE(graph);
  return graph ? std::string() : to_string(graph.error());
}

TEST(DynamicNodes, KeepsAtMostKOfWhatWasFound) {
  onnx::ModelProto m = chosen_rows();
  add_list(m, "zero", {0}), add_list(m, "four", {4}), add_list(m, "one", {1});
  add_node(m, "Shape", {"rows"}, {"shape"}, "shape");
  add_node(m, "Gather", {"shape", "zero"}, {"n"}, "n");
  set_attr(add_node(m, "Concat", {"four", "n"}, {"both"}), "axis", int64_t{0});
  add_node(m, "ReduceMin", {"both"}, {"least"});
  add_node(m, "Reshape", {"least", "one"}, {"k"});
  set_attr(add_node(m, "TopK", {"rows", "k"}, {"best", "at"}), "axis", int64_t{0});
  set_attr(add_node(m, "Gather", {"rows", "at"}, {"picked"}, "picked"), "axis", int64_t{0});
  EXPECT_EQ(types_of(m, {"best", "at", "picked"}),
            (std::vector<std::string>{"f32[<=4, 4]", "i64[<=4, 4]", "f32[<=4, 4, 4]"}));
}

TEST(DynamicNodes, WhatImportingMadeIsNotReadBack) {
  onnx::ModelProto m = chosen_rows();
  add_node(m, "Shape", {"rows"}, {"shape"}, "shape");
  add_output(m, "shape");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto again = import_onnx_bytes(to_onnx(*graph), "");
  ASSERT_FALSE(again);
  EXPECT_THAT(to_string(again.error()), HasSubstr("compile the original model"));
}

TEST(DynamicNodes, RowsStayStaticFromProductToProduct) {
  onnx::ModelProto m = chosen_rows();
  add_weight(m, "w", Array(DType::F32, {4, 8}));
  add_weight(m, "v", Array(DType::F32, {8, 2}));
  add_node(m, "MatMul", {"rows", "w"}, {"a"}, "first");
  add_node(m, "Relu", {"a"}, {"b"});
  add_node(m, "MatMul", {"b", "v"}, {"c"}, "second");
  EXPECT_EQ(types_of(m, {"c"}), std::vector<std::string>{"f32[<=6, 2]"});
  add_output(m, "c");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(count(*graph, "PadToStatic"), 1);
  EXPECT_EQ(count(*graph, "DynamicSlice"), 1);
}

TEST(DynamicNodes, ReductionsOverTheRowsAreStatic) {
  onnx::ModelProto m = chosen_rows();
  set_attr(add_node(m, "ReduceMax", {"rows"}, {"all"}), "keepdims", int64_t{0});
  auto& mean = add_node(m, "ReduceMean", {"rows"}, {"mean"});
  set_attr(mean, "axes", Ints{0});
  set_attr(mean, "keepdims", int64_t{0});
  set_attr(add_node(m, "Softmax", {"rows"}, {"soft"}), "axis", int64_t{0});
  set_attr(add_node(m, "ArgMax", {"rows"}, {"first"}), "axis", int64_t{1});
  EXPECT_EQ(types_of(m, {"all", "mean", "soft", "first"}),
            (std::vector<std::string>{"f32[]", "f32[4]", "f32[<=6, 4]", "i64[<=6, 1]"}));
}

TEST(DynamicNodes, EqualExtentsMayBeAdded) {
  onnx::ModelProto m = chosen_rows();
  add_list(m, "flat", {-1}), add_list(m, "pairs", {-1, 2}), add_list(m, "one", {1});
  add_node(m, "Reshape", {"rows", "flat"}, {"a"}, "a");
  add_node(m, "Relu", {"rows"}, {"r"});
  add_node(m, "Reshape", {"r", "pairs"}, {"p"}, "p");
  add_node(m, "Reshape", {"p", "flat"}, {"b"}, "b");
  add_node(m, "Add", {"a", "b"}, {"sum"});
  add_list(m, "start", {1}), add_list(m, "end", {5}), add_list(m, "axis", {0});
  add_node(m, "Slice", {"a", "start", "end", "axis"}, {"c"}, "c");
  add_node(m, "Slice", {"b", "start", "end", "axis"}, {"d"}, "d");
  add_node(m, "Mul", {"c", "d"}, {"product"});
  EXPECT_EQ(types_of(m, {"sum", "p", "product"}),
            (std::vector<std::string>{"f32[<=24]", "f32[<=12, 2]", "f32[<=4]"}));
  add_input(m, "more", {6}, 9);
  set_attr(add_node(m, "Compress", {"x", "more"}, {"others"}, "others"), "axis", int64_t{0});
  add_node(m, "Sub", {"rows", "others"}, {"other"}, "other");
  EXPECT_THAT(refusal(m, "other"), HasSubstr("whether its inputs fit"));
}

TEST(DynamicNodes, PartsAreJoinedAlongTheirExtents) {
  onnx::ModelProto m = chosen_rows();
  add_weight(m, "more", Array(DType::F32, {3, 4}));
  set_attr(add_node(m, "Concat", {"rows", "more", "rows"}, {"joined"}), "axis", int64_t{0});
  EXPECT_EQ(types_of(m, {"joined"}), std::vector<std::string>{"f32[<=15, 4]"});
}

TEST(DynamicNodes, PartsOfOtherTypesAreRefusedAtOnce) {
  onnx::ModelProto m = chosen_rows();
  add_weight(m, "more", Array(DType::I32, {3, 4}));
  set_attr(add_node(m, "Concat", {"rows", "more"}, {"joined"}), "axis", int64_t{0});
  EXPECT_THAT(refusal(m, "joined"), HasSubstr("the_Concat"));
}

/// Sums of bytes wrap: 200 + 100 is no extent of 300.
TEST(DynamicNodes, NarrowIntegersAreNotFollowed) {
  onnx::ModelProto m = empty_model();
  add_input(m, "flag", {1}, 9);
  add_weight(m, "a", Array::of(DType::F32, std::vector<double>{200}).cast(DType::U8));
  add_weight(m, "b", Array::of(DType::F32, std::vector<double>{100}).cast(DType::U8));
  add_node(m, "Where", {"flag", "a", "a"}, {"c"});
  add_node(m, "Add", {"c", "b"}, {"d"});
  add_output(m, "d");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(count(*graph, "Add"), 1);
}

TEST(DynamicNodes, ABranchMayDecideTheExtent) {
  onnx::ModelProto m = chosen_rows();
  add_input(m, "which", {}, 9);
  const auto branch = [](const std::string& name, const onnx::NodeProto& node) {
    onnx::AttributeProto a;
    a.set_name(name), a.set_type(5);
    *a.mutable_g()->add_node() = node;
    a.mutable_g()->add_output()->set_name(node.output(0));
    return a;
  };
  auto& choice = add_node(m, "If", {"which"}, {"y"}, "choice");
  *choice.add_attribute() = branch("then_branch", make_node("Relu", {"rows"}, {"a"}));
  *choice.add_attribute() = branch("else_branch", make_node("Relu", {"x"}, {"b"}));
  EXPECT_EQ(types_of(m, {"y"}), std::vector<std::string>{"f32[<=6, 4]"});
  auto& other = *m.mutable_graph()->mutable_node(1);
  *other.mutable_attribute(1) = branch("else_branch", make_node("Shape", {"x"}, {"b"}));
  EXPECT_THAT(refusal(m, "y"), HasSubstr("give different types"));
}

TEST(DynamicNodes, TwoExtentsInOneValueAreRefused) {
  onnx::ModelProto m = chosen_rows();
  add_node(m, "NonZero", {"flags"}, {"places"});
  add_node(m, "NonZero", {"x"}, {"others"}, "others");
  add_list(m, "zero", {0}), add_list(m, "last", {1});
  add_node(m, "Shape", {"rows"}, {"s"}, "s1"), add_node(m, "Shape", {"others"}, {"t"}, "s2");
  add_node(m, "Gather", {"s", "zero"}, {"n"}, "g1"),
      add_node(m, "Gather", {"t", "last"}, {"k"}, "g2");
  set_attr(add_node(m, "Concat", {"n", "k"}, {"shape"}), "axis", int64_t{0});
  add_node(m, "ConstantOfShape", {"shape"}, {"y"}, "filled");
  EXPECT_THAT(refusal(m, "y"), HasSubstr("two such axes"));
}

}  // namespace
}  // namespace tilewright::graph
