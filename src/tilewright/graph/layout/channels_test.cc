// Blocked channels whatever their number, one above all: heads that make a mask, a depth or a
// score. Every broadcast form of an operand behind a convolution keeps the meaning of the graph.
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kBlock = 4;  // channels: the lanes of a vector
constexpr int64_t kBatch = 2, kRows = 3, kColumns = 5;

struct Net {
  Builder b{"net"};
  Rng rng{23};
  ValueId x = b.input("x", DType::F32, {kBatch, 8, kRows, kColumns});

  ValueId weight(const Shape& shape) {
    return b.constant("w", random_array(rng, DType::F32, shape, 2));
  }
  /// A convolution with bias, as one of blocks.
  ValueId conv(ValueId from, int64_t channels, int64_t groups = 1) {
    const int64_t own = b.type(from).shape[1] / groups;
    return b.node("Conv", {from, weight({channels, own, 1, 1}), weight({channels})},
                  {{"group", groups}});
  }
  Graph finish(ValueId last) {
    b.output(last, "y");
    auto graph = b.finish();
    EXPECT_TRUE(graph) << (graph ? "" : to_string(graph.error()));
    return graph ? *std::move(graph) : Graph{};
  }
};

PassContext context_of() {
  PassContext context;
  context.evaluate = interp_evaluate;
  context.vector_bytes = 4 * kBlock;
  context.verify_each = true;
  return context;
}

/// The graph means the same behind `passes`. NaN where the graph as written has NaN or infinity.
void expect_same(const Graph& graph, const std::string& passes, const std::string& what) {
  PassContext context = context_of();
  const auto made = run_passes(graph, passes, context);
  ASSERT_TRUE(made) << what << ": " << to_string(made.error());
  const std::vector<Array> inputs = random_inputs(graph, 11);
  const auto want = run_graph(graph, inputs), got = run_graph(made->graph, inputs);
  ASSERT_TRUE(want) << what << ": " << to_string(want.error());
  ASSERT_TRUE(got) << what << ": " << to_string(got.error()) << print(made->graph);
  for (size_t o = 0; o < want->size(); ++o) {
    const Array &expected = want->at(o), &actual = got->at(o);
    ASSERT_EQ(actual.shape(), expected.shape()) << what;
    for (int64_t i = 0; i < expected.size(); ++i) {
      if (!std::isfinite(expected.get(i))) continue;
      ASSERT_NEAR(actual.get(i), expected.get(i), 1e-3 * (1 + std::abs(expected.get(i))))
          << what << print(made->graph);
    }
  }
}

/// Shapes that broadcast against [kBatch, c, kRows, kColumns].
std::vector<Shape> broadcast_forms(int64_t c) {
  return {{},
          {1},
          {1, 1},
          {1, 1, 1},
          {1, 1, 1, 1},
          {kColumns},
          {kRows, 1},
          {kRows, kColumns},
          {c, 1, 1},
          {1, kRows, kColumns},
          {c, kRows, kColumns},
          {1, c, 1, 1},
          {1, 1, kRows, kColumns},
          {1, 1, 1, kColumns},
          {kBatch, 1, 1, 1},
          {kBatch, c, 1, 1},
          {1, c, kRows, kColumns},
          {kBatch, 1, kRows, kColumns},
          {kBatch, c, kRows, kColumns}};
}

enum class From { Constant, Input, Convolution };

ValueId operand(Net& net, const Shape& shape, From from) {
  if (from == From::Constant) return net.b.constant("c", random_array(net.rng, DType::F32, shape));
  const ValueId given = net.b.input("other", DType::F32, shape);
  return from == From::Input ? given : net.conv(given, shape[1]);
}

/// Convolution of c channels, `op` with the operand on either side, a reader of the result.
void check_binary(const std::string& op, int64_t c, const Shape& shape, From from, bool first,
                  bool read) {
  Net net;
  const ValueId made = net.conv(net.x, c), other = operand(net, shape, from);
  const ValueId mid = net.b.node(op, first ? std::vector{other, made} : std::vector{made, other});
  const Graph graph = net.finish(read ? net.conv(mid, 8) : mid);
  expect_same(graph, "block_layout",
              op + " of " + std::to_string(c) + " channels and " + to_string(shape) +
                  (from == From::Constant ? " known" : " unknown"));
}

class Channels : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Count, Channels, testing::Values(1, 3, 4, 6, 8));

TEST_P(Channels, MeetOperandsOfEveryForm) {
  const int64_t c = GetParam();
  for (const Shape& shape : broadcast_forms(c))
    for (const From from : {From::Constant, From::Input, From::Convolution}) {
      if (from == From::Convolution && shape.size() != 4) continue;
      // Either side, and with and without a reader, in turn.
      const bool first = (shape.size() + (from == From::Input)) % 2 != 0;
      check_binary("Add", c, shape, from, first, true);
      check_binary("Mul", c, shape, from, !first, false);
      if (from == From::Constant) check_binary("Div", c, shape, from, false, !first);
    }
}

