// Quantisation against plain loops, against f32 runs in the interpreter, and on whole networks of
// the zoo by structure.
#include "tilewright/graph/quantize/quantize.h"

#include <gmock/gmock.h>

#include <set>

#include "tilewright/graph/quantize/layer.h"
#include "tilewright/graph/quantize/scale.h"
#include "tilewright/graph/testing/quantize.h"
#include "tilewright/zoo/zoo.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

double rounding_error(const std::vector<float>& values, int exponent) {
  const double step = std::ldexp(1.0, exponent);
  double total = 0;
  for (const float x : values) {
    const double q = std::clamp(std::nearbyint(x / step), -127.0, 127.0);
    total += (x - q * step) * (x - q * step);
  }
  return total;
}

TEST(QuantizeScale, ExponentsCoverAndBalance) {
  EXPECT_EQ(covering_exponent(127), 0);
  EXPECT_EQ(covering_exponent(127.5), 1);
  EXPECT_EQ(covering_exponent(1), -6);
  EXPECT_EQ(covering_exponent(254), 1);
  EXPECT_EQ(exact_log2(0.25), -2);
  EXPECT_FALSE(exact_log2(0.3));
  EXPECT_FALSE(exact_log2(0));
  Rng rng(3);
  for (const double outlier : {0.0, 6.0, 40.0, 4000.0}) {
    std::vector<float> values;
    for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(rng.normal()));
    if (outlier > 0) values.push_back(static_cast<float>(outlier));
    const std::vector<double> reals(values.begin(), values.end());
    Ranges ranges;
    accumulate(ranges, 0, Array::of(DType::F32, reals));
    const int from_histogram = best_exponent(ranges.values[0]);
    double least = 1e300;
    for (int e = -12; e < 12; ++e) least = std::min(least, rounding_error(values, e));
    // Four candidates from the covering one down are looked at.
    if (outlier < 100) {
      EXPECT_LE(rounding_error(values, from_histogram), 1.25 * least) << outlier;
    }
    EXPECT_LE(rounding_error(values, from_histogram),
              rounding_error(values, covering_exponent(std::max(outlier, 5.0))))
        << outlier;
  }
}

TEST(QuantizeScale, SamplesAddUpInAnyOrder) {
  Rng rng(4);
  const Array a = normal_array(rng, {2, 3, 2, 2}), b = normal_array(rng, {1, 3, 4, 4}, 3);
  Ranges ab, ba;
  accumulate(ab, 1, a), accumulate(ab, 1, b);
  accumulate(ba, 1, b), accumulate(ba, 1, a);
  EXPECT_EQ(ab.values[1].bins, ba.values[1].bins);
  EXPECT_EQ(ab.values[1].count, 24 + 48);
  EXPECT_EQ(ab.values[1].lo, ba.values[1].lo);
  double sum = 0;
  for (const Array* array : {&a, &b})
    for (int64_t i = 0; i < array->size(); ++i)
      if (i / (array->size() / array->shape()[0] / 3) % 3 == 1) sum += array->get(i);
  EXPECT_NEAR(ab.values[1].channel_sum[1], sum, 1e-4);
  Array odd(DType::F32, {1, 2});
  odd.set(0, std::numeric_limits<double>::infinity());
  accumulate(ab, 2, odd);
  EXPECT_EQ(ab.values[2].hi, 0);
}

/// A layer with one tap, on random inputs: what the integers give and what they stand for.
struct Trial {
  LayerSpec spec;
  LayerNumbers numbers;
};

int64_t integer_result(const LayerNumbers& n, int64_t o, const std::vector<int64_t>& x, int64_t r) {
  int64_t sum = 0;
  const int64_t ins = n.weight.shape()[1];
  for (int64_t i = 0; i < ins; ++i)
    sum += n.weight.get_int(o * ins + i) * x[static_cast<size_t>(i)];
  if (n.multiplier) {
    sum >>= n.pre_shift;  // before the bias
    if (n.limit > 0) sum = std::clamp(sum, -n.limit, n.limit);
    sum *= n.multiplier->get_int(o);
  }
  sum += n.bias.get_int(o);
  if (!n.multiplier) sum >>= n.pre_shift;
  sum += (r * n.residual_multiplier) << n.residual_shift;
  EXPECT_LT(std::abs(sum), int64_t{1} << 31);
  return std::clamp(sum >> n.shift, n.lo, n.hi);
}

