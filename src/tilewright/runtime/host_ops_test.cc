#include "tilewright/runtime/host_ops.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewright/base/rng.h"

namespace tilewright::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<double>;

Array array(DType dtype, Shape shape, const Values& values) {
  return Array::of(dtype, values).reshaped(std::move(shape));
}
Array ints(Shape shape, const Values& values) {
  return array(DType::I64, std::move(shape), values);
}

std::vector<Array> run(const std::string& name, const std::string& attrs,
                       const std::vector<Array>& inputs) {
  auto result = run_host_op(name, attrs, inputs);
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *result : std::vector<Array>(4);
}

std::string error_of(const std::string& name, const std::string& attrs,
                     const std::vector<Array>& inputs) {
  const auto result = run_host_op(name, attrs, inputs);
  EXPECT_FALSE(result);
  return result ? "" : to_string(result.error());
}

/// An array of small random integers, so that ties are frequent.
Array random_array(Rng& rng, DType dtype, const Shape& shape) {
  Array result(dtype, shape);
  const bool sign = is_float(dtype) || is_signed_int(dtype);
  for (int64_t i = 0; i < result.size(); ++i)
    result.set(i, dtype == DType::Bool ? static_cast<double>(rng.below(2))
                                       : static_cast<double>(rng.between(sign ? -3 : 0, 4)));
  return result;
}

TEST(HostOps, NamesAreSortedAndUnknownOnesListed) {
  const std::vector<std::string> names = host_op_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.size(), 18u);
  EXPECT_THAT(error_of("TopJ", "", {}), HasSubstr("TopK"));
}

TEST(HostOps, AttributesAndInputsAreChecked) {
  const Array x = array(DType::F32, {3}, {1, 2, 3}), k = ints({1}, {2});
  EXPECT_THAT(error_of("TopK", "[]", {x, k}), HasSubstr("JSON object"));
  EXPECT_THAT(error_of("TopK", "{\"axis\": ", {x, k}), HasSubstr("JSON object"));
  EXPECT_THAT(error_of("TopK", "{\"axis\": \"0\"}", {x, k}), HasSubstr("'axis' is not an integer"));
  EXPECT_THAT(error_of("TopK", "{\"axis\": 1}", {x, k}), HasSubstr("axis 1 is outside"));
  EXPECT_THAT(error_of("TopK", "", {x, ints({1}, {4})}), HasSubstr("k = 4 is outside 0 to 3"));
  EXPECT_THAT(error_of("TopK", "", {x, ints({1}, {-1})}), HasSubstr("k = -1"));
  EXPECT_THAT(error_of("TopK", "", {x}), HasSubstr("k = -1"));
  EXPECT_THAT(error_of("TopK", "", {x, ints({2}, {1, 1})}),
              HasSubstr("input 1 is not one integer"));
  EXPECT_THAT(error_of("TopK", "", {Array(), k}), HasSubstr("input 0 is missing"));
  EXPECT_THAT(error_of("TopK", "", {}), HasSubstr("TopK"));
}

// The examples of the ONNX operator documentation.
TEST(TopK, DocumentedExamples) {
  const Array x = array(DType::F32, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto out = run("TopK", "{\"axis\": 1}", {x, ints({1}, {3})});
  EXPECT_EQ(out[0].shape(), (Shape{3, 3}));
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(3, 2, 1, 7, 6, 5, 11, 10, 9));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(3, 2, 1, 3, 2, 1, 3, 2, 1));
  const Array y = array(DType::I64, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 11, 10, 9, 8});
  out = run("TopK", "{\"axis\": 1, \"largest\": 0, \"sorted\": 1}", {y, ints({1}, {3})});
  EXPECT_THAT(out[0].to_ints(), ElementsAre(0, 1, 2, 4, 5, 6, 8, 9, 10));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(0, 1, 2, 0, 1, 2, 3, 2, 1));
}

