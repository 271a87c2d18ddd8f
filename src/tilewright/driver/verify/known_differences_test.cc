#include "tilewright/driver/verify/known_differences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/graph/ir/builder.h"

namespace tilewright::driver {
namespace {

using graph::AttrList;
using graph::ValueId;
using Ints = std::vector<int64_t>;

/// What explains the output of one node between two Relu (or alone on whole numbers).
std::vector<KnownCause> found(const std::string& op, DType dtype, const Shape& shape,
                              const AttrList& attrs, const std::vector<Array>& operands = {}) {
  graph::Builder b("net");
  const ValueId x = b.input("x", dtype, shape);
  std::vector<ValueId> inputs = {x};
  for (const Array& operand : operands)
    inputs.push_back(
        operand.empty_handle() ? -1 : b.constant("c" + std::to_string(inputs.size()), operand));
  b.output(b.node("Identity", {b.node(op, inputs, attrs, "suspect")}), "y");
  b.output(b.node("Abs", {x}), "z");
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  if (!graph) return {};
  EXPECT_TRUE(known_differences_of(*graph, graph->outputs[1]).empty());
  return known_differences_of(*graph, graph->outputs[0]);
}

Array floats(const std::vector<double>& values) {
  Array array(DType::F32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.set(static_cast<int64_t>(i), values[i]);
  return array;
}

TEST(KnownDifferences, NameTheNodeThatAnOutputDependsOn) {
  const AttrList aligned = {{"coordinate_transformation_mode", std::string("align_corners")},
                            {"mode", std::string("linear")}};
  const auto texts =
      found("Resize", DType::F32, {1, 1, 7, 7}, aligned, {Array(), floats({1, 1, 2.3, 2.3})});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].text.find("'suspect'"), std::string::npos) << texts[0].text;
  EXPECT_FALSE(texts[0].by_values);
  EXPECT_NE(texts[0].text.find("fractional"), std::string::npos) << texts[0].text;
  EXPECT_TRUE(
      found("Resize", DType::F32, {1, 1, 7, 7}, aligned, {Array(), floats({1, 1, 2, 2})}).empty());
}

TEST(KnownDifferences, DependOnTypesAndAttributes) {
  const AttrList linear = {{"mode", std::string("linear")}};
  const std::vector<Array> twice = {Array(), floats({1, 1, 2, 2})};
  EXPECT_EQ(found("Resize", DType::U8, {1, 1, 4, 4}, linear, twice).size(), 1u);
  EXPECT_TRUE(found("Resize", DType::U8, {1, 1, 4, 4}, {}, twice).empty());
  AttrList pool = {{"kernel_shape", Ints{3, 3}}, {"auto_pad", std::string("SAME_UPPER")}};
  EXPECT_EQ(found("MaxPool", DType::F32, {1, 1, 9, 9}, pool).size(), 1u);  // NaN only
  pool.push_back({"dilations", Ints{2, 2}});
  EXPECT_EQ(found("MaxPool", DType::F32, {1, 1, 9, 9}, pool).size(), 2u);
  EXPECT_EQ(found("Cast", DType::F32, {3}, {{"to", int64_t{7}}}).size(), 1u);
  EXPECT_TRUE(found("Cast", DType::F32, {3}, {{"to", int64_t{11}}}).empty());
  ASSERT_EQ(found("Tan", DType::F16, {3}, {}).size(), 1u);
  EXPECT_TRUE(found("Tan", DType::F16, {3}, {})[0].by_values);
  EXPECT_TRUE(found("Tan", DType::F32, {3}, {}).empty());
}

TEST(KnownDifferences, RegionsOfAxesThatKeepTheirSize) {
  const AttrList crop = {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                         {"mode", std::string("linear")}};
  const auto causes = [&](const std::vector<double>& roi) {
    return found("Resize", DType::F32, {1, 1, 7, 8}, crop, {floats(roi), floats({1, 1, 2, 1})})
        .size();
  };
  EXPECT_EQ(causes({0, 0, .1, .2, 1, 1, .8, .9}), 1u);
  EXPECT_EQ(causes({0, 0, .1, 0, 1, 1, .8, 1}), 0u);
}

TEST(KnownDifferences, RecurrencesByTheirActivations) {
  const auto causes = [](const std::string& function, const std::vector<double>& alpha) {
    AttrList attrs = {{"hidden_size", int64_t{2}},
                      {"activations", std::vector<std::string>{function}}};
    if (!alpha.empty()) attrs.push_back({"activation_alpha", alpha});
    const std::vector<Array> weights = {Array(DType::F32, {1, 2, 3}), Array(DType::F32, {1, 2, 2})};
    return found("RNN", DType::F32, {4, 1, 3}, attrs, weights).size();
  };
  EXPECT_EQ(causes("ThresholdedRelu", {}), 1u);
  EXPECT_EQ(causes("THRESHOLDEDRELU", {}), 1u);
  EXPECT_EQ(causes("ThresholdedRelu", {0.5}), 0u);
  EXPECT_EQ(causes("LeakyRelu", {}), 0u);
  EXPECT_EQ(causes("SoftPlus", {}), 1u);
}

TEST(KnownDifferences, ProductsOfBytesDependOnTheWeights) {
  EXPECT_EQ(found("MatMulInteger", DType::U8, {2, 3}, {}, {Array(DType::I8, {3, 4})}).size(), 1u);
  EXPECT_TRUE(found("MatMulInteger", DType::U8, {2, 3}, {}, {Array(DType::U8, {3, 4})}).empty());
  const auto scaled = [](DType weights) {
    const Array scale = floats({1}).reshaped({});
    return std::vector<Array>{scale,
                              Array(DType::U8, Shape{}),
                              Array(weights, Shape{3, 4}),
                              scale,
                              Array(weights, Shape{}),
                              scale,
                              Array(DType::U8, Shape{})};
  };
  EXPECT_EQ(found("QLinearMatMul", DType::U8, {2, 3}, {}, scaled(DType::I8)).size(), 1u);
  EXPECT_TRUE(found("QLinearMatMul", DType::U8, {2, 3}, {}, scaled(DType::U8)).empty());
}

TEST(KnownDifferences, ConvTransposeOfAShortKernel) {
  const AttrList same = {{"strides", Ints{3, 3}}, {"auto_pad", std::string("SAME_UPPER")}};
  const std::vector<Array> two = {Array(DType::F32, {1, 1, 2, 2})};
  const std::vector<Array> three = {Array(DType::F32, {1, 1, 3, 3})};
  EXPECT_EQ(found("ConvTranspose", DType::F32, {1, 1, 4, 4}, same, two).size(), 1u);
  EXPECT_TRUE(found("ConvTranspose", DType::F32, {1, 1, 4, 4}, same, three).empty());
}

TEST(KnownDifferences, PoolsOfNothingButPadding) {
  AttrList pool = {
      {"kernel_shape", Ints{2, 1}}, {"dilations", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 0}}};
  EXPECT_EQ(found("AveragePool", DType::F32, {1, 2, 1, 1}, pool).size(), 1u);
  EXPECT_TRUE(found("AveragePool", DType::F32, {1, 2, 3, 1}, pool).empty());
  EXPECT_EQ(found("MaxPool", DType::F32, {1, 2, 1, 1}, pool).size(), 2u) << "NaN is the other";
  EXPECT_EQ(found("MaxPool", DType::F32, {1, 2, 3, 1}, pool).size(), 1u);
  pool.push_back({"count_include_pad", int64_t{1}});
  EXPECT_TRUE(found("AveragePool", DType::F32, {1, 2, 1, 1}, pool).empty());
}