TEST_P(Channels, OfOnePixelMeetOneNumber) {
  const int64_t c = GetParam();
  for (const From from : {From::Constant, From::Input, From::Convolution})
    for (const bool both : {false, true}) {
      Net net;
      const ValueId pooled = net.b.node("GlobalAveragePool", {net.conv(net.x, c)});
      const ValueId other = operand(net, {kBatch, 1, 1, 1}, from);
      const ValueId mid = net.b.node("Mul", {pooled, other});
      expect_same(net.finish(both ? net.conv(mid, 8) : mid), "block_layout",
                  std::to_string(c) + " channels of one pixel");
    }
  Net net;
  const ValueId one = net.b.input("one", DType::F32, {1, 8, 1, 1});
  expect_same(net.finish(net.b.node("Sigmoid", {net.conv(one, c)})), "block_layout",
              "one image of one pixel");
}

TEST_P(Channels, KeepTheirMeaningUnderActivations) {
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Softplus", "Elu", "Gelu",
                         "HardSigmoid", "HardSwish", "LeakyRelu", "Reciprocal", "Sqrt", "Cos"})
    for (const bool read : {false, true}) {
      Net net;
      ValueId mid = net.b.node(op, {net.conv(net.x, GetParam())});
      mid = net.b.node("Clip", {mid, net.b.constant("lo", Array::scalar(DType::F32, -3)),
                                net.b.constant("hi", Array::scalar(DType::F32, 5))});
      expect_same(net.finish(read ? net.conv(mid, 8) : mid), "block_layout", op);
    }
}

TEST_P(Channels, OfEveryGroupCount) {
  const int64_t c = GetParam();
  for (const int64_t groups : {1, 2, 4, 8}) {
    if (c % groups != 0) continue;
    for (const bool masked : {false, true}) {
      Net net;
      ValueId mid = net.b.node("Sigmoid", {net.conv(net.x, c, groups)});
      if (masked) mid = net.b.node("Mul", {mid, net.conv(net.x, 1)});
      expect_same(net.finish(net.conv(mid, 8)), default_passes(),
                  std::to_string(groups) + " groups");
    }
  }
}

TEST_P(Channels, ThatFillABlockUpAreNobodysNeighbours) {
  for (const char* op : {"Sigmoid", "Relu", "Exp"}) {
    Net net;
    const ValueId mid = net.b.node(op, {net.conv(net.x, GetParam())});
    expect_same(net.finish(net.b.node("LRN", {mid}, {{"size", int64_t{5}}, {"alpha", 2.0}})),
                "block_layout", std::string("LRN behind ") + op);
  }
}

TEST_P(Channels, MeetInfinityAsWritten) {
  for (const char* op : {"Max", "Min"}) {
    Net net;
    const double far = std::string(op) == "Max" ? -INFINITY : INFINITY;
    const ValueId other = net.b.constant("far", Array::scalar(DType::F32, far));
    const ValueId mid = net.b.node(op, {net.conv(net.x, GetParam()), other});
    expect_same(net.finish(net.conv(mid, 8)), "block_layout", op);
  }
}

// A small U-Net: down, up with a skip, and a head of one channel.
/// Three filters would leave most of a block of 16 empty; four are worth one.
TEST(Heads, OfFewFiltersStayPlain) {
  const auto blocked = [](int64_t filters) {
    Net net;
    net.b = Builder("net");
    const ValueId x = net.b.input("x", DType::F32, {1, 16, kRows, kColumns});
    const ValueId deep = net.b.node("Relu", {net.conv(x, 16)});
    PassContext context = context_of();
    context.vector_bytes = 64;
    const Graph graph = net.finish(net.conv(deep, filters));
    const auto made = run_passes(graph, "block_layout", context);
    EXPECT_TRUE(made) << (made ? "" : to_string(made.error()));
    int64_t count = 0;
    for (const Node& node : made->graph.nodes) count += node.op == "ConvBlocked" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(blocked(3), 1);
  EXPECT_EQ(blocked(4), 2);
}

TEST(Heads, OfAnUNet) {
  for (const char* op : {"Sigmoid", "Relu", "Tanh"}) {
    Net net;
    const auto conv3 = [&](ValueId from, int64_t channels) {
      const int64_t own = net.b.type(from).shape[1];
      const ValueId made = net.b.node("Conv", {from, net.weight({channels, own, 3, 3})},
                                      {{"pads", Ints{1, 1, 1, 1}}});
      return net.b.node("Relu", {made});
    };
    const ValueId image = net.b.input("image", DType::F32, {1, 3, 8, 8});
    const ValueId high = conv3(image, 8);
    const ValueId low = conv3(
        net.b.node("MaxPool", {high}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}), 16);
    const ValueId up =
        net.b.node("ConvTranspose", {low, net.weight({16, 8, 2, 2})}, {{"strides", Ints{2, 2}}});
    const ValueId joined = conv3(net.b.node("Concat", {up, high}, {{"axis", int64_t{1}}}), 8);
    const ValueId mask = net.b.node(op, {net.conv(joined, 1)});
    net.b.output(mask, "mask");
    // The mask at work on what it was made of, and on the image.
    net.b.output(net.b.node("Mul", {joined, mask}), "masked");
    expect_same(net.finish(net.b.node("Mul", {image, mask})), default_passes(), op);
  }
}

}  // namespace
}  // namespace tilewright::graph
