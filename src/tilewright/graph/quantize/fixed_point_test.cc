// Quantisation for a target of binary points: which operators come out, and that they compute what
// the f32 graph computes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "tilewright/graph/quantize/scale.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

const Value& value_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

QuantizedGraph fixed(const Graph& graph, const IntegerAbilities& target = fixed_point_target()) {
  QuantizeOptions options;
  options.target = target;
  return quantized(graph, options);
}

/// Dequantised integers of one run against the f32 values they stand for. units: dB
void expect_near(const Graph& graph, double least) {
  const QuantizedGraph q = fixed(graph);
  const auto inputs = normal_inputs(graph, 100);
  const auto got = run_all(q.graph, inputs);
  const Graph p = prepared(graph, fixed_point_target());
  const auto want = run_all(p, inputs);
  std::map<std::string, Array> by_name;
  for (size_t v = 0; v < want.size(); ++v) by_name[p.values[v].name] = want[v];
  for (size_t v = 0; v < got.size(); ++v) {
    if (q.origins[v].empty() || q.graph.values[v].constant) continue;
    ASSERT_EQ(q.scales[v].size(), 1u);
    EXPECT_TRUE(exact_log2(q.scales[v][0])) << q.graph.values[v].name;
    Array real(DType::F32, got[v].shape());
    for (int64_t i = 0; i < real.size(); ++i) real.set(i, got[v].get(i) * q.scales[v][0]);
    EXPECT_GT(snr(by_name.at(q.origins[v]), real), least) << q.origins[v];
  }
}

TEST(FixedPointGraph, ResidualsAreAddedAsBytes) {
  const QuantizedGraph q = fixed(residual_net());
  const auto counts = count_ops(q.graph);
  EXPECT_EQ(counts.at("ConvInteger"), 7);
  EXPECT_EQ(counts.at("RequantizeFixed"), 7);
  EXPECT_EQ(counts.at("EltwiseFixed"), 2);
  EXPECT_EQ(counts.at("AveragePoolFixed"), 1);
  for (const char* other : {"Requantize", "SpaceToDepth", "Im2Col", "Add", "Sub"})
    EXPECT_FALSE(counts.contains(other)) << other;
  expect_near(residual_net(), 20);
}

TEST(FixedPointGraph, LeakyReluBelongsToWhatMakesItsInput) {
  for (const double slope : {0.1, 0.2}) {
    Layers l(5);
    const ValueId x = l.conv(l.input({1, 3, 9, 8}), 6, 3, 2, 1);
    const ValueId a = l.b.node("LeakyRelu", {x}, {{"alpha", slope}});
    const ValueId c = l.b.node("LeakyRelu", {l.conv(a, 6, 3, 1, 1)}, {{"alpha", slope}});
    const ValueId s = l.b.node("LeakyRelu", {l.b.node("Add", {a, c})}, {{"alpha", slope}});
    const Graph graph = l.finish(l.conv(s, 4, 1));
    const QuantizedGraph q = fixed(graph);
    int leaky = 0;
    for (const Node& node : q.graph.nodes)
      leaky += static_cast<int>(node.attrs.get_int("leaky", 0));
    EXPECT_EQ(leaky, slope == 0.1 ? 3 : 0);
    // x + relu((slope - 1) x): a convolution and an addition more.
    EXPECT_EQ(count_ops(q.graph)["EltwiseFixed"], slope == 0.1 ? 1 : 4);
    EXPECT_EQ(count_ops(q.graph)["ConvInteger"], slope == 0.1 ? 3 : 6);
    expect_near(graph, 20);
  }
}

TEST(FixedPointGraph, BranchesShareScalesAndPoolsStay) {
  const QuantizedGraph q = fixed(branching_net());
  const auto counts = count_ops(q.graph);
  EXPECT_EQ(counts.at("AveragePoolFixed"), 1);
  EXPECT_EQ(counts.at("Concat"), 1);
  EXPECT_EQ(counts.at("MaxPool"), 1);
  for (const Node& node : q.graph.nodes) {
    if (node.op == "AveragePoolFixed") {
      EXPECT_EQ(node.attrs.get_int("count_include_pad", 1), 0);
      EXPECT_EQ(node.attrs.get_int("factor", 0), 910);
    }
    if (node.op != "Concat" && node.op != "MaxPool") continue;
    for (const ValueId id : node.inputs)
      EXPECT_EQ(q.scales[static_cast<size_t>(id)], q.scales[static_cast<size_t>(node.outputs[0])]);
  }
  expect_near(branching_net(), 18);
}

