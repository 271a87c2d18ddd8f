// Quantised models computed in integers give what the f32 operators between the conversions give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

struct Options {
  DType activations = DType::U8, weights = DType::I8;
  double zero = 113;
  bool per_channel = false, bias = true;
  std::string op = "Conv";
  int64_t groups = 1;  ///< of a convolution; several: 16 channels, as many filters
  Ints window = {3, 3};
};

/// A graph built node by node; scales are powers of two, so that f32 sums are exact.
class Model {
 public:
  explicit Model(const Options& o) : options_(o), rng_(11) {
    const bool conv = o.op == "Conv";
    const Shape shape = conv ? Shape{1, o.groups > 1 ? 16 : 6, 5, 7} : Shape{3, 8};
    const ValueId x = graph_.add_value("x", {DType::F32, shape});
    graph_.inputs = {x};
    const ValueId q = add("QuantizeLinear", {x, scale(0.125), zero(o.activations, o.zero)},
                          {o.activations, shape});
    const ValueId d = add("DequantizeLinear", {q, scale(0.125), zero(o.activations, o.zero)},
                          {DType::F32, shape});
    ValueId y = product(d, conv);
    const tensor::TensorType type = graph_.values[static_cast<size_t>(y)].type;
    y = add("Relu", {y}, type);
    // The quantised input is read a second time, as by a residual.
    const ValueId again =
        add("ReduceSum", {d}, {DType::F32, conv ? Shape{1, 1, 1, 1} : Shape{1, 1}});
    y = add("Add", {y, again}, type);
    graph_.outputs = {y};
  }
  Graph take() { return std::move(graph_); }

 private:
  ValueId product(ValueId d, bool conv) {
    const int64_t groups = options_.groups;
    const int64_t filters = groups > 1 ? 16 : conv ? 5 : 6;
    const Ints& window = options_.window;
    const Shape shape =
        conv ? Shape{filters, groups > 1 ? 16 / groups : 6, window[0], window[1]} : Shape{8, 6};
    Array w(options_.weights, shape);
    const bool shifted = options_.weights == DType::U8;
    for (int64_t i = 0; i < w.size(); ++i)
      w.set_int(i, rng_.between(-90, 90) + (shifted ? 128 : 0));
    Array scales(DType::F32, options_.per_channel ? Shape{filters} : Shape{});
    for (int64_t i = 0; i < scales.size(); ++i) scales.set(i, i % 2 ? 0.25 : 0.5);
    Array zeros(options_.weights, scales.shape());
    for (int64_t i = 0; i < zeros.size(); ++i) zeros.set_int(i, shifted ? 128 : 0);
    const ValueId weight = add("DequantizeLinear", {known(w), known(scales), known(zeros)},
                               {DType::F32, shape}, {{"axis", int64_t{conv ? 0 : 1}}});
    std::vector<ValueId> inputs = {d, weight};
    if (options_.bias && options_.op != "MatMul")
      inputs.push_back(known(random_array(rng_, DType::F32, {filters})));
    std::map<std::string, tensor::AttrValue> attrs;
    if (conv)
      attrs = {{"pads", Ints{window[0] / 2, window[1] / 2, window[0] / 2, window[1] / 2}},
               {"group", groups}};
    return add(options_.op, inputs, {DType::F32, conv ? Shape{1, filters, 5, 7} : Shape{3, 6}},
               attrs);
  }

  ValueId known(Array array) {
    const tensor::TensorType type{array.dtype(), array.shape()};
    return graph_.add_value("c" + std::to_string(graph_.values.size()), type, std::move(array));
  }
  ValueId scale(double number) { return known(Array::scalar(DType::F32, number)); }
  ValueId zero(DType dtype, double number) { return known(Array::scalar(dtype, number)); }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, tensor::TensorType type,
              std::map<std::string, tensor::AttrValue> attrs = {}) {
    Node node;
    node.name = op + std::to_string(graph_.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs.values = std::move(attrs);
    node.outputs = {graph_.add_value("v" + std::to_string(graph_.values.size()), std::move(type))};
    graph_.nodes.push_back(node);
    return node.outputs[0];
  }

  Options options_;
  Rng rng_;
  Graph graph_;
};

