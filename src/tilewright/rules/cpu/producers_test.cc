// What is computed element by element for a convolution, or for sums of neighbouring channels, is
// made in strips of the kernel that reads it, and is what the tensor form makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/rules/cpu/strips.h"
#include "tilewright/rules/cpu/testing/chains.h"

namespace tilewright::rules {
namespace {

using graph::Builder;
using graph::ValueId;

constexpr int64_t kProducersBlock = 4;  // channels: the lanes of the target

struct ProducersLayer {
  int64_t batch = 1, channels = 3, filters = 2;  ///< in blocks
  int64_t height = 12, width = 9, kernel = 1, stride = 1, pad = 0;
  bool residual = false;
  int64_t winograd = 0;  ///< outputs of a tile; 0: the direct form
};

/// Mul, Add, Relu, convolution [, Add].
graph::Graph graph_of_producers(const ProducersLayer& c) {
  Rng rng(3);
  Builder b("layer");
  const ValueId x =
      b.input("x", DType::F32, {c.batch, c.channels, c.height, c.width, kProducersBlock});
  const auto each = [&](const char* name) {
    return b.constant(name, small_integers(rng, {1, c.channels, 1, 1, kProducersBlock}));
  };
  ValueId v = b.node("Add", {each("shift"), b.node("Mul", {x, each("scale")})});
  v = b.node("Relu", {v});
  Shape weight = {c.filters, c.channels, c.kernel, c.kernel, kProducersBlock, kProducersBlock};
  graph::AttrList attrs = {{"pads", std::vector<int64_t>(4, c.pad)},
                           {"strides", std::vector<int64_t>{c.stride, c.stride}}};
  if (c.winograd > 0) {
    const int64_t points = c.winograd + c.kernel - 1;
    weight = {c.filters, points, points, c.channels * kProducersBlock, kProducersBlock};
    attrs = {attrs[0], {"m", c.winograd}, {"filter_sets", int64_t{1}}};
  }
  v = b.node(c.winograd > 0 ? "WinogradConvBlocked" : "ConvBlocked",
             {v, b.constant("w", small_integers(rng, weight)),
              b.constant("bias", small_integers(rng, {c.filters * kProducersBlock}))},
             attrs, "", "tilewright");
  if (c.residual) v = b.node("Add", {v, x});
  b.output(v, "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

class Producers : public testing::TestWithParam<ProducersLayer> {};

TEST_P(Producers, AreMadeInStripsThatTheConvolutionReads) {
  const Func func = joined(graph_of_producers(GetParam()));
  EXPECT_TRUE(worth_strips(func, small_target(), 2));
  const Func scheduled = scheduled_and_checked(func, GetParam().winograd > 0 ? 1e-3 : 0);
  EXPECT_EQ(nests(scheduled), 1) << print(scheduled);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Producers,
    testing::Values(ProducersLayer{}, ProducersLayer{.height = 14, .width = 14},
                    ProducersLayer{.batch = 2, .height = 7},
                    ProducersLayer{.height = 56, .width = 9, .stride = 2},
                    ProducersLayer{.filters = 3, .height = 8, .width = 8, .residual = true},
                    ProducersLayer{.height = 16, .kernel = 3, .pad = 1},
                    ProducersLayer{.height = 32, .width = 18, .kernel = 4, .stride = 2, .pad = 1},
                    ProducersLayer{.height = 18, .width = 7, .kernel = 3},
                    ProducersLayer{.channels = 2, .kernel = 3, .pad = 1, .winograd = 2}));

TEST(ProducersOf, RowsThatAreTooFewForTwoStayApart) {
  EXPECT_FALSE(worth_strips(joined(graph_of_producers({.height = 1})), small_target(), 2));
}

TEST(ProducersOf, WhatComesFromFarStaysApartWherePaddingDoesNotReadItAnyway) {
  hw::CpuTarget target = small_target();
  const Func plain = joined(graph_of_producers({})),
             padded = joined(graph_of_producers({.kernel = 3, .pad = 1}));
  EXPECT_TRUE(worth_strips(plain, target, 2));
  target.l2_bytes = 1 << 14;
  EXPECT_FALSE(worth_strips(plain, target, 2));
  EXPECT_TRUE(worth_strips(padded, target, 2));
}

TEST(ProducersOf, ATransformMakesOnlyWhatIsCheapAnew) {
  const auto worth = [](const char* op) {
    Rng rng(4);
    Builder b("layer");
    const ValueId x = b.input("x", DType::F32, {1, 2, 8, 8, kProducersBlock});
    const ValueId w =
        b.constant("w", small_integers(rng, {2, 4, 4, 2 * kProducersBlock, kProducersBlock}));
    b.output(b.node("WinogradConvBlocked", {b.node(op, {x}), w},
                    {{"pads", std::vector<int64_t>{1, 1, 1, 1}},
                     {"m", int64_t{2}},
                     {"filter_sets", int64_t{1}}},
                    "", "tilewright"),
             "y");
    return worth_strips(joined(*b.finish()), small_target(), 2);
  };
  EXPECT_TRUE(worth("Relu"));
  EXPECT_FALSE(worth("Tanh"));
}

TEST(ProducersOf, AConcatenationOfSlicesIsReadInPlace) {
  for (const bool winograd : {false, true}) {
    Rng rng(5);
    Builder b("layer");
    const ValueId skip = b.input("skip", DType::F32, {1, 2, 14, 13, kProducersBlock});
    const ValueId part =
        b.node("Slice", {skip, b.ints({1, 2}), b.ints({13, 12}), b.ints({2, 3}), b.ints({1, 1})});
    const ValueId x =
        b.node("Concat", {part, b.input("x", DType::F32, {1, 1, 12, 10, kProducersBlock})},
               {{"axis", int64_t{1}}});
    const Shape direct = {2, 3, 3, 3, kProducersBlock, kProducersBlock},
                points = {2, 4, 4, 3 * kProducersBlock, kProducersBlock};
    const ValueId w = b.constant("w", small_integers(rng, winograd ? points : direct));
    graph::AttrList attrs;
    if (winograd) attrs = {{"m", int64_t{2}}, {"filter_sets", int64_t{1}}};
    b.output(
        b.node(winograd ? "WinogradConvBlocked" : "ConvBlocked", {x, w}, attrs, "", "tilewright"),
        "y");
    const Func func = joined(*b.finish());
    EXPECT_TRUE(worth_strips(func, small_target(), 2));
    const Func scheduled = scheduled_and_checked(func, winograd ? 1e-3 : 0);
    EXPECT_EQ(nests(scheduled), 1) << print(scheduled);
  }
}

TEST(ChannelWindows, SquaresAreMadeForAStripOfRows) {
  for (const auto& [blocks, height, width, size] :
       std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>{
           {3, 12, 7, 5}, {2, 5, 9, 4}, {1, 8, 3, 11}, {4, 1, 1, 3}}) {
    Builder b("lrn");
    const ValueId x = b.input("x", DType::F32, {2, blocks, height, width, kProducersBlock});
    b.output(b.node("LRNBlocked", {x}, {{"size", size}, {"alpha", 0.5}, {"bias", 2.0}}, "",
                    "tilewright"),
             "y");
    const Func scheduled = scheduled_and_checked(joined(*b.finish()), 1e-5);
    EXPECT_TRUE(is_inside(scheduled, "lrn_squares", "lrn_sum")) << print(scheduled);
    EXPECT_EQ(nests(scheduled), 1) << print(scheduled);
  }
}

/// Rows of a strip of 12 rows of squares, where L2 keeps twice `cached` of them; 0: no strips.
int64_t strip_rows(int64_t images, int64_t cached, int threads) {
  Builder b("lrn");
  const ValueId x = b.input("x", DType::F32, {images, 3, 12, 7, kProducersBlock});
  b.output(b.node("LRNBlocked", {x}, {{"size", int64_t{5}}}, "", "tilewright"), "y");
  hw::CpuTarget target = small_target();
  target.l2_bytes =
      2 * cached * 7 * (3 + 2) * kProducersBlock * 4;  // with neighbours on both sides
  const schedule::Trace trace = default_trace(joined(*b.finish()), target, threads);
  const bool shared = std::any_of(trace.begin(), trace.end(), [](const schedule::Step& step) {
    const auto* parallel = std::get_if<schedule::Parallel>(&step);
    return parallel != nullptr && parallel->loop.starts_with("lrn_sum.");
  });
  EXPECT_EQ(shared, threads > 1) << schedule::print(trace);
  for (const schedule::Step& step : trace)
    if (const auto* split = std::get_if<schedule::Split>(&step)) return split->factor;
  return 0;
}

TEST(ChannelWindows, StripsFitTheCacheAndShareOutEvenly) {
  EXPECT_EQ(strip_rows(1, 12, 1), 12);
  EXPECT_EQ(strip_rows(1, 11, 1), 6);
  EXPECT_EQ(strip_rows(1, 12, 2), 6);
  EXPECT_EQ(strip_rows(2, 12, 2), 12);
  EXPECT_EQ(strip_rows(1, 5, 2), 3);  // of 4 rows one worker would have two strips, the other one
}

}  // namespace
}  // namespace tilewright::rules
