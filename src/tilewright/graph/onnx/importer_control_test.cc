// Loops and sequences: unrolled models compute what the loop says, and what cannot be unrolled is
// refused with its reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<double>;

struct Named {
  std::string name;
  Ints shape;
  int type = 1;
};

/// A graph for an attribute.
onnx::AttributeProto body_of(const std::string& name, const std::vector<Named>& inputs,
                             const std::vector<onnx::NodeProto>& nodes,
                             const std::vector<Named>& outputs) {
  onnx::AttributeProto a;
  a.set_name(name), a.set_type(5);
  for (const Named& input : inputs)
    set_type(*a.mutable_g()->add_input(), input.name, input.shape, input.type);
  for (const onnx::NodeProto& node : nodes) *a.mutable_g()->add_node() = node;
  for (const Named& output : outputs)
    set_type(*a.mutable_g()->add_output(), output.name, output.shape, output.type);
  return a;
}

constexpr int kInt = 7, kBool = 9;

/// s' = s + x, scanned: s'; the name `step` is outside, too.
onnx::ModelProto loop_model(int64_t trips) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2});
  add_weight(m, "trips", Array::scalar(DType::I64, static_cast<double>(trips)));
  add_node(m, "Neg", {"x"}, {"step"}, "outside");
  auto& loop = add_node(m, "Loop", {"trips", "", "step"}, {"last", "all"}, "loop");
  *loop.add_attribute() =
      body_of("body", {{"i", {}, kInt}, {"go", {}, kBool}, {"s", {2}}},
              {make_node("Identity", {"go"}, {"goes_on"}), make_node("Add", {"s", "x"}, {"t"})},
              {{"goes_on", {}, kBool}, {"t", {2}}, {"t", {2}}});
  add_output(m, "last");
  add_output(m, "all");
  return m;
}

std::vector<Floats> results_of(const onnx::ModelProto& m, const std::vector<Array>& inputs) {
  const auto graph = import(m);
  EXPECT_TRUE(graph) << to_string(graph.error());
  const auto out = graph ? run_graph(*graph, inputs) : std::vector<Array>();
  EXPECT_TRUE(out) << to_string(out.error());
  std::vector<Floats> numbers;
  if (out)
    for (const Array& array : *out) numbers.push_back(array.to_doubles());
  return numbers;
}

std::string refusal(const onnx::ModelProto& m) {
  const auto graph = import(m);
  EXPECT_FALSE(graph);
  return graph ? std::string() : to_string(graph.error());
}

const Array kPair = Array::of(DType::F32, Floats{1, 2});

TEST(ImportControl, ALoopIsUnrolled) {
  EXPECT_EQ(results_of(loop_model(3), {kPair}), (std::vector<Floats>{{2, 4}, {0, 0, 1, 2, 2, 4}}));
  EXPECT_EQ(import(loop_model(3))->nodes[1].name, "loop/0/the_Add");
}

TEST(ImportControl, ALoopThatNeverRunsGivesWhatItStartsWith) {
  EXPECT_EQ(results_of(loop_model(0), {kPair}), (std::vector<Floats>{{-1, -2}, {}}));
}

TEST(ImportControl, ALoopEndsByItsCondition) {
  // i < 2 goes on: iterations 0, 1 and 2 run.
  onnx::ModelProto m = loop_model(100);
  auto& body = *m.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
  *body.add_initializer() = tensor_of("two", Array::scalar(DType::I64, 2));
  *body.mutable_node(0) = make_node("Less", {"i", "two"}, {"goes_on"});
  EXPECT_EQ(results_of(m, {kPair})[0], (Floats{2, 4}));
}

TEST(ImportControl, WhatIsKnownOnlyAtRunTimeIsRefused) {
  onnx::ModelProto m = loop_model(3);
  add_input(m, "n", {}, kInt);
  m.mutable_graph()->mutable_node(1)->set_input(0, "n");
  EXPECT_THAT(refusal(m), HasSubstr("the number of iterations of this Loop is known only at run"));
  EXPECT_THAT(refusal(m), HasSubstr("input 'n'"));
  m = loop_model(3);
  add_input(m, "c", {}, kBool);
  auto& body = *m.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
  body.mutable_node(0)->set_input(0, "c");
  EXPECT_THAT(refusal(m), HasSubstr("that iteration 0 of this Loop yields is known only at run"));
}