/// `x` of the dot products that exist.
PassContext context_of(std::vector<DType> x) {
  PassContext context;
  context.dot_depth = [x](DType a, DType b) -> int64_t {
    return b == DType::I8 && std::find(x.begin(), x.end(), a) != x.end() ? 4 : 0;
  };
  return context;
}

void expect_same(const Options& options, const std::vector<DType>& dots, const std::string& passes,
                 const char* blocked_op = nullptr) {
  const Graph graph = Model(options).take();
  Status sound = verify(graph);
  ASSERT_TRUE(sound) << to_string(sound.error()) << print(graph);
  PassContext context = context_of(dots);
  context.vector_bytes = 16;
  context.verify_each = true;
  const auto result = run_passes(graph, passes, context);
  ASSERT_TRUE(result) << to_string(result.error());
  const Graph& made = result->graph;
  const bool conv = options.op == "Conv";
  EXPECT_EQ(count(made, options.op), 0) << print(made);
  const bool blocked = passes.find("block_layout") != std::string::npos;
  const char* op = blocked_op != nullptr ? blocked_op
                   : blocked             ? (conv ? "ConvDotBlocked" : "GemmDotPacked")
                                         : (conv ? "ConvInteger" : "MatMulInteger");
  EXPECT_EQ(count(made, op), 1) << print(made);
  const std::vector<Array> inputs = random_inputs(graph, 5);
  const auto want = run_graph(graph, inputs), got = run_graph(made, inputs);
  ASSERT_TRUE(want && got) << to_string(got ? want.error() : got.error());
  EXPECT_EQ(max_difference((*want)[0], (*got)[0]), 0) << print(made);
}

TEST(IntegerProducts, GiveTheSameNumbers) {
  for (const char* op : {"Conv", "Gemm", "MatMul"})
    for (const bool per_channel : {false, true})
      for (const DType weights : {DType::I8, DType::U8})
        for (const auto& [activations, zero] :
             {std::pair{DType::U8, 113.0}, std::pair{DType::I8, -7.0}, std::pair{DType::U8, 0.0}})
          for (const DType dots : {DType::U8, DType::I8})
            expect_same({activations, weights, zero, per_channel, per_channel, op}, {dots},
                        "integer_products");
}

TEST(IntegerProducts, ArePackedInGroups) {
  for (const char* op : {"Conv", "Gemm", "MatMul"})
    expect_same({DType::U8, DType::I8, 113, true, true, op}, {DType::U8},
                "integer_products,block_layout,eliminate_dead");
}

TEST(IntegerProducts, OfGroupsArePackedInWholeBlocks) {
  const std::string passes = "integer_products,block_layout,eliminate_dead";
  for (const DType dots : {DType::U8, DType::I8}) {
    Options o{DType::U8, DType::I8, 113, true, true};
    o.groups = 16;
    for (const Ints& window : {Ints{3, 3}, Ints{1, 5}, Ints{3, 1}}) {
      o.window = window;
      expect_same(o, {dots}, passes,
                  window[1] > 1 ? "DepthwiseDotBlocked" : "DepthwiseConvBlocked");
    }
    o.window = {3, 3};
    for (const int64_t groups : {2, 4, 8}) {  // of 8, 4 and 2 channels, blocks hold 4
      o.groups = groups;
      expect_same(o, {dots}, passes, "ConvDotBlocked");
    }
  }
}

TEST(IntegerProducts, KeepWeightsWhereZeroPointsGoApart) {
  for (const char* op : {"Conv", "MatMul"})
    for (const DType weights : {DType::I8, DType::U8})
      for (const DType activations : {DType::U8, DType::I8}) {
        Options o{activations, weights, 11, false, false, op};
        o.groups = o.op == "Conv" ? 8 : 1;
        const Graph graph = Model(o).take();
        PassContext context;
        context.zero_points_apart = context.verify_each = true;
        context.dot_depth = [](DType, DType) -> int64_t { return 1; };
        const auto result = run_passes(graph, "integer_products,zero_points", context);
        ASSERT_TRUE(result) << to_string(result.error());
        const Graph& made = result->graph;
        EXPECT_EQ(count(made, o.op), 0) << print(made);
        EXPECT_EQ(count(made, o.op == "Conv" ? "ConvBytes" : "MatMulInteger"), 1) << print(made);
        const std::vector<Array> inputs = random_inputs(graph, 5);
        const auto want = run_graph(graph, inputs), got = run_graph(made, inputs);
        ASSERT_TRUE(want && got) << to_string(got ? want.error() : got.error());
        EXPECT_EQ(max_difference((*want)[0], (*got)[0]), 0) << print(made);
      }
}