TEST(FixedPointGraph, TransposedConvolutionsStayWhole) {
  Layers l(6);
  ValueId x = l.relu(l.conv(l.input({1, 3, 6, 5}), 8, 3, 1, 1));
  x = l.b.node("ConvTranspose", {x, l.weight({8, 3, 4, 4}, 0.2), l.weight({6}, 0.2)},
               {{"strides", Sizes{2, 2}}, {"pads", Sizes{1, 1, 1, 1}}, {"group", int64_t{2}}});
  const Graph graph = l.finish(l.conv(l.relu(x), 4, 1));
  const auto counts = count_ops(fixed(graph).graph);
  EXPECT_EQ(counts.at("ConvTransposeInteger"), 1);
  EXPECT_FALSE(counts.contains("DepthToSpace"));
  expect_near(graph, 20);
}

TEST(FixedPointGraph, Relu6IsABoundAndBiasesHoldNoRounding) {
  Layers l(8);
  const ValueId x = l.input({1, 4, 5, 5});
  Array w(DType::F32, {6, 4, 1, 1});
  for (float& element : w.as<float>()) element = 1.0F / 64;
  const Array biases = Array::of(DType::F32, std::vector<double>{0.5, -1, 2, 3.3, 4.7, 9});
  const ValueId y = l.b.node("Conv", {x, l.b.constant("w", w), l.b.constant("b", biases)});
  const ValueId low = l.b.constant("lo", Array::scalar(DType::F32, 0));
  const ValueId high = l.b.constant("hi", Array::scalar(DType::F32, 6));
  const Graph graph = l.finish(l.b.node("Clip", {y, low, high}));
  const QuantizedGraph q = fixed(graph);
  EXPECT_EQ(count_ops(q.graph)["RequantizeFixed"], 1);
  for (const Node& node : q.graph.nodes) {
    if (node.op != "RequantizeFixed") continue;
    EXPECT_GT(node.attrs.get_int("shift", 0), 2);
    const double scale = q.scales[static_cast<size_t>(node.outputs[0])][0];
    EXPECT_EQ(node.attrs.get_int("lo", -128), 0);
    EXPECT_EQ(static_cast<double>(node.attrs.get_int("hi", 127)), std::min(127.0, 6 / scale));
    const double unit = std::ldexp(scale, -static_cast<int>(node.attrs.get_int("shift", 0)));
    const Array& bias = *q.graph.values[static_cast<size_t>(node.inputs[1])].constant;
    const Graph p = prepared(graph, fixed_point_target());
    const Array& real = *p.values[static_cast<size_t>(p.nodes[0].inputs[2])].constant;
    for (int64_t c = 0; c < 6; ++c) EXPECT_NEAR(bias.get(c) * unit, real.get(c), unit);
  }
}

TEST(FixedPointGraph, DenseAveragesCountPaddingAndSaySo) {
  IntegerAbilities target = fixed_point_target();
  target.averages = Averages::Dense;
  const Graph p = prepared(branching_net(), target);
  EXPECT_THAT(fmt::format("{}", fmt::join(p.warnings, "\n")), HasSubstr("its borders change"));
  int averages = 0;
  for (const Node& node : fixed(branching_net(), target).graph.nodes) {
    if (node.op != "AveragePoolFixed") continue;
    ++averages;
    EXPECT_EQ(node.attrs.get_int("count_include_pad", 1), 1);
    EXPECT_EQ(node.attrs.get_int("factor", 0), 114);  // 1024 / 9
  }
  EXPECT_EQ(averages, 1);
  // A pool with one result is none that becomes a convolution.
  for (const Node& node : fixed(residual_net(), target).graph.nodes) {
    if (node.op == "AveragePoolFixed") {
      EXPECT_GE(node.attrs.get_int("factor", 0), 512);
    }
  }
}

/// Layers without residuals: their QDQ form has a scale at every border.
Graph straight_net() {
  Layers l(9);
  ValueId x = l.relu(l.conv(l.input({1, 4, 9, 8}), 6, 3, 2, 1));
  x = l.b.node("MaxPool", {x}, {{"kernel_shape", Sizes{2, 2}}});
  return l.finish(l.conv(l.relu(l.conv(x, 6, 3, 1, 1)), 5, 1));
}