double real_result(const LayerSpec& s, const LayerNumbers& n, int64_t o,
                   const std::vector<int64_t>& x, int64_t r) {
  const int64_t ins = n.weight.shape()[1];
  const double ws = s.weight_scale[s.weight_scale.size() == 1 ? 0 : static_cast<size_t>(o)];
  double sum = s.bias.empty() ? 0 : s.bias[static_cast<size_t>(o)];
  for (int64_t i = 0; i < ins; ++i)
    sum += static_cast<double>(n.weight.get_int(o * ins + i) * x[static_cast<size_t>(i)]) * ws *
           s.x_scale;
  if (s.residual_scale) sum += static_cast<double>(r) * *s.residual_scale;
  return sum;
}

LayerSpec random_spec(Rng& rng, int64_t outs, int64_t ins) {
  LayerSpec spec;
  spec.weight = normal_array(rng, {outs, ins, 1, 1}, 0.3);
  for (int64_t o = 0; o < outs; ++o) spec.bias.push_back(rng.normal());
  return spec;
}

TEST(QuantizeLayer, HalfEvenLeavesTheRoundingToRequantize) {
  Rng rng(5);
  LayerSpec spec = random_spec(rng, 8, 20);
  spec.x_scale = 1.0 / 32, spec.y_scale = 1.0 / 16, spec.weight_scale = {1.0 / 128};
  spec.residual_scale = 1.0 / 8;
  const auto up = layer_numbers(spec);
  spec.half_even = true;
  const auto even = layer_numbers(spec);
  ASSERT_TRUE(up && even);
  EXPECT_EQ(up->pre_shift, 3);
  EXPECT_EQ(even->pre_shift, 0);
  EXPECT_EQ(even->shift, 8);
  EXPECT_EQ(even->residual_shift, 9);
  for (int64_t o = 0; o < 8; ++o) EXPECT_EQ(up->bias.get_int(o), even->bias.get_int(o) + 128);
  EXPECT_EQ(even->attrs().get_int("half_even", 0), 1);
  EXPECT_EQ(up->attrs().get_int("half_even", 0), 0);
}

TEST(QuantizeLayer, ShiftsRoundToTheNearest) {
  Rng rng(5);
  for (const bool residual : {false, true}) {
    LayerSpec spec = random_spec(rng, 8, 20);
    spec.x_scale = 1.0 / 32, spec.y_scale = 1.0 / 16, spec.weight_scale = {1.0 / 128};
    if (residual) spec.residual_scale = 1.0 / 8;
    spec.lo = 0;
    const auto numbers = layer_numbers(spec);
    ASSERT_TRUE(numbers) << to_string(numbers.error());
    EXPECT_FALSE(numbers->multiplier);
    EXPECT_EQ(numbers->pre_shift, residual ? 3 : 0);
    EXPECT_EQ(numbers->shift, residual ? 5 : 8);
    EXPECT_EQ(numbers->residual_shift, residual ? 6 : 0);
    EXPECT_EQ(numbers->lo, 0);
    for (int t = 0; t < 50; ++t) {
      std::vector<int64_t> x;
      for (int i = 0; i < 20; ++i) x.push_back(rng.between(-128, 127));
      const int64_t o = rng.between(0, 7), r = residual ? rng.between(-128, 127) : 0;
      const double real = real_result(spec, *numbers, o, x, r) / spec.y_scale;
      const auto y = static_cast<double>(integer_result(*numbers, o, x, r));
      EXPECT_NEAR(y, std::clamp(real, 0.0, 127.0), 0.5 + 1.0 / 256);
    }
  }
}