/// A graph of one node on an input and constants.
Graph single(const std::string& op, tensor::TensorType x, const std::vector<Array>& known,
             const std::vector<tensor::TensorType>& given, tensor::TensorType out,
             std::map<std::string, tensor::AttrValue> attrs = {}) {
  Graph graph;
  Node node;
  node.name = "node";
  node.op = op;
  node.attrs.values = std::move(attrs);
  node.inputs = {graph.add_value("x", std::move(x))};
  graph.inputs = node.inputs;
  for (const tensor::TensorType& type : given) {
    graph.inputs.push_back(graph.add_value("given", type));
    node.inputs.push_back(graph.inputs.back());
  }
  for (size_t i = 0; i < known.size(); ++i)
    node.inputs.push_back(known[i].empty_handle()
                              ? -1
                              : graph.add_value("c" + std::to_string(i),
                                                {known[i].dtype(), known[i].shape()}, known[i]));
  if (!given.empty()) std::swap(node.inputs[1], node.inputs[2]);  // the weights come before
  node.outputs = {graph.add_value("y", std::move(out))};
  graph.outputs = node.outputs;
  graph.nodes = {node};
  return graph;
}

void expect_form(const Graph& graph, DType dots, const std::string& op, double tolerance = 0) {
  const Status sound = verify(graph);
  ASSERT_TRUE(sound) << to_string(sound.error()) << print(graph);
  PassContext context = context_of({dots});
  context.vector_bytes = 16;
  context.verify_each = true;
  const auto result = run_passes(graph, "integer_products,block_layout,eliminate_dead", context);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(count(result->graph, op), 1) << print(result->graph);
  const std::vector<Array> inputs = random_inputs(graph, 5);
  const auto want = run_graph(graph, inputs), got = run_graph(result->graph, inputs);
  ASSERT_TRUE(want && got);
  EXPECT_LE(max_difference((*want)[0], (*got)[0]), tolerance) << print(result->graph);
}

Array bytes(DType dtype, const Shape& shape, int64_t centre) {
  Rng rng(3);
  Array out(dtype, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, rng.between(-90, 90) + centre);
  return out;
}

TEST(IntegerProducts, IntegerOperatorsTakeTheTargetsTypes) {
  for (const DType x : {DType::U8, DType::I8})
    for (const DType w : {DType::U8, DType::I8})
      for (const DType dots : {DType::U8, DType::I8}) {
        const int64_t centre = w == DType::U8 ? 128 : 0;
        const Array weight = bytes(w, {8, 6}, centre), w_zero = Array::scalar(w, centre);
        expect_form(single("MatMulInteger", {x, {3, 8}}, {weight, Array::scalar(x, 5), w_zero}, {},
                           {DType::I32, {3, 6}}),
                    dots, "GemmDotPacked");
        // A zero point that only the run tells.
        expect_form(
            single("MatMulInteger", {x, {3, 8}}, {weight, w_zero}, {{x, {}}}, {DType::I32, {3, 6}}),
            dots, "GemmDotPacked");
        expect_form(single("ConvInteger", {x, {1, 8, 5, 5}},
                           {bytes(w, {6, 8, 3, 3}, centre), Array::scalar(x, 5), w_zero}, {},
                           {DType::I32, {1, 6, 5, 5}}, {{"pads", Ints{1, 1, 1, 1}}}),
                    dots, "ConvDotBlocked");
        expect_form(
            single("ConvInteger", {x, {1, 6, 5, 5}},
                   {bytes(w, {6, 1, 3, 3}, centre), Array::scalar(x, 5), w_zero}, {},
                   {DType::I32, {1, 6, 5, 5}}, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{6}}}),
            dots, "DepthwiseDotBlocked");
      }
}

