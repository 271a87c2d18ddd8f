#include "tilewright/graph/onnx/opset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/graph/testing/models.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

/// A one-node model of an old opset, run on 0, 1, 2, ...
std::vector<double> run_old(int64_t opset, const Shape& shape, const onnx::NodeProto& node,
                            const std::vector<std::pair<std::string, Array>>& weights = {},
                            Shape* result = nullptr) {
  onnx::ModelProto m = empty_model(opset);
  add_input(m, "x", shape);
  *m.mutable_graph()->add_node() = node;
  for (const auto& [name, array] : weights) add_weight(m, name, array);
  add_output(m, "y");
  const auto graph = import(m);
  if (!graph) {
    ADD_FAILURE() << to_string(graph.error());
    return {};
  }
  Array x(DType::F32, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, static_cast<double>(i));
  const auto out = run_graph(*graph, {x});
  if (!out) {
    ADD_FAILURE() << to_string(out.error());
    return {};
  }
  if (result) *result = (*out)[0].shape();
  return (*out)[0].to_doubles();
}

TEST(Opset, AttributesThatBecameInputs) {
  using Doubles = std::vector<double>;
  onnx::NodeProto node = make_node("ReduceSum", {"x"}, {"y"});
  set_attr(node, "axes", Ints{1});
  set_attr(node, "keepdims", int64_t{0});
  EXPECT_EQ(run_old(11, {2, 3}, node), (Doubles{3, 12}));

  node = make_node("Slice", {"x"}, {"y"});
  set_attr(node, "starts", Ints{1});
  set_attr(node, "ends", Ints{3});
  set_attr(node, "axes", Ints{1});
  EXPECT_EQ(run_old(9, {2, 3}, node), (Doubles{1, 2, 4, 5}));

  node = make_node("Pad", {"x"}, {"y"});
  set_attr(node, "pads", Ints{1, 0});
  set_attr(node, "value", 7.0f);
  EXPECT_EQ(run_old(10, {2}, node), (Doubles{7, 0, 1}));

  node = make_node("Clip", {"x"}, {"y"});
  set_attr(node, "max", 1.0f);
  EXPECT_EQ(run_old(10, {3}, node), (Doubles{0, 1, 1}));

  node = make_node("Unsqueeze", {"x"}, {"y"});
  set_attr(node, "axes", Ints{0, 2});
  Shape shape;
  run_old(12, {3}, node, {}, &shape);
  EXPECT_EQ(shape, (Shape{1, 3, 1}));

  node = make_node("Squeeze", {"x"}, {"y"});
  set_attr(node, "axes", Ints{0});
  run_old(12, {1, 3, 1}, node, {}, &shape);
  EXPECT_EQ(shape, (Shape{3, 1}));

  node = make_node("Split", {"x"}, {"first", "y"});
  set_attr(node, "split", Ints{1, 3});
  EXPECT_EQ(run_old(11, {4}, node), (Doubles{1, 2, 3}));
  node = make_node("Split", {"x"}, {"first", "y"});
  EXPECT_EQ(run_old(13, {4}, node), (Doubles{2, 3}));
}

TEST(Opset, RegionsBeforeSixteenBeginAtPixels) {
  // The region from 1 to 3 of the pixels 0, 1, 2, 3: half a pixel earlier since opset 16.
  onnx::NodeProto node = make_node("RoiAlign", {"x", "rois", "of"}, {"y"});
  const Array of(DType::I64, {1});  // image 0
  const std::vector<double> corners = {1, 0, 3, 0.5};
  const std::pair<std::string, Array> rois = {"rois",
                                              Array::of(DType::F32, corners).reshaped({1, 4})};
  EXPECT_EQ(run_old(10, {1, 1, 1, 4}, node, {rois, {"of", of}}), std::vector<double>{2});
  EXPECT_EQ(run_old(16, {1, 1, 1, 4}, node, {rois, {"of", of}}), std::vector<double>{1.5});
}

TEST(Opset, OldMasksOfDropoutKeepNothing) {
  const onnx::NodeProto node = make_node("Dropout", {"x"}, {"first", "y"});
  for (const int64_t opset : {7, 9, 10, 11, 12, 13}) {
    SCOPED_TRACE(opset);
    onnx::ModelProto m = empty_model(opset);
    add_input(m, "x", {3});
    *m.mutable_graph()->add_node() = node;
    add_output(m, "y");
    add_output(m, "first");
    const auto graph = import(m);
    ASSERT_TRUE(graph) << to_string(graph.error());
    const auto out = run_graph(*graph, {Array::of(DType::F32, std::vector<double>{1, 0, 2})});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_EQ((*out)[0].dtype(), opset < 10 ? DType::F32 : DType::Bool);
    const double kept = opset < 12 ? 0 : 1;
    EXPECT_EQ((*out)[0].to_doubles(), (std::vector<double>{kept, kept, kept}));
    EXPECT_EQ((*out)[1].to_doubles(), (std::vector<double>{1, 0, 2}));
  }
}

TEST(Opset, ResizeBeforeCoordinateModes) {
  using Doubles = std::vector<double>;
  onnx::NodeProto node = make_node("Upsample", {"x"}, {"y"});
  auto& scales = *node.add_attribute();
  scales.set_name("scales"), scales.set_type(6);
  for (float f : {1.f, 1.f, 1.f, 2.f}) scales.add_floats(f);
  EXPECT_EQ(run_old(8, {1, 1, 2, 2}, node), (Doubles{0, 0, 1, 1, 2, 2, 3, 3}));
  // The example of the opset-10 documentation: 0.6 takes columns 0 and 2 of 4.
  node = make_node("Resize", {"x", "s"}, {"y"});
  const Array factors = Array::of(DType::F32, Doubles{1, 1, 0.6, 0.6});
  EXPECT_EQ(run_old(10, {1, 1, 2, 4}, node, {{"s", factors}}), (Doubles{0, 2}));
}

TEST(Opset, SoftmaxSawAMatrix) {
  onnx::NodeProto node = make_node("Softmax", {"x"}, {"y"});
  Shape shape;
  const std::vector<double> old = run_old(11, {2, 2, 2}, node, {}, &shape);
  EXPECT_EQ(shape, (Shape{2, 2, 2}));
  ASSERT_EQ(old.size(), 8u);
  double denominator = 0;
  for (int i = 0; i < 4; ++i) denominator += std::exp(i - 3.0);
  for (int i = 0; i < 8; ++i)
    EXPECT_NEAR(old[static_cast<size_t>(i)], std::exp(i % 4 - 3.0) / denominator, 1e-6);
  const std::vector<double> now = run_old(13, {2, 2, 2}, node);
  EXPECT_NEAR(now[1], std::exp(1.0) / (1 + std::exp(1.0)), 1e-6);
}

TEST(Opset, SpatialBatchNormIsUnsupported) {
  onnx::ModelProto m = empty_model(7);
  add_input(m, "x", {1, 2});
  for (const char* name : {"g", "b", "m", "v"}) add_weight(m, name, Array(DType::F32, {2}));
  auto& node = add_node(m, "BatchNormalization", {"x", "g", "b", "m", "v"}, {"y"}, "bn");
  set_attr(node, "spatial", int64_t{0});
  add_output(m, "y");
  EXPECT_THAT(to_string(import(m).error()), HasSubstr("spatial=0"));
}

}  // namespace
}  // namespace tilewright::graph
