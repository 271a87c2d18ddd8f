#include "tilewright/graph/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tilewright/base/file.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

TEST(Import, DimensionsAreBoundByNameOrShape) {
  onnx::ModelProto m = empty_model();
  add_input(m, "a", {-1, 3});
  add_input(m, "b", {-1, -2});
  add_node(m, "Add", {"a", "b"}, {"y"});
  add_output(m, "y");
  ImportOptions options;
  options.dims["N"] = 4;
  options.shapes["b"] = {1, 3};
  options.dims["unused"] = 1;
  const auto graph = import(m, options);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_THAT(print(*graph), HasSubstr("y: f32[4, 3]"));
  ASSERT_EQ(graph->warnings.size(), 1u);
  EXPECT_THAT(graph->warnings[0], HasSubstr("unused"));
  options.shapes["a"] = {4, 7};
  EXPECT_THAT(to_string(import(m, options).error()), HasSubstr("fixes it to 3"));
  options.shapes["a"] = {4};
  EXPECT_THAT(to_string(import(m, options).error()), HasSubstr("rank"));
}

TEST(Import, ShapeArithmeticIsFolded) {
  // y = reshape(x, [shape(x)[0], -1]) as exporters write it.
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2, 3, 4});
  add_weight(m, "zero", ints({0}));
  add_weight(m, "minus", ints({-1}));
  add_node(m, "Shape", {"x"}, {"s"});
  set_attr(add_node(m, "Gather", {"s", "zero"}, {"n"}), "axis", int64_t{0});
  set_attr(add_node(m, "Concat", {"n", "minus"}, {"t"}), "axis", int64_t{0});
  add_node(m, "Reshape", {"x", "t"}, {"y"});
  add_output(m, "y");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->nodes.size(), 1u);
  EXPECT_THAT(print(*graph), HasSubstr("y: f32[2, 12]"));
}

TEST(Import, WhatNobodyReadsMayHoldText) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2});
  onnx::TensorProto* labels = m.mutable_graph()->add_initializer();
  labels->set_name("labels"), labels->set_data_type(8), labels->add_dims(1);
  labels->add_string_data("cat");
  onnx::AttributeProto* text = add_node(m, "Constant", {}, {"t"}, "text").add_attribute();
  text->set_name("value_string"), text->set_type(3), text->set_s("cat");
  onnx::AttributeProto* tensor = add_node(m, "Constant", {}, {"u"}, "more").add_attribute();
  tensor->set_name("value"), tensor->set_type(4), *tensor->mutable_t() = *labels;
  add_node(m, "Relu", {"x"}, {"y"});
  add_output(m, "y");
  ASSERT_TRUE(import(m)) << to_string(import(m).error());
  for (const char* name : {"labels", "t", "u"}) {
    onnx::ModelProto reads = m;
    add_node(reads, "Identity", {name}, {"z"});
    add_output(reads, "z");
    const auto graph = import(reads);
    ASSERT_FALSE(graph) << name;
    EXPECT_EQ(graph.error().kind, ErrorKind::Unsupported);
  }
}

TEST(Import, SparseWeightsGetTheirZeros) {
  for (const std::vector<int64_t>& indices : {std::vector<int64_t>{1, 5}, {0, 1, 1, 2}}) {
    onnx::ModelProto m = empty_model();
    add_input(m, "x", {2, 3});
    onnx::SparseTensorProto& sparse = *m.mutable_graph()->add_sparse_initializer();
    sparse.add_dims(2), sparse.add_dims(3);
    onnx::TensorProto& values = *sparse.mutable_values();
    values.set_name("w"), values.set_data_type(1), values.add_dims(2);
    values.add_float_data(1.5F), values.add_float_data(-2.0F);
    onnx::TensorProto& places = *sparse.mutable_indices();
    places.set_data_type(7), places.add_dims(2);
    if (indices.size() == 4) places.add_dims(2);
    for (const int64_t index : indices) places.add_int64_data(index);
    add_node(m, "Add", {"x", "w"}, {"y"});
    add_output(m, "y");
    const auto graph = import(m);
    ASSERT_TRUE(graph) << to_string(graph.error());
    const Array& w = *graph->values[static_cast<size_t>(graph->nodes[0].inputs[1])].constant;
    ASSERT_EQ(w.shape(), (Shape{2, 3}));
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(w.get(i), i == 1 ? 1.5 : i == 5 ? -2.0 : 0.0);
    places.set_int64_data(1, indices.size() == 4 ? 3 : 6);
    EXPECT_THAT(to_string(import(m).error()), HasSubstr("index of value"));
    places.mutable_int64_data()->RemoveLast(), places.set_dims(0, 1);
    EXPECT_THAT(to_string(import(m).error()), HasSubstr("sparse weight 'w'"));
  }
}

TEST(Import, NodesMayBeOutOfOrder) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2});
  add_node(m, "Neg", {"r"}, {"y"});
  add_node(m, "Relu", {"x"}, {"r"});
  add_output(m, "y");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->nodes[0].op, "Relu");
}

TEST(Import, NaNWeightsAreAWarning) {
  onnx::ModelProto m = sound_model();
  Array w(DType::F32, {3});
  w.set(1, std::nan(""));
  add_weight(m, "w", w);
  add_node(m, "Add", {"x", "w"}, {"z"});
  const auto graph = import(m);
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->warnings.size(), 1u);
  EXPECT_EQ(graph->warnings[0], "weight 'w' has 1 NaN of 3 values");
}