TEST(QuantizeLayer, MultipliersStayWithinOneStep) {
  Rng rng(6);
  int wrong = 0, total = 0;
  for (const bool residual : {false, true}) {
    LayerSpec spec = random_spec(rng, 8, 200);
    spec.x_scale = 0.0213, spec.y_scale = 0.0471;
    for (int o = 0; o < 8; ++o) spec.weight_scale.push_back(0.0081 * (1 + 0.1 * o));
    if (residual) spec.residual_scale = 0.0333;
    const auto numbers = layer_numbers(spec);
    ASSERT_TRUE(numbers) << to_string(numbers.error());
    ASSERT_TRUE(numbers->multiplier);
    EXPECT_GT(numbers->multiplier->get_int(0), 1000);
    for (int t = 0; t < 2000; ++t) {
      std::vector<int64_t> x;
      for (int i = 0; i < 200; ++i) x.push_back(rng.between(-40, 40));
      const int64_t o = rng.between(0, 7), r = rng.between(-128, 127);
      const double real = real_result(spec, *numbers, o, x, r) / spec.y_scale;
      const double want = std::clamp(std::nearbyint(real), -128.0, 127.0);
      const auto y = static_cast<double>(integer_result(*numbers, o, x, r));
      EXPECT_LE(std::fabs(y - want), 1);
      wrong += y != want;
      ++total;
    }
  }
  EXPECT_LE(wrong * 100, total);
}

TEST(QuantizeLayer, LowPartGivesWhatTheFirstRoundsAway) {
  Rng rng(7);
  LayerSpec spec = random_spec(rng, 4, 30);
  spec.x_scale = 1.0 / 32, spec.y_scale = 1.0 / 4, spec.weight_scale = {1.0 / 128};
  const auto numbers = layer_numbers(spec);
  ASSERT_TRUE(numbers);
  const auto low = low_part(*numbers, spec.y_scale);
  ASSERT_TRUE(low);
  EXPECT_EQ(low->scale, spec.y_scale / 64);
  EXPECT_LE(low->numbers.residual_shift, 6);
  for (int t = 0; t < 200; ++t) {
    std::vector<int64_t> x;
    for (int i = 0; i < 30; ++i) x.push_back(rng.between(-128, 127));
    const int64_t o = rng.between(0, 3), first = integer_result(*numbers, o, x, 0);
    const int64_t second = integer_result(low->numbers, o, x, first);
    const double got =
        static_cast<double>(first) * spec.y_scale - static_cast<double>(second) * low->scale;
    EXPECT_NEAR(got, real_result(spec, *numbers, o, x, 0), low->scale);
  }
  LayerNumbers clipped = *numbers;
  clipped.lo = 0;
  EXPECT_FALSE(low_part(clipped, spec.y_scale));
}

TEST(QuantizeLayer, FiltersAnswerTheMeanInputExactly) {
  Rng rng(8);
  LayerSpec spec = random_spec(rng, 6, 50);
  spec.x_scale = 1.0 / 32, spec.y_scale = 1.0 / 16, spec.weight_scale = {1.0 / 64};
  for (int i = 0; i < 50; ++i) spec.mean.push_back(0.2 + rng.uniform());
  const auto numbers = layer_numbers(spec);
  ASSERT_TRUE(numbers);
  for (int64_t o = 0; o < 6; ++o) {
    double error = 0;
    for (int64_t i = 0; i < 50; ++i) {
      const double q = static_cast<double>(numbers->weight.get_int(o * 50 + i)) / 64;
      EXPECT_LT(std::fabs(q - spec.weight.get(o * 50 + i)), 1.0 / 64);
      error += (q - spec.weight.get(o * 50 + i)) * spec.mean[static_cast<size_t>(i)];
    }
    EXPECT_LT(std::fabs(error), 1.3 / 64);
  }
}