TEST(TopK, AgreesWithASortForEveryTypeAndAxis) {
  Rng rng(1);
  for (DType dtype : kAllDTypes)
    for (int axis : {-1, 0, 1})
      for (bool largest : {true, false}) {
        const Shape shape = {3, 5, 2};
        const auto at = static_cast<size_t>(axis < 0 ? 2 : axis);
        const int64_t k = rng.between(0, shape[at]);
        const Array x = random_array(rng, dtype, shape);
        const auto out =
            run("TopK", fmt::format("{{\"axis\": {}, \"largest\": {}}}", axis, largest ? 1 : 0),
                {x, ints({1}, {static_cast<double>(k)})});
        EXPECT_EQ(out[0].dtype(), dtype);
        const auto strides = dense_strides(shape), out_strides = dense_strides(out[0].shape());
        for (int64_t a = 0; a < 3; ++a)
          for (int64_t b = 0; b < 5; ++b)
            for (int64_t c = 0; c < 2; ++c) {
              const int64_t place[] = {a, b, c};
              if (place[at] != 0) continue;
              const int64_t base = a * strides[0] + b * strides[1] + c * strides[2];
              const int64_t out_base = a * out_strides[0] + b * out_strides[1] + c * out_strides[2];
              std::vector<int64_t> order(static_cast<size_t>(shape[at]));
              std::iota(order.begin(), order.end(), int64_t{0});
              std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
                const double p = x.get(base + i * strides[at]), q = x.get(base + j * strides[at]);
                return p != q ? (largest ? p > q : p < q) : i < j;
              });
              for (int64_t i = 0; i < k; ++i) {
                const int64_t from = order[static_cast<size_t>(i)];
                EXPECT_EQ(out[1].get_int(out_base + i * out_strides[at]), from);
                EXPECT_EQ(out[0].get(out_base + i * out_strides[at]),
                          x.get(base + from * strides[at]));
              }
            }
      }
}

TEST(TopK, WideIntegersAndNaN) {
  Array big(DType::U64, {3});
  big.as<uint64_t>()[0] = 1;
  big.as<uint64_t>()[1] = ~uint64_t{0};
  big.as<uint64_t>()[2] = ~uint64_t{0} - 1;
  EXPECT_THAT(run("TopK", "", {big, ints({1}, {3})})[1].to_ints(), ElementsAre(1, 2, 0));
  Array near(DType::I64, {2});
  near.as<int64_t>()[0] = (int64_t{1} << 60);
  near.as<int64_t>()[1] = (int64_t{1} << 60) + 1;
  EXPECT_THAT(run("TopK", "", {near, ints({1}, {1})})[1].to_ints(), ElementsAre(1));
  const double nan = std::nan("");
  const Array x = array(DType::F32, {5}, {1, nan, 3, nan, 2});
  EXPECT_THAT(run("TopK", "", {x, ints({1}, {5})})[1].to_ints(), ElementsAre(1, 3, 2, 4, 0));
  EXPECT_THAT(run("TopK", "{\"largest\": 0}", {x, ints({1}, {5})})[1].to_ints(),
              ElementsAre(0, 4, 2, 1, 3));
}

TEST(NonZero, ExampleAndEdges) {
  auto out = run("NonZero", "", {array(DType::Bool, {2, 2}, {1, 0, 1, 1})});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_THAT(out[0].to_ints(), ElementsAre(0, 1, 1, 0, 0, 1));
  for (DType dtype : kAllDTypes) {
    out = run("NonZero", "", {array(dtype, {2, 1, 2}, {0, 1, 1, 0})});
    EXPECT_THAT(out[0].to_ints(), ElementsAre(0, 1, 0, 0, 1, 0)) << name(dtype);
  }
  EXPECT_EQ(run("NonZero", "", {Array(DType::F32, {2, 0, 3})})[0].shape(), (Shape{3, 0}));
  EXPECT_EQ(run("NonZero", "", {Array::scalar(DType::F32, 1)})[0].shape(), (Shape{1, 1}));
  const Array tiny = array(DType::F32, {3}, {0, -0.0, 1e-40});
  EXPECT_THAT(run("NonZero", "", {tiny})[0].to_ints(), ElementsAre(2));
}