TEST(KnownDifferences, AxesCountedFromTheLast) {
  const auto axes = [](int64_t a) {
    Array list(DType::I64, {1});
    list.set_int(0, a);
    return std::vector<Array>{list};
  };
  EXPECT_EQ(found("ReduceSum", DType::F32, {3, 0, 3}, {}, axes(-1)).size(), 1u);
  EXPECT_TRUE(found("ReduceSum", DType::F32, {3, 0, 3}, {}, axes(2)).empty());
  EXPECT_TRUE(found("ReduceSum", DType::F32, {3, 1, 3}, {}, axes(-1)).empty());
  EXPECT_EQ(found("ArgMax", DType::I32, {0, 3}, {{"axis", int64_t{-1}}}).size(), 1u);
  EXPECT_TRUE(found("ArgMax", DType::I32, {0, 3}, {{"axis", int64_t{1}}}).empty());

  Array sizes(DType::I64, {1});
  sizes.set_int(0, 8);
  const auto resized = [&](int64_t axis, const char* policy) {
    return found("Resize", DType::F32, {1, 1, 4, 4},
                 {{"axes", Ints{axis}}, {"keep_aspect_ratio_policy", std::string(policy)}},
                 {Array(), Array(), sizes});
  };
  EXPECT_EQ(resized(-1, "not_larger").size(), 1u);
  EXPECT_TRUE(resized(3, "not_larger").empty());
  EXPECT_TRUE(resized(-1, "stretch").empty());
}

TEST(KnownDifferences, MaxUnpoolToAShapeOfItsOwn) {
  const AttrList pool = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  Array places(DType::I64, {1, 1, 2, 2}), shape(DType::I64, {4});
  for (const int i : {0, 1, 2, 3}) shape.set_int(i, i < 2 ? 1 : 5);
  EXPECT_EQ(found("MaxUnpool", DType::F32, {1, 1, 2, 2}, pool, {places, shape}).size(), 1u);
  EXPECT_TRUE(found("MaxUnpool", DType::F32, {1, 1, 2, 2}, pool, {places}).empty());
}