TEST(QuantizeLayer, ScalesTooFarApartAreRefused) {
  Rng rng(9);
  LayerSpec spec = random_spec(rng, 2, 3);
  spec.x_scale = 1, spec.y_scale = 1e-30, spec.weight_scale = {1};
  const auto numbers = layer_numbers(spec);
  ASSERT_FALSE(numbers);
  EXPECT_THAT(to_string(numbers.error()), HasSubstr("too far apart"));
}

// --- prepare_quantize computes the same.

void expect_same_function(const Graph& graph, const std::string& what,
                          const std::set<std::string>& gone) {
  const Graph p = prepared(graph);
  for (const auto& [op, count] : count_ops(p)) EXPECT_FALSE(gone.contains(op)) << what << op;
  const auto inputs = normal_inputs(graph, 11);
  const auto want = run_graph(graph, inputs), got = run_graph(p, inputs);
  ASSERT_TRUE(want && got) << what;
  for (size_t i = 0; i < want->size(); ++i)
    EXPECT_LT(max_difference((*want)[i], (*got)[i]), 2e-5) << what;
}

TEST(PrepareQuantize, StridedConvolutionsOfFewChannels) {
  for (const auto& [kernel, stride, pad, size] : std::vector<std::array<int64_t, 4>>{
           {7, 2, 3, 12}, {3, 2, 1, 11}, {5, 3, 0, 12}, {3, 2, 0, 10}, {4, 4, 0, 13}}) {
    for (const bool first : {true, false}) {
      Layers l;
      ValueId x = l.input({1, 3, size, size + 1});
      if (!first) x = l.b.node("Tanh", {x});
      const Graph g = l.finish(l.conv(x, 4, kernel, stride, pad));
      expect_same_function(g, std::to_string(kernel) + " by " + std::to_string(stride) + " ", {});
      // Windows of the graph's input are taken apart where that needs fewer products of tiles.
      auto counts = count_ops(prepared(g));
      if (kernel < 4) {
        EXPECT_EQ(counts["Im2Col"], first ? 1 : 0) << kernel;
      }
      EXPECT_EQ(counts["Im2Col"] + counts["SpaceToDepth"], 1) << kernel;
      EXPECT_LE(counts["Im2Col"], first ? 1 : 0) << kernel;
    }
  }
}

TEST(PrepareQuantize, TransposedConvolutions) {
  for (const auto& [kernel, stride, pad] :
       std::vector<std::array<int64_t, 3>>{{4, 2, 1}, {3, 2, 0}, {2, 2, 0}, {3, 1, 1}}) {
    Layers l;
    const ValueId x = l.input({1, 3, 4, 5});
    const ValueId y =
        l.b.node("ConvTranspose", {x, l.weight({3, 2, kernel, kernel}, 0.5), l.weight({2}, 0.5)},
                 {{"strides", Sizes{stride, stride}}, {"pads", Sizes{pad, pad, pad, pad}}});
    expect_same_function(l.finish(l.relu(y)), std::to_string(kernel) + " ", {"ConvTranspose"});
  }
}

TEST(PrepareQuantize, Pools) {
  for (const int64_t include : {0, 1}) {
    for (const int64_t ceil : {0, 1}) {
      Layers l;
      const ValueId x = l.input({1, 3, 7, 8});
      const AttrList attrs = {{"kernel_shape", Sizes{3, 3}},
                              {"strides", Sizes{2, 2}},
                              {"pads", Sizes{1, 1, 1, 1}},
                              {"ceil_mode", ceil}};
      AttrList average = attrs;
      average.emplace_back("count_include_pad", include);
      const ValueId a = l.b.node("AveragePool", {x}, average), m = l.b.node("MaxPool", {x}, attrs);
      expect_same_function(l.finish(l.b.node("Add", {a, m})), "pools ", {"AveragePool"});
    }
  }
  Layers l;
  const ValueId x = l.input({2, 3, 4, 5});
  const ValueId axes = l.b.ints({-1, 2});
  const ValueId y = l.b.node("ReduceMean", {x, axes}, {{"keepdims", int64_t{0}}});
  expect_same_function(l.finish(l.b.node("Exp", {y})), "mean ", {"ReduceMean"});
}