TEST(FixedPointGraph, QdqModelsWithPowersOfTwoGiveTheSameIntegers) {
  const Graph graph = straight_net();
  const QuantizedGraph q = fixed(graph);
  QuantizeOptions options;
  options.wide_outputs = false;
  options.target.first_convolutions = true;
  const auto qdq = to_qdq(quantized(graph, options));
  ASSERT_TRUE(qdq) << to_string(qdq.error());
  PassContext context;
  const auto back = from_qdq(*qdq, context, fixed_point_target());
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(count_ops(back->graph), count_ops(q.graph));
  const auto inputs = normal_inputs(graph, 3);
  const Array want = run_all(q.graph, inputs)[static_cast<size_t>(q.graph.outputs[0])];
  const Array got = run_all(back->graph, inputs)[static_cast<size_t>(back->graph.outputs[0])];
  EXPECT_TRUE(identical(want, got));
}

/// LeakyRelu, transposed convolutions, sums and averages.
Graph mixed_net() {
  Layers l(12);
  ValueId x =
      l.b.node("LeakyRelu", {l.conv(l.input({1, 3, 12, 10}), 8, 3, 2, 1)}, {{"alpha", 0.1}});
  ValueId y = l.b.node("LeakyRelu", {l.conv(x, 8, 3, 1, 1)}, {{"alpha", 0.1}});
  x = l.b.node("LeakyRelu", {l.b.node("Add", {x, y})}, {{"alpha", 0.1}});
  x = l.b.node("ConvTranspose", {x, l.weight({8, 6, 3, 3}, 0.2)}, {{"strides", Sizes{2, 2}}});
  x = l.b.node("AveragePool", {l.relu(x)},
               {{"kernel_shape", Sizes{3, 3}}, {"pads", Sizes{1, 1, 1, 1}}});
  return l.finish(l.conv(x, 4, 1));
}

TEST(FixedPointGraph, StandardFormsGiveTheSameIntegers) {
  for (const Graph& graph : {residual_net(), branching_net(), mixed_net()}) {
    const QuantizedGraph q = fixed(graph);
    const auto e = to_qdq(q);
    ASSERT_TRUE(e) << to_string(e.error());
    for (const Node& node : e->nodes) EXPECT_EQ(node.domain, "") << node.op;
    std::map<std::string, size_t> index;
    for (size_t v = 0; v < e->values.size(); ++v) index[e->values[v].name] = v;
    for (const uint64_t seed : {31, 32}) {
      const auto inputs = normal_inputs(q.graph, seed);
      const auto want = run_all(q.graph, inputs), got = run_all(*e, inputs);
      int compared = 0;
      for (size_t v = 0; v < q.graph.values.size(); ++v) {
        if (q.graph.values[v].constant || q.scales[v].empty()) continue;
        const auto found = index.find(q.graph.values[v].name);
        ASSERT_NE(found, index.end()) << q.graph.values[v].name;
        EXPECT_TRUE(identical(want[v], got[found->second])) << q.graph.values[v].name;
        ++compared;
      }
      EXPECT_GE(compared, 7);
    }
  }
}

/// Rounds a value to 8 bits and back, as a QDQ model says it.
ValueId rounded(Layers& l, ValueId x, double scale) {
  const ValueId s = l.b.constant("s", Array::scalar(DType::F32, scale));
  const ValueId z = l.b.constant("z", Array(DType::I8, Shape{}));
  return l.b.node("DequantizeLinear", {l.b.node("QuantizeLinear", {x, s, z}), s, z});
}
ValueId weight_of_codes(Layers& l, const Shape& shape, double scale) {
  Array codes(DType::I8, shape);
  for (int64_t i = 0; i < codes.size(); ++i) codes.set_int(i, l.rng.between(-127, 127));
  const ValueId s = l.b.constant("s", Array::scalar(DType::F32, scale));
  return l.b.node("DequantizeLinear",
                  {l.b.constant("q", codes), s, l.b.constant("z", Array(DType::I8, Shape{}))});
}

/// A user's residual block; `rounds`: the second convolution's sum is rounded before the addition.
Graph users_residual(bool rounds) {
  Layers l(14);
  const Sizes pads = {1, 1, 1, 1};
  const ValueId x = rounded(l, l.input({1, 4, 6, 6}), 1.0 / 32);
  ValueId y = l.b.node("Conv", {x, weight_of_codes(l, {6, 4, 3, 3}, 1.0 / 1024)}, {{"pads", pads}});
  const ValueId r = rounded(l, l.relu(y), 1.0 / 32);
  y = l.b.node("Conv", {r, weight_of_codes(l, {6, 6, 3, 3}, 1.0 / 1024)}, {{"pads", pads}});
  if (rounds) y = rounded(l, y, 1.0 / 16);
  y = rounded(l, l.relu(l.b.node("Add", {y, r})), 1.0 / 16);
  y = l.b.node("Conv", {y, weight_of_codes(l, {5, 6, 1, 1}, 1.0 / 512)});
  return l.finish(rounded(l, y, 1.0 / 8));
}