TEST(CheckRange, HandsOnWhatIsInsideAndNamesWhatIsNot) {
  const std::string pair = R"({"least": [-3], "most": [2], "what": "index", "of": "input 1"})";
  for (DType dtype : kAllDTypes) {
    if (is_float(dtype) || dtype == DType::Bool) continue;
    EXPECT_THAT(run("CheckRange", pair, {array(dtype, {3}, {0, 1, 2})})[0].to_ints(),
                ElementsAre(0, 1, 2));
    EXPECT_THAT(error_of("CheckRange", pair, {array(dtype, {3}, {0, 3, 2})}),
                HasSubstr("index 3 of input 1 is out of range"));
  }
  EXPECT_EQ(run("CheckRange", pair, {Array(DType::I64, {0, 4})})[0].shape(), (Shape{0, 4}));
  EXPECT_THAT(run("CheckRange", pair, {array(DType::I64, {1}, {-3})})[0].to_ints(),
              ElementsAre(-3));
  Array wide(DType::U64, {1});
  wide.set_int(0, -1);
  EXPECT_THAT(error_of("CheckRange", pair, {wide}), HasSubstr("index 18446744073709551615 of"));
  const std::string tuple = R"({"least": [-2, -9], "most": [1, 8]})";
  EXPECT_THAT(run("CheckRange", tuple, {array(DType::I64, {2, 2}, {1, 8, -2, -9})})[0].to_ints(),
              ElementsAre(1, 8, -2, -9));
  EXPECT_THAT(error_of("CheckRange", tuple, {array(DType::I64, {2, 2}, {1, 8, 2, 0})}),
              HasSubstr("element 2 of [2, 2] must be in -2 to 1"));
  EXPECT_THAT(error_of("CheckRange", "{}", {array(DType::I64, {1}, {0})}), HasSubstr("limits"));
  EXPECT_THAT(error_of("CheckRange", pair, {array(DType::F32, {1}, {0})}), HasSubstr("f32"));
}

TEST(Compress, DocumentedExamples) {
  const Array x = array(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  auto out = run("Compress", "{\"axis\": 0}", {x, array(DType::Bool, {3}, {0, 1, 1})});
  EXPECT_EQ(out[0].shape(), (Shape{2, 2}));
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(3, 4, 5, 6));
  out = run("Compress", "{\"axis\": 1}", {x, array(DType::Bool, {2}, {0, 1})});
  EXPECT_EQ(out[0].shape(), (Shape{3, 1}));
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(2, 4, 6));
  out = run("Compress", "", {x, array(DType::Bool, {5}, {0, 1, 0, 0, 1})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(2, 5));
  out = run("Compress", "{\"axis\": -1}", {x, array(DType::Bool, {2}, {0, 1})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(2, 4, 6));
  EXPECT_EQ(run("Compress", "{\"axis\": 0}", {x, array(DType::Bool, {2}, {0, 0})})[0].shape(),
            (Shape{0, 2}));
  out = run("Compress", "{\"axis\": 0}", {x, array(DType::Bool, {4}, {0, 0, 1, 1})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(5, 6));  // what is too long is not read
  EXPECT_THAT(error_of("Compress", "", {x, ints({2}, {1, 0})}), HasSubstr("vector of bool"));
}

TEST(Unique, DocumentedExamples) {
  const Array x = array(DType::F32, {6}, {2, 1, 1, 3, 4, 3});
  auto out = run("Unique", "{\"sorted\": 0}", {x});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(out[2].to_ints(), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(out[3].to_ints(), ElementsAre(1, 2, 2, 1));
  out = run("Unique", "", {x});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(out[2].to_ints(), ElementsAre(1, 0, 0, 2, 3, 2));
  EXPECT_THAT(out[3].to_ints(), ElementsAre(2, 1, 2, 1));
  const Array rows = array(DType::F32, {3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4});
  out = run("Unique", "{\"axis\": 0, \"sorted\": 1}", {rows});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 0, 0, 2, 3, 4));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(0, 2));
  EXPECT_THAT(out[2].to_ints(), ElementsAre(0, 0, 1));
  EXPECT_THAT(out[3].to_ints(), ElementsAre(2, 1));
  const Array cube = array(DType::F32, {2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1});
  out = run("Unique", "{\"axis\": 1}", {cube});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1));
  EXPECT_THAT(out[1].to_ints(), ElementsAre(1, 0, 2));
  EXPECT_THAT(out[2].to_ints(), ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(out[3].to_ints(), ElementsAre(2, 1, 1));
}