TEST(PrepareQuantize, DenseLayers) {
  Layers l;
  ValueId x = l.b.node("Flatten", {l.input({2, 3, 2, 2})});
  x = l.relu(l.dense(x, 5));
  x = l.b.node("MatMul", {x, l.weight({5, 4}, 0.5)});
  x = l.b.node("Add", {l.weight({4}, 0.5), x});
  x = l.b.node("Gemm", {x, l.weight({4, 3}, 0.5)}, {{"alpha", 0.5}});
  const Graph g = l.finish(x);
  expect_same_function(g, "dense ", {"Gemm", "MatMul", "Add", "Flatten"});
  Layers pooled;
  x = pooled.b.node("Flatten", {pooled.b.node("GlobalAveragePool", {pooled.input({2, 5, 3, 4})})});
  expect_same_function(pooled.finish(pooled.relu(pooled.dense(x, 4))), "pooled ", {"Gemm"});
}

TEST(PrepareQuantize, Arithmetic) {
  Layers l;
  ValueId x = l.input({1, 4, 3, 3});
  x = l.b.node("Mul", {x, l.weight({1, 4, 1, 1}, 1)});
  x = l.b.node("Sub", {l.weight({4, 1, 1}, 1), x});
  const ValueId y = l.b.node("LeakyRelu", {x}, {{"alpha", 0.1}});
  const ValueId slopes = l.b.constant(
      "slopes", Array::of(DType::F32, std::vector<double>{0.1, 0, 1, 0.5}).reshaped({4, 1, 1}));
  const ValueId z = l.b.node("PRelu", {x, slopes});
  const ValueId d = l.b.node("Sub", {y, z});
  const Graph g = l.finish(l.b.node("Sum", {d, x, y}));
  expect_same_function(g, "arithmetic ", {"Mul", "Sub", "LeakyRelu", "PRelu", "Sum"});
  EXPECT_EQ(count_ops(prepared(g))["Conv"], 4);
}

// --- quantize.

/// The value that `y` is an activation of, in f32 and from integers.
double output_snr(const Graph& graph, const QuantizeOptions& options, uint64_t seed) {
  const QuantizedGraph q = quantized(graph, options);
  const auto inputs = normal_inputs(graph, seed);
  const Graph p = prepared(graph);
  const auto want = run_all(p, inputs), got = run_all(q.graph, inputs);
  const auto before_last = [](const Graph& g, const std::vector<Array>& values) {
    return values[static_cast<size_t>(g.nodes.back().inputs[0])];
  };
  return snr(before_last(p, want), before_last(q.graph, got));
}

TEST(Quantize, IntegersComeNearTheRealNumbers) {
  for (const bool per_channel : {false, true}) {
    QuantizeOptions options;
    options.per_channel = per_channel;
    EXPECT_GT(output_snr(residual_net(), options, 21), 25) << per_channel;
    EXPECT_GT(output_snr(branching_net(), options, 22), 25) << per_channel;
  }
}

TEST(Quantize, OnlyShiftsUnlessPerChannel) {
  const QuantizedGraph plain = quantized(residual_net());
  for (const Node& node : plain.graph.nodes) {
    if (node.op != "Requantize") continue;
    EXPECT_LE(node.inputs.size(), 3u) << node.name;
    EXPECT_FALSE(node.attrs.has("residual_multiplier")) << node.name;
    EXPECT_LE(node.attrs.get_int("residual_shift", 0), kMaxResidualShift);
  }
  for (const auto& scales : plain.scales)
    for (const double scale : scales) EXPECT_TRUE(exact_log2(scale)) << scale;
  QuantizeOptions options;
  options.per_channel = true;
  const QuantizedGraph fine = quantized(residual_net(), options);
  const bool multiplied =
      std::any_of(fine.graph.nodes.begin(), fine.graph.nodes.end(),
                  [](const Node& n) { return n.op == "Requantize" && n.inputs.size() == 4; });
  EXPECT_TRUE(multiplied);
}