TEST(KnownDifferences, GemmOfNothingAndUnsortedTopK) {
  const std::vector<Array> b_and_c = {Array(DType::F32, Shape{0, 3}), floats({1, 2, 3})};
  EXPECT_EQ(found("Gemm", DType::F32, {2, 0}, {{"beta", 2.0}}, b_and_c).size(), 1u);
  EXPECT_TRUE(found("Gemm", DType::F32, {2, 0}, {}, b_and_c).empty());
  EXPECT_TRUE(found("Gemm", DType::F32, {2, 0}, {{"beta", 2.0}}, {b_and_c[0]}).empty());
  Array k(DType::I64, {1});
  k.set_int(0, 2);
  EXPECT_EQ(found("TopK", DType::I32, {5}, {{"sorted", int64_t{0}}}, {k}).size(), 1u);
  EXPECT_TRUE(found("TopK", DType::I32, {5}, {}, {k}).empty());
}

TEST(KnownDifferences, ChoicesAmongComputedFloats) {
  const auto causes = [](bool computed, DType dtype) {
    graph::Builder b("net");
    const ValueId x = b.input("x", dtype, {2, 5});
    const ValueId scores = computed ? b.node("Abs", {x}) : x;
    b.output(b.node("ArgMax", {scores}, {{"axis", int64_t{1}}}, "choice"), "y");
    const auto graph = b.finish();
    EXPECT_TRUE(graph) << to_string(graph.error());
    return known_differences_of(*graph, graph->outputs[0]);
  };
  const auto names_rounding = [](const KnownCause& cause) {
    return cause.by_values && cause.text.find("equal but for rounding") != std::string::npos;
  };
  const auto of_floats = causes(true, DType::F32);
  EXPECT_EQ(std::count_if(of_floats.begin(), of_floats.end(), names_rounding), 1);
  const auto of_inputs = causes(false, DType::F32);
  EXPECT_EQ(std::count_if(of_inputs.begin(), of_inputs.end(), names_rounding), 0);
  EXPECT_TRUE(causes(true, DType::I32).empty());
}

TEST(KnownDifferences, OperatorsOfTheTable) {
  EXPECT_TRUE(may_differ("", "Resize"));
  EXPECT_FALSE(may_differ("", "Relu"));
  EXPECT_FALSE(may_differ("tilewright", "MaxPool"));
}

/// What explains a MaxPool behind a Pad of `amounts` by `fill`.
std::vector<KnownCause> padded(const Ints& amounts, double fill, const AttrList& attrs = {}) {
  graph::Builder b("net");
  Array list(DType::I64, {static_cast<int64_t>(amounts.size())});
  std::copy(amounts.begin(), amounts.end(), list.as<int64_t>().begin());
  const ValueId x = b.input("x", DType::I8, {1, 2, 7, 7});
  Array value(DType::I8, {});
  value.set(0, fill);
  const ValueId y =
      b.node("Pad", {x, b.constant("amounts", list), b.constant("fill", value)}, {}, "pad");
  AttrList pool = attrs;
  pool.push_back({"kernel_shape", Ints{3, 3}});
  b.output(b.node("MaxPool", {y}, pool, "pool"), "y");
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return graph ? known_differences_of(*graph, graph->outputs[0]) : std::vector<KnownCause>();
}

TEST(KnownDifferences, MaxPoolBehindAPadOfZeros) {
  const Ints spatial = {0, 0, 1, 1, 0, 0, 1, 1};
  const auto causes = padded(spatial, 0);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_NE(causes[0].text.find("MaxPool 'pool' (behind a Pad"), std::string::npos);
  EXPECT_TRUE(causes[0].by_values);
  EXPECT_TRUE(padded(spatial, -1).empty());
  EXPECT_TRUE(padded(spatial, 0, {{"auto_pad", std::string("SAME_UPPER")}}).empty());
  EXPECT_TRUE(padded({0, 1, 1, 1, 0, 0, 1, 1}, 0).empty()) << "channels";
  EXPECT_TRUE(padded({0, 0, -1, 1, 0, 0, 1, 1}, 0).empty()) << "cut off";
}

TEST(KnownDifferences, TheManualListsThem) {
  const auto manual = read_file(TILEWRIGHT_ROOT_DIR "/docs/operators.md");
  ASSERT_TRUE(manual) << to_string(manual.error());
  EXPECT_NE(manual->find(known_differences_section()), std::string::npos)
      << "docs/operators.md is older than the table";
}

}  // namespace
}  // namespace tilewright::driver