TEST(Import, AnInputWithAnInitializerIsAConstant) {
  onnx::ModelProto m = sound_model();
  add_input(m, "w", {3});
  add_weight(m, "w", Array(DType::F32, {3}));
  add_node(m, "Add", {"x", "w"}, {"z"});
  add_output(m, "z");
  const auto graph = import(m);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->inputs.size(), 1u);
}

onnx::AttributeProto branch_of(const std::string& name, const std::string& op) {
  onnx::AttributeProto a;
  a.set_name(name), a.set_type(5);
  *a.mutable_g()->add_node() = make_node(op, {"x"}, {"inner"}, "in_" + name);
  a.mutable_g()->add_output()->set_name("inner");
  return a;
}

TEST(Import, IfWithAKnownConditionIsResolved) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2});
  add_input(m, "rate", {}, 7);
  add_weight(m, "wanted", Array::scalar(DType::I64, 16000));
  add_node(m, "Equal", {"rate", "wanted"}, {"c"});
  onnx::NodeProto& branch = add_node(m, "If", {"c"}, {"y"}, "branch");
  *branch.add_attribute() = branch_of("then_branch", "Relu");
  *branch.add_attribute() = branch_of("else_branch", "Neg");
  add_output(m, "y");
  const auto both = import(m);  // the run decides: both branches, and a choice
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_EQ(count(*both, "Relu") + count(*both, "Neg") + count(*both, "DynamicSelect"), 3);
  for (const auto& [rate, op] : {std::pair{16000, "Relu"}, std::pair{8000, "Neg"}}) {
    ImportOptions options;
    options.constants["rate"] = Array::scalar(DType::I64, rate);
    const auto graph = import(m, options);
    ASSERT_TRUE(graph) << to_string(graph.error());
    ASSERT_EQ(graph->nodes.size(), 1u);
    EXPECT_EQ(graph->nodes[0].op, op);
    EXPECT_EQ(graph->inputs.size(), 1u);
    ImportOptions needed;
    needed.constants_if_needed["rate"] = Array::scalar(DType::I64, rate);
    needed.constants_if_needed["x"] = Array(DType::F32, {2});
    EXPECT_EQ(import(m, needed)->inputs.size(), 1u);  // x stays an input
  }
}

TEST(Import, FunctionsAreInlinedWithTheirAttributes) {
  onnx::ModelProto m = empty_model();
  add_input(m, "x", {2});
  auto& f = *m.add_functions();
  f.set_name("Twice"), f.set_domain("own"), f.add_input("i"), f.add_output("o");
  f.add_attribute("slope");
  f.add_opset_import()->set_version(17);
  auto& leaky = *f.add_node() = make_node("LeakyRelu", {"i"}, {"t"}, "leaky");
  leaky.add_attribute()->set_name("alpha");
  leaky.mutable_attribute(0)->set_ref_attr_name("slope");
  *f.add_node() = make_node("Add", {"t", "t"}, {"o"}, "add");
  auto& call = add_node(m, "Twice", {"x"}, {"y"}, "call");
  call.set_domain("own");
  set_attr(call, "slope", 0.5f);
  add_output(m, "y");
  const auto graph = import(m);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->nodes[0].name, "call/leaky");
  EXPECT_EQ(graph->nodes[0].attrs.get_float("alpha", 0), 0.5);
  const auto out = run_graph(*graph, {Array::of(DType::F32, std::vector<double>{-2, 3})});
  EXPECT_EQ((*out)[0].to_doubles(), (std::vector<double>{-2, 6}));
}

TEST(ExternalData, IsMappedCheckedAndMayBeUnaligned) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "external";
  fs::create_directories(folder);
  std::string bytes(64, '\0');
  for (int i = 0; i < 4; ++i) {
    const float value = static_cast<float>(i) + 0.5f;
    memcpy(bytes.data() + 16 + 4 * i, &value, 4);
    memcpy(bytes.data() + 33 + 4 * i, &value, 4);
  }
  ASSERT_TRUE(write_file((folder / "w.bin").string(), bytes));
  for (const char* offset : {"16", "33", "52", "-1", "x"}) {
    onnx::ModelProto m = sound_model();
    auto& w = *m.mutable_graph()->add_initializer();
    w.set_name("w"), w.set_data_type(1), w.add_dims(4), w.set_data_location(1);
    for (const auto& [key, text] :
         {std::pair{"location", "w.bin"}, std::pair{"offset", offset}, std::pair{"length", "16"}}) {
      auto& entry = *w.add_external_data();
      entry.set_key(key), entry.set_value(text);
    }
    add_node(m, "Neg", {"w"}, {"z"});
    add_output(m, "z");
    const auto graph = import_onnx_bytes(m.SerializeAsString(), folder.string());
    const bool inside = std::string(offset) == "16" || std::string(offset) == "33";
    EXPECT_EQ(graph.has_value(), inside) << offset;
    if (!graph) continue;
    const std::vector<double> expected = {0.5, 1.5, 2.5, 3.5};
    for (const Value& value : graph->values) {
      if (value.name != "w") continue;
      EXPECT_EQ(value.constant->to_doubles(), expected);
    }
  }
  fs::create_symlink("/etc/hostname", folder / "link.bin");
  onnx::ModelProto m = sound_model();
  auto& w = *m.mutable_graph()->add_initializer();
  w.set_name("w"), w.set_data_type(2), w.add_dims(1), w.set_data_location(1);
  w.add_external_data()->set_key("location");
  w.mutable_external_data(0)->set_value("link.bin");
  const auto graph = import_onnx_bytes(m.SerializeAsString(), folder.string());
  ASSERT_FALSE(graph);
  EXPECT_THAT(to_string(graph.error()), HasSubstr("outside"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tilewright::graph