TEST(IntegerProducts, RowsAreMultipliedByMatrixInstructions) {
  for (const int64_t rows : {1, 3})
    for (const int64_t terms : {8, 12}) {
      const Graph graph = single("MatMulInteger", {DType::U8, {rows, terms}},
                                 {bytes(DType::I8, {terms, 6}, 0), Array::scalar(DType::U8, 5)}, {},
                                 {DType::I32, {rows, 6}});
      PassContext context = context_of({DType::U8});
      context.tile_depth = [](DType, DType) -> int64_t { return 8; };
      context.vector_bytes = 16;
      const auto result = run_passes(graph, "block_layout", context);
      ASSERT_TRUE(result) << to_string(result.error());
      for (const Node& node : result->graph.nodes) {
        if (node.op != "PackGemmDotWeight") continue;
        EXPECT_EQ(node.attrs.get_int("depth", 0), rows > 1 && terms == 8 ? 8 : 4);
      }
      EXPECT_EQ(count(result->graph, "PackGemmDotWeight"), 1);
      const std::vector<Array> inputs = random_inputs(graph, 5);
      const auto want = run_graph(graph, inputs), got = run_graph(result->graph, inputs);
      ASSERT_TRUE(want && got) << to_string(got ? want.error() : got.error());
      EXPECT_EQ(max_difference((*want)[0], (*got)[0]), 0);
    }
}

TEST(IntegerProducts, LinearOperatorsAreProductsBetweenConversions) {
  const auto real = [](double number) { return Array::scalar(DType::F32, number); };
  const Array zero = Array::scalar(DType::U8, 100);
  expect_form(single("QLinearMatMul", {DType::U8, {3, 8}},
                     {real(0.5), zero, bytes(DType::I8, {8, 6}, 0), real(0.25),
                      Array::scalar(DType::I8, 0), real(8), zero},
                     {}, {DType::U8, {3, 6}}),
              DType::U8, "GemmDotPacked");
  Array scales = Array::of(DType::F32, std::vector<double>{0.25, 0.5, 1, 0.25, 0.5, 2});
  Array bias(DType::I32, {6});
  for (int64_t k = 0; k < 6; ++k) bias.set_int(k, 100 * k - 250);
  expect_form(single("QLinearConv", {DType::U8, {1, 8, 5, 5}},
                     {real(0.5), zero, bytes(DType::I8, {6, 8, 3, 3}, 0), scales,
                      Array(DType::I8, {6}), real(16), zero, bias},
                     {}, {DType::U8, {1, 6, 5, 5}}, {{"pads", Ints{1, 1, 1, 1}}}),
              DType::U8, "ConvDotBlocked");
  expect_form(
      single("QLinearConv", {DType::U8, {1, 6, 5, 5}},
             {real(0.5), zero, bytes(DType::I8, {6, 1, 3, 3}, 0), scales, Array(DType::I8, {6}),
              real(16), zero, bias},
             {}, {DType::U8, {1, 6, 5, 5}}, {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{6}}}),
      DType::U8, "DepthwiseDotBlocked");
}

TEST(IntegerProducts, WhatHasNoSuchFormStays) {
  const Options good;
  Options shifted = good;
  shifted.weights = DType::U8;
  for (const auto& [options, context] :
       {std::pair{good, PassContext{}}, std::pair{good, context_of({})}}) {
    PassContext mine = context;
    const auto made = integer_products(Model(options).take(), mine);
    ASSERT_TRUE(made);
    EXPECT_EQ(count(*made, "Conv"), 1);
    EXPECT_EQ(count(*made, "ConvInteger"), 0);
  }
  // Groups that fill no blocks of 16 even where four of them are joined.
  Options few = good;
  few.groups = 8;
  PassContext wide = context_of({DType::U8});
  wide.vector_bytes = 64;
  const auto grouped = integer_products(Model(few).take(), wide);
  ASSERT_TRUE(grouped);
  EXPECT_EQ(count(*grouped, "Conv"), 1);
  // A zero point of the weights in the middle of nowhere would need sums of the activations.
  Graph odd = Model(good).take();
  for (Value& value : odd.values)
    if (value.constant && value.constant->dtype() == DType::I8 && value.constant->size() == 1)
      value.constant->set_int(0, 3);
  PassContext context = context_of({DType::U8});
  const auto made = integer_products(odd, context);
  ASSERT_TRUE(made);
  EXPECT_EQ(count(*made, "Conv"), 1);
}

}  // namespace
}  // namespace tilewright::graph