TEST(Unique, PropertiesForEveryTypeAndAxis) {
  Rng rng(2);
  for (DType dtype : kAllDTypes)
    for (const char* attrs : {"{}", "{\"axis\": 0}", "{\"axis\": -1, \"sorted\": 0}"}) {
      const Array x = random_array(rng, dtype, {12, 1});
      const bool last = std::string(attrs).find("-1") != std::string::npos;
      const auto out = run("Unique", attrs, {x});
      EXPECT_EQ(out[0].dtype(), dtype);
      const int64_t groups = out[1].size(), slices = last ? 1 : 12;
      ASSERT_EQ(out[2].size(), slices);
      std::vector<int64_t> counted(static_cast<size_t>(groups), 0);
      for (int64_t i = 0; i < slices; ++i) {
        const int64_t group = out[2].get_int(i);
        ++counted[static_cast<size_t>(group)];
        EXPECT_TRUE(last || out[0].get(group) == x.get(i));
      }
      EXPECT_EQ(counted, out[3].to_ints());
      for (int64_t g = 0; !last && g < groups; ++g) {
        EXPECT_TRUE(g == 0 || out[0].get(g - 1) < out[0].get(g));
        for (int64_t i = 0; i < out[1].get_int(g); ++i) EXPECT_NE(x.get(i), out[0].get(g));
      }
    }
  EXPECT_EQ(run("Unique", "", {Array(DType::F32, {0})})[0].shape(), (Shape{0}));
  const double nan = std::nan("");
  EXPECT_THAT(run("Unique", "", {array(DType::F32, {4}, {nan, 1, nan, 1})})[3].to_ints(),
              ElementsAre(2, 2));
}

/// Six boxes of the ONNX examples.
const Values kBoxes = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                       0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
const Values kScores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};

std::vector<Array> nms_inputs(const Values& boxes, const Values& scores, double max, double iou,
                              double score) {
  const auto n = static_cast<int64_t>(scores.size());
  return {array(DType::F32, {1, n, 4}, boxes), array(DType::F32, {1, 1, n}, scores),
          ints({1}, {max}), array(DType::F32, {1}, {iou}), array(DType::F32, {1}, {score})};
}