TEST(FixedPointGraph, UsersAdditionsNeedAScaleForEachOperand) {
  PassContext context;
  const auto q = from_qdq(users_residual(true), context, fixed_point_target());
  ASSERT_TRUE(q) << to_string(q.error());
  auto counts = count_ops(q->graph);
  EXPECT_EQ(counts["RequantizeFixed"], 3);
  EXPECT_EQ(counts["EltwiseFixed"], 1);
  EXPECT_EQ(counts["Conv"] + counts["Add"] + counts["Relu"], 0);
  EXPECT_TRUE(q->f32_reasons.empty());
  // The model itself rounds to even: one unit, where a value lies in the middle of two.
  const auto inputs = normal_inputs(q->graph, 5);
  const auto want = run_graph(users_residual(true), inputs), got = run_graph(q->graph, inputs);
  ASSERT_TRUE(want && got);
  EXPECT_LE(max_difference((*want)[0], (*got)[0]), 1.0 / 8);

  const auto f32 = from_qdq(users_residual(false), context, fixed_point_target());
  ASSERT_TRUE(f32) << to_string(f32.error());
  counts = count_ops(f32->graph);
  EXPECT_EQ(counts["RequantizeFixed"], 2);
  EXPECT_EQ(counts["Conv"], 1);
  EXPECT_EQ(counts["Add"], 1);
  ASSERT_TRUE(f32->f32_reasons.contains("Conv_2"));
  EXPECT_THAT(f32->f32_reasons.at("Conv_2"), HasSubstr("'Add' adds to the sum"));
  EXPECT_EQ(f32->f32_reasons.at("Add"), f32->f32_reasons.at("Conv_2"));
}

TEST(FixedPointGraph, LayersAloneReadWhatTheyAreGiven) {
  const QuantizedGraph q = fixed(mixed_net());
  const auto whole = to_qdq(q);
  ASSERT_TRUE(whole) << to_string(whole.error());
  std::vector<Array> inputs = normal_inputs(q.graph, 41);
  const auto made = run_all(*whole, inputs);
  std::set<std::string> given;
  std::map<std::string, Array> by_name;
  for (size_t v = 0; v < made.size(); ++v) {
    by_name[whole->values[v].name] = made[v];
    if (!whole->values[v].constant && whole->values[v].type.dtype == DType::I8)
      given.insert(whole->values[v].name);
  }
  ASSERT_EQ(given.size(), 7u);
  const Graph alone = layers_alone(*whole, given);
  const Status sound = verify(alone);
  EXPECT_TRUE(sound) << to_string(sound.error());
  ASSERT_EQ(alone.inputs.size(), 1 + given.size());
  // One value is wrong: its own layer says so, and only those that read it differ.
  const Node* reader = nullptr;
  for (const Node& node : whole->nodes)
    if (node.op == "DequantizeLinear" && given.contains(value_of(*whole, node.inputs[0]).name))
      reader = &node;
  ASSERT_NE(reader, nullptr);
  const std::string wrong = value_of(*whole, reader->inputs[0]).name;
  for (size_t i = 1; i < alone.inputs.size(); ++i) {
    const std::string& name = value_of(alone, alone.inputs[i]).name;
    inputs.push_back(by_name.at(name.substr(0, name.size() - std::string(kGiven).size())).clone());
    if (name == wrong + kGiven) inputs.back().set_int(0, inputs.back().get_int(0) > 0 ? -128 : 127);
  }
  const auto got = run_all(alone, inputs);
  for (size_t v = 0; v < whole->values.size(); ++v)
    if (given.contains(whole->values[v].name)) {
      EXPECT_TRUE(identical(made[v], got[v])) << whole->values[v].name;
    }
  const auto seen = static_cast<size_t>(reader->outputs[0]);
  EXPECT_NE(max_difference(made[seen], got[seen]), 0);
}

TEST(FixedPointGraph, OtherScalesAreRefusedByName) {
  QuantizeOptions options;
  options.wide_outputs = false;
  auto q = quantized(straight_net(), options);
  for (auto& scales : q.scales)
    if (!scales.empty() && scales[0] < 1) scales[0] *= 0.75;
  const auto qdq = to_qdq(q);
  ASSERT_TRUE(qdq) << to_string(qdq.error());
  PassContext context;
  const auto back = from_qdq(*qdq, context, fixed_point_target());
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(to_string(back.error()), HasSubstr("has the scale 0."));
  EXPECT_THAT(to_string(back.error()), HasSubstr("powers of two, one per tensor"));
  EXPECT_GE(back.error().others.size(), 3u);
}

}  // namespace
}  // namespace tilewright::graph