TEST(Quantize, WideOutputsHaveMoreBits) {
  Layers l;
  const Graph g = l.finish(l.b.node("Exp", {l.conv(l.input({1, 5, 4, 4}), 6, 3, 1, 1)}));
  const QuantizedGraph q = quantized(g);
  QuantizeOptions narrow;
  narrow.wide_outputs = false;
  const QuantizedGraph n = quantized(g, narrow);
  EXPECT_EQ(count_ops(q.graph)["ConvInteger"], 2);
  EXPECT_EQ(count_ops(n.graph)["ConvInteger"], 1);
  EXPECT_EQ(count_ops(n.graph)["DequantizeLinear"], 1);
}

TEST(Quantize, ResultsThatComeBackStayNarrow) {
  Layers l;
  const ValueId x = l.b.node("Tanh", {l.conv(l.input({1, 5, 4, 4}), 6, 3, 1, 1)});
  const QuantizedGraph q = quantized(l.finish(l.b.node("Exp", {l.conv(x, 3, 1)})));
  EXPECT_EQ(count_ops(q.graph)["ConvInteger"], 3);
  EXPECT_THAT(q.notes, ::testing::Contains(HasSubstr("Tanh 'Tanh' stays f32")));
}

TEST(Quantize, UncalibratedValuesAreNamed) {
  const Graph p = prepared(residual_net());
  const auto q = quantize(p, Ranges{});
  ASSERT_FALSE(q);
  EXPECT_THAT(to_string(q.error()), HasSubstr("was not calibrated"));
}

/// Nodes of a zoo network that stay f32, other than conversions and movement at its ends.
std::set<std::string> real_operators(const std::string& network, int64_t size,
                                     std::map<std::string, int>& counts) {
  const auto graph = zoo::build(network, {1, 1, size});
  EXPECT_TRUE(graph) << to_string(graph.error());
  const Graph p = prepared(*graph);
  const auto q = quantize(p, made_up_ranges(p), {});
  EXPECT_TRUE(q) << to_string(q.error());
  const Status sound = verify(q->graph);
  EXPECT_TRUE(sound) << to_string(sound.error());
  counts = count_ops(q->graph);
  static const std::set<std::string> kEnds = {
      "QuantizeLinear", "DequantizeLinear", "Pad", "SpaceToDepth", "Reshape", "Sub", "Im2Col"};
  std::set<std::string> real;
  for (const Node& node : q->graph.nodes) {
    const auto dtype = q->graph.values[static_cast<size_t>(node.outputs[0])].type.dtype;
    if (is_float(dtype) && !kEnds.contains(node.op)) real.insert(node.op);
  }
  return real;
}

TEST(QuantizeSlow, ResNetLeavesOnlySoftmax) {
  std::map<std::string, int> counts;
  EXPECT_EQ(real_operators("resnet18", 64, counts), std::set<std::string>{"Softmax"});
  // 20 convolutions, dense, its mean, and that mean's low part; additions are inside Requantize.
  EXPECT_EQ(counts["ConvInteger"], 23);
  EXPECT_EQ(counts["Requantize"], 23);
  EXPECT_EQ(counts["MaxPool"], 1);
  EXPECT_EQ(counts["Add"], 0);
  EXPECT_EQ(counts["QuantizeLinear"], 1);
}

TEST(QuantizeSlow, MobileNetLeavesOnlySoftmax) {
  std::map<std::string, int> counts;
  EXPECT_EQ(real_operators("mobilenet_v2", 64, counts), std::set<std::string>{"Softmax"});
  EXPECT_EQ(counts["ConvInteger"], 52 + 3);
  EXPECT_EQ(counts["Add"], 0);
}

}  // namespace
}  // namespace tilewright::graph