TEST(NonMaxSuppression, DocumentedExamples) {
  auto selected = [](const std::vector<Array>& inputs, const std::string& attrs = "") {
    return run("NonMaxSuppression", attrs, inputs)[0].to_ints();
  };
  EXPECT_THAT(selected(nms_inputs(kBoxes, kScores, 3, 0.5, 0.0)),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  EXPECT_THAT(selected(nms_inputs(kBoxes, kScores, 2, 0.5, 0.0)), ElementsAre(0, 0, 3, 0, 0, 0));
  EXPECT_THAT(selected(nms_inputs(kBoxes, kScores, 3, 0.5, 0.4)), ElementsAre(0, 0, 3, 0, 0, 0));
  // Corners in any order.
  const Values flipped = {1, 1,  0, 0,  0, 0.1f,  1, 1.1f,  0, 0.9f, 1, -0.1f,
                          0, 10, 1, 11, 1, 10.1f, 0, 11.1f, 1, 101,  0, 100};
  EXPECT_THAT(selected(nms_inputs(flipped, kScores, 3, 0.5, 0.0)),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  const Values centers = {0.5, 0.5,  1, 1, 0.5, 0.6,  1, 1, 0.5, 0.4,   1, 1,
                          0.5, 10.5, 1, 1, 0.5, 10.6, 1, 1, 0.5, 100.5, 1, 1};
  EXPECT_THAT(selected(nms_inputs(centers, kScores, 3, 0.5, 0.0), "{\"center_point_box\": 1}"),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  // Ten equal boxes: one stays, the first.
  Values same, equal_scores;
  for (int i = 0; i < 10; ++i) {
    same.insert(same.end(), {0, 0, 1, 1});
    equal_scores.push_back(0.9f);
  }
  EXPECT_THAT(selected(nms_inputs(same, equal_scores, 3, 0.5, 0.0)), ElementsAre(0, 0, 0));
  EXPECT_THAT(selected(nms_inputs({0, 0, 1, 1}, {0.9f}, 3, 0.5, 0.0)), ElementsAre(0, 0, 0));
}

TEST(NonMaxSuppression, TwoClassesTwoBatchesAndDefaults) {
  std::vector<Array> inputs = nms_inputs(kBoxes, kScores, 2, 0.5, 0.0);
  Values scores = kScores;
  scores.insert(scores.end(), kScores.begin(), kScores.end());
  inputs[1] = array(DType::F32, {1, 2, 6}, scores);
  EXPECT_THAT(run("NonMaxSuppression", "", inputs)[0].to_ints(),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0));
  Values boxes = kBoxes;
  boxes.insert(boxes.end(), kBoxes.begin(), kBoxes.end());
  inputs[0] = array(DType::F32, {2, 6, 4}, boxes);
  inputs[1] = array(DType::F32, {2, 1, 6}, scores);
  EXPECT_THAT(run("NonMaxSuppression", "", inputs)[0].to_ints(),
              ElementsAre(0, 0, 3, 0, 0, 0, 1, 0, 3, 1, 0, 0));
  // Without a limit nothing is selected; without thresholds only separate boxes stay.
  inputs = nms_inputs(kBoxes, kScores, 0, 0, 0);
  EXPECT_EQ(run("NonMaxSuppression", "", {inputs[0], inputs[1]})[0].shape(), (Shape{0, 3}));
  EXPECT_THAT(run("NonMaxSuppression", "", {inputs[0], inputs[1], ints({}, {9})})[0].to_ints(),
              ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5));
  // An absent score threshold keeps negative scores.
  inputs[1] = array(DType::F32, {1, 1, 6}, {-1, -2, -3, -4, -5, -6});
  EXPECT_EQ(run("NonMaxSuppression", "", {inputs[0], inputs[1], ints({}, {9}), Array(), Array()})[0]
                .shape(),
            (Shape{3, 3}));
}

TEST(NonMaxSuppression, BadInputs) {
  std::vector<Array> inputs = nms_inputs(kBoxes, kScores, 2, 1.5, 0.0);
  EXPECT_THAT(error_of("NonMaxSuppression", "", inputs), HasSubstr("iou_threshold 1.5"));
  inputs[1] = array(DType::F32, {1, 2, 3}, kScores);
  EXPECT_THAT(error_of("NonMaxSuppression", "", inputs), HasSubstr("do not fit together"));
  inputs = nms_inputs(kBoxes, kScores, 2, 0.5, 0.0);
  inputs[2] = array(DType::F32, {1}, {3});
  EXPECT_THAT(error_of("NonMaxSuppression", "", inputs), HasSubstr("input 2 is not one integer"));
}

TEST(ScatterElements, DocumentedExamples) {
  const Array data = array(DType::F32, {1, 5}, {1, 2, 3, 4, 5});
  auto out = run("ScatterElements", "{\"axis\": 1}",
                 {data, ints({1, 2}, {1, 3}), array(DType::F32, {1, 2}, {1.5, 2.5})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 1.5, 3, 2.5, 5));
  EXPECT_THAT(data.to_doubles(), ElementsAre(1, 2, 3, 4, 5));
  out = run("ScatterElements", "",
            {Array(DType::F32, {3, 3}), ints({2, 3}, {1, 0, 2, 0, 2, 1}),
             array(DType::F32, {2, 3}, {1, 1.5, 1.25, 2, 2.5, 2.25})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(2, 1.5, 0, 1, 0, 2.25, 0, 2.5, 1.25));
  out = run("ScatterElements", "{\"axis\": 1}",
            {data, ints({1, 2}, {1, -3}), array(DType::F32, {1, 2}, {1.5, 2.5})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 1.5, 2.5, 4, 5));
  const std::vector<Array> twice = {data, ints({1, 2}, {1, 1}),
                                    array(DType::F32, {1, 2}, {1.5, 2.5})};
  auto reduced = [&](const char* reduction) {
    return run("ScatterElements", fmt::format("{{\"axis\": 1, \"reduction\": \"{}\"}}", reduction),
               twice)[0]
        .get(1);
  };
  EXPECT_EQ(reduced("add"), 6);
  EXPECT_EQ(reduced("mul"), 7.5);
  EXPECT_EQ(reduced("max"), 2.5);
  EXPECT_EQ(reduced("min"), 1.5);
  EXPECT_EQ(reduced("none"), 2.5);
}

TEST(ScatterElements, EveryTypeAndReduction) {
  Rng rng(4);
  for (DType dtype : kAllDTypes)
    for (const std::string reduction : {"none", "add", "mul", "max", "min"})
      for (int axis : {0, 1}) {
        const Array data = random_array(rng, dtype, {3, 4});
        const Array updates = random_array(rng, dtype, {2, 3});
        Array indices(DType::I32, {2, 3});
        const int64_t extent = axis == 0 ? 3 : 4;
        for (int64_t i = 0; i < 6; ++i) indices.set_int(i, rng.between(-extent, extent - 1));
        // Exact in doubles: the values are small integers.
        Values expected = data.to_doubles();
        for (int64_t i = 0; i < 2; ++i)
          for (int64_t j = 0; j < 3; ++j) {
            const int64_t index = (indices.get_int(i * 3 + j) + extent) % extent;
            double& cell = expected[static_cast<size_t>(axis == 0 ? index * 4 + j : i * 4 + index)];
            const double update = updates.get(i * 3 + j);
            if (reduction == "none") cell = update;
            if (reduction == "add") cell += update;
            if (reduction == "mul") cell *= update;
            if (reduction == "max") cell = std::max(cell, update);
            if (reduction == "min") cell = std::min(cell, update);
            if (dtype == DType::Bool) cell = cell != 0;
          }
        const auto out =
            run("ScatterElements",
                fmt::format("{{\"axis\": {}, \"reduction\": \"{}\"}}", axis, reduction),
                {data, indices, updates});
        EXPECT_EQ(out[0].to_doubles(), expected) << name(dtype) << " " << reduction;
      }
}

/// Indices that repeat along the last axes are written as runs; each element must still go where
/// the definition says, also where indices cover a part of the data.
TEST(ScatterElements, RunsOfOneIndexAreTheirElements) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    const auto axis = static_cast<size_t>(rng.between(0, 2));
    const Shape data{rng.between(1, 4), rng.between(1, 4), rng.between(1, 4)};
    Shape part = data;
    for (size_t d = 0; d < 3; ++d)
      if (d == axis || rng.below(3) == 0) part[d] = rng.between(1, d == axis ? 6 : data[d]);
    Array x = random_array(rng, DType::F32, data), updates = random_array(rng, DType::F32, part);
    Array places(rng.below(2) != 0 ? DType::I64 : DType::I32, part), expected = x.clone();
    const int64_t extent = data[axis];
    const bool add = rng.below(2) != 0;
    int64_t index = 0;
    for (int64_t i = 0; i < places.size(); ++i) {
      if (rng.below(3) == 0) index = rng.between(-extent, extent - 1);
      places.set_int(i, index);
      Shape at{i / (part[1] * part[2]), i / part[2] % part[1], i % part[2]};
      at[axis] = index < 0 ? index + extent : index;
      const int64_t to = (at[0] * data[1] + at[1]) * data[2] + at[2];
      expected.set(to, (add ? expected.get(to) : 0) + updates.get(i));
    }
    const Array y =
        run("ScatterElements",
            fmt::format(R"({{"axis": {}, "reduction": "{}"}})", axis, add ? "add" : "none"),
            {x, places, updates})[0];
    ASSERT_EQ(y.to_doubles(), expected.to_doubles()) << to_string(data) << to_string(part) << axis;
  }
}