TEST(ImportControl, ALoopThatIsTooLongIsRefused) {
  const std::string text = refusal(loop_model(1'000'000));
  EXPECT_THAT(text, HasSubstr("of 1000000 iterations it has more than 20000 nodes"));
  EXPECT_THAT(text, HasSubstr("compile the body as a model of its own"));
}

TEST(ImportControl, AnErrorInABodyIsReportedOnce) {
  onnx::ModelProto m = loop_model(3);
  auto& body = *m.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
  body.mutable_node(1)->set_op_type("Frobnicate");
  const std::string text = refusal(m);
  EXPECT_THAT(text, HasSubstr("in iteration 0 in body of node 'loop' (Loop)"));
  EXPECT_EQ(text.find("Frobnicate is not"), text.rfind("Frobnicate is not")) << text;
}

TEST(ImportControl, AScanTakesSlicesInBothDirections) {
  onnx::ModelProto m = empty_model();
  add_input(m, "start", {2});
  add_input(m, "x", {2, 3});
  auto& scan = add_node(m, "Scan", {"start", "x"}, {"last", "all"}, "scan");
  *scan.add_attribute() = body_of(
      "body", {{"s", {2}}, {"e", {2}}},
      {make_node("Mul", {"s", "e"}, {"p"}, "mul"), make_node("Add", {"p", "e"}, {"t"}, "add")},
      {{"t", {2}}, {"t", {2}}});
  set_attr(scan, "num_scan_inputs", int64_t{1});
  set_attr(scan, "scan_input_axes", Ints{-1});
  set_attr(scan, "scan_input_directions", Ints{1});
  set_attr(scan, "scan_output_axes", Ints{1});
  set_attr(scan, "scan_output_directions", Ints{1});
  add_output(m, "last");
  add_output(m, "all");
  const Array x = Array::of(DType::F32, Floats{1, 2, 3, 4, 5, 6}).reshaped({2, 3});
  // From the last column: s = s * e + e, that is 6, 14, 15 and 18, 95, 384.
  EXPECT_EQ(results_of(m, {kPair, x}), (std::vector<Floats>{{15, 384}, {15, 14, 6, 384, 95, 18}}));
}

TEST(ImportControl, ElementsOfSequencesAreFollowed) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {3});
  const auto position = [&](const char* name, double at) {
    add_weight(m, name, Array::scalar(DType::I64, at));
  };
  position("last", -1), position("first", 0);
  set_attr(add_node(m, "SplitToSequence", {"x"}, {"parts"}), "axis", int64_t{0});
  add_node(m, "SequenceAt", {"parts", "last"}, {"c"});
  add_node(m, "SequenceErase", {"parts", "first"}, {"two"});
  add_node(m, "SequenceInsert", {"two", "c", "first"}, {"three"});
  *add_node(m, "SequenceMap", {"three", "c"}, {"mapped"}).add_attribute() = body_of(
      "body", {{"a", {1}}, {"b", {1}}}, {make_node("Mul", {"a", "b"}, {"r"})}, {{"r", {1}}});
  set_attr(add_node(m, "ConcatFromSequence", {"mapped"}, {"y"}), "axis", int64_t{0});
  add_node(m, "SequenceLength", {"mapped"}, {"n"});
  add_output(m, "y");
  add_output(m, "n");
  EXPECT_EQ(results_of(m, {Array::of(DType::F32, Floats{1, 2, 3})}),
            (std::vector<Floats>{{9, 6, 9}, {3}}));
}

TEST(ImportControl, SequencesThatCannotBeFollowedAreRefused) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {3});
  add_input(m, "at", {}, kInt);
  add_node(m, "SplitToSequence", {"x"}, {"parts"});
  add_node(m, "SequenceAt", {"parts", "at"}, {"c"}, "pick");
  add_node(m, "Relu", {"parts"}, {"r"}, "relu");
  add_output(m, "parts");
  const std::string text = refusal(m);
  EXPECT_THAT(text, HasSubstr("the position (input 1) of this SequenceAt is known only at run"));
  EXPECT_THAT(text, HasSubstr("input 0 of Relu is a sequence"));
  EXPECT_THAT(text, HasSubstr("output 'parts' is a sequence"));
}

}  // namespace
}  // namespace tilewright::graph
