#include "tilewright/graph/onnx/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/file.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

TEST(Export, RoundTripsAndStatesTheLowestOpset) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  const ValueId mean = b.node("ReduceMean", {x, b.ints({1})}, {{"keepdims", int64_t{1}}}, "mean");
  b.output(b.node("Clip",
                  {b.node("Sub", {x, mean}), -1, b.constant("hi", Array::scalar(DType::F32, 1))}),
           "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  ExportOptions options;
  options.metadata["who"] = "test";
  options.node_metadata["mean"]["device"] = "cpu";
  const std::string bytes = to_onnx(*graph, options);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  EXPECT_EQ(model.opset_import(0).version(), 18);
  EXPECT_EQ(model.metadata_props(0).value(), "test");
  EXPECT_EQ(model.graph().node(0).metadata_props(0).value(), "cpu");
  const auto again = import_onnx_bytes(bytes);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(print(*again), print(*graph));
}

/// The opset stated for one node on an image.
int64_t stated_opset(const std::string& op, const AttrList& attrs,
                     const std::vector<Shape>& operands = {}) {
  Builder b("net");
  std::vector<ValueId> inputs = {b.input("x", DType::F32, {1, 2, 6, 6})};
  for (const Shape& shape : operands) inputs.push_back(b.input("y", DType::F32, shape));
  b.output(b.node(op, inputs, attrs), "z");
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  onnx::ModelProto model;
  EXPECT_TRUE(graph && model.ParseFromString(to_onnx(*graph, {})));
  return model.opset_import(0).version();
}

TEST(Export, StatesTheOpsetOfAttributesToo) {
  const std::vector<int64_t> two = {2, 2};
  EXPECT_EQ(stated_opset("Relu", {}), 17);
  EXPECT_EQ(stated_opset("LpPool", {{"kernel_shape", two}, {"dilations", two}}), 18);
  EXPECT_EQ(stated_opset("GridSample", {{"mode", std::string("linear")}}, {{1, 3, 3, 2}}), 20);
  EXPECT_EQ(stated_opset("Cast", {{"to", int64_t{1}}}), 17);
  EXPECT_EQ(stated_opset("Cast", {{"to", int64_t{1}}, {"saturate", int64_t{1}}}), 19);
}

TEST(Export, WeightsMayStayOutside) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 512});
  Rng rng(1);
  const Array w = random_array(rng, DType::F32, {512, 8});
  b.output(b.node("MatMul", {x, b.constant("w", w)}), "y");
  const auto graph = b.finish();
  ExportOptions options;
  options.weights = ExportOptions::Weights::External;
  options.external_file = "weights_test.bin";
  options.place = [](ValueId) { return std::optional<int64_t>(64); };
  const std::string bytes = to_onnx(*graph, options);
  EXPECT_LT(bytes.size(), 1000u);
  std::string file(64, 'x');
  file.append(static_cast<const char*>(w.data()), static_cast<size_t>(w.bytes()));
  const std::string path = testing::TempDir() + "/weights_test.bin";
  ASSERT_TRUE(write_file(path, file));
  const auto again = import_onnx_bytes(bytes, testing::TempDir());
  ASSERT_TRUE(again) << to_string(again.error());
  bool found = false;
  for (const Value& value : again->values)
    if (value.name == "w") found = identical(*value.constant, w);
  EXPECT_TRUE(found);
}

TEST(Builder, ReportsEveryFailureAtItsNode) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  const ValueId bad = b.node("MatMul", {x, x}, {}, "mm");
  b.output(b.node("Relu", {bad}), "y");
  b.node("NoSuchThing", {x}, {}, "odd");
  const auto graph = b.finish();
  ASSERT_FALSE(graph);
  EXPECT_THAT(to_string(graph.error()), HasSubstr("'mm'"));
  EXPECT_THAT(to_string(graph.error()), HasSubstr("'odd'"));
  EXPECT_EQ(graph.error().others.size(), 1u);
}

TEST(Verify, FindsEveryBrokenRule) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  const ValueId r = b.node("Relu", {x}, {}, "r");
  const ValueId n = b.node("Neg", {r}, {}, "n");
  b.output(n, "y");
  const Graph good = *b.finish();
  EXPECT_TRUE(verify(good));
  const auto broken = [&](auto change) {
    Graph graph = good;
    change(graph);
    const Status status = verify(graph);
    return status ? std::string("sound") : to_string(status.error());
  };
  EXPECT_THAT(broken([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
              HasSubstr("before it is produced"));
  EXPECT_THAT(broken([](Graph& g) { g.nodes[0].inputs[0] = 99; }), HasSubstr("out of range"));
  EXPECT_THAT(broken([](Graph& g) { g.nodes[1].outputs = g.nodes[0].outputs; }),
              HasSubstr("produced twice"));
  EXPECT_THAT(broken([](Graph& g) { g.nodes[1].name = "r"; }), HasSubstr("two nodes"));
  EXPECT_THAT(broken([](Graph& g) { g.values[1].name = "x"; }), HasSubstr("two values"));
  EXPECT_THAT(broken([](Graph& g) { g.values[1].type.shape = {3, 2}; }), HasSubstr("yields"));
  EXPECT_THAT(broken([](Graph& g) { g.values[0].type.shape = {-1}; }), HasSubstr("impossible"));
  EXPECT_THAT(broken([](Graph& g) { g.nodes.clear(); }), HasSubstr("never produced"));
  EXPECT_THAT(broken([](Graph& g) { g.values[0].constant = Array(DType::I8, {2, 3}); }),
              HasSubstr("its value is i8"));
}

}  // namespace
}  // namespace tilewright::graph