TEST(ScatterElements, IntegersWrapAndNaNWins) {
  const Array index = ints({1}, {0});
  const std::string add = "{\"reduction\": \"add\"}", mul = "{\"reduction\": \"mul\"}";
  EXPECT_EQ(run("ScatterElements", add,
                {array(DType::I8, {1}, {127}), index, array(DType::I8, {1}, {2})})[0]
                .get(0),
            -127);
  EXPECT_EQ(run("ScatterElements", mul,
                {array(DType::U16, {1}, {65535}), index, array(DType::U16, {1}, {65535})})[0]
                .get(0),
            1);
  EXPECT_EQ(run("ScatterElements", mul,
                {array(DType::I32, {1}, {-2147483648.0}), index, array(DType::I32, {1}, {-1})})[0]
                .get(0),
            -2147483648.0);
  const double nan = std::nan("");
  for (const char* attrs : {"{\"reduction\": \"max\"}", "{\"reduction\": \"min\"}"})
    for (bool first : {true, false})
      EXPECT_TRUE(std::isnan(run("ScatterElements", attrs,
                                 {array(DType::F16, {1}, {first ? nan : 1}), index,
                                  array(DType::F16, {1}, {first ? 1 : nan})})[0]
                                 .get(0)));
}

TEST(ScatterND, DocumentedExamples) {
  const Array data = array(DType::F32, {8}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto out = run("ScatterND", "",
                 {data, ints({4, 1}, {4, 3, 1, 7}), array(DType::F32, {4}, {9, 10, 11, 12})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 11, 3, 10, 9, 6, 7, 12));
  const Array cube = array(DType::F32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Array slices = array(DType::F32, {2, 2, 2}, {1, 1, 1, 1, 2, 2, 2, 2});
  auto reduced = [&](const char* reduction) {
    return run("ScatterND", fmt::format("{{\"reduction\": \"{}\"}}", reduction),
               {cube, ints({2, 1}, {0, 0}), slices})[0]
        .to_doubles();
  };
  EXPECT_THAT(reduced("none"), ElementsAre(2, 2, 2, 2, 5, 6, 7, 8));
  EXPECT_THAT(reduced("add"), ElementsAre(4, 5, 6, 7, 5, 6, 7, 8));
  EXPECT_THAT(reduced("mul"), ElementsAre(2, 4, 6, 8, 5, 6, 7, 8));
  EXPECT_THAT(reduced("max"), ElementsAre(2, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(reduced("min"), ElementsAre(1, 1, 1, 1, 5, 6, 7, 8));
  out = run("ScatterND", "", {cube, ints({1, 2}, {-1, 0}), array(DType::F32, {1, 2}, {0, 9})});
  EXPECT_THAT(out[0].to_doubles(), ElementsAre(1, 2, 3, 4, 0, 9, 7, 8));
  // Empty tuples address the whole tensor; no tuples change nothing.
  out = run("ScatterND", "", {cube, Array(DType::I64, {1, 0}), slices.reshaped({1, 2, 2, 2})});
  EXPECT_EQ(out[0].to_doubles(), slices.to_doubles());
  out = run("ScatterND", "", {cube, Array(DType::I64, {0, 1}), Array(DType::F32, {0, 2, 2})});
  EXPECT_EQ(out[0].to_doubles(), cube.to_doubles());
}

TEST(Scatter, BadInputs) {
  const Array data = array(DType::F32, {4}, {1, 2, 3, 4}), one = array(DType::F32, {1}, {9});
  for (const char* op : {"ScatterND", "ScatterElements"}) {
    const bool nd = std::string(op) == "ScatterND";
    auto index = [&](double i) { return ints(nd ? Shape{1, 1} : Shape{1}, {i}); };
    EXPECT_THAT(error_of(op, "", {data, index(4), one}),
                HasSubstr("index 4 of input 1 is outside axis 0"));
    EXPECT_THAT(error_of(op, "", {data, index(-5), one}), HasSubstr("index -5"));
    EXPECT_THAT(error_of(op, "{\"reduction\": \"sum\"}", {data, index(0), one}),
                HasSubstr("unknown reduction 'sum'"));
    EXPECT_THAT(error_of(op, "{\"reduction\": 1}", {data, index(0), one}),
                HasSubstr("not a string"));
    EXPECT_THAT(error_of(op, "", {data, index(0), one.cast(DType::F64)}), HasSubstr("f64"));
    EXPECT_THAT(error_of(op, "", {data, index(0).cast(DType::F32), one}), HasSubstr("not i32"));
    EXPECT_THAT(error_of(op, "", {data, index(0), data}), HasSubstr("do not fit together"));
    EXPECT_THAT(error_of(op, "", {data, index(0)}), HasSubstr("input 2 is missing"));
  }
  EXPECT_THAT(error_of("ScatterND", "", {data, ints({1, 2}, {0, 0}), one}),
              HasSubstr("do not fit together"));
  EXPECT_THAT(error_of("ScatterND", "", {data, ints({}, {0}), one}),
              HasSubstr("do not fit together"));
}

}  // namespace
}  // namespace tilewright::runtime
