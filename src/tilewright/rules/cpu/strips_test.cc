// Convolutions in a row and attention, scheduled as one kernel, compute what their tensor form
// does.
#include "tilewright/rules/cpu/strips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/rules/cpu/testing/chains.h"

namespace tilewright::rules {
namespace {

using graph::Builder;
using graph::ValueId;

constexpr int64_t kStripRuleBlock = 4;  // channels: the lanes of the target below

struct Chain {
  int64_t batch = 1, channels = 2, middle = 3, filters = 2;  ///< in blocks
  int64_t height = 13, width = 7, kernel = 3, stride = 1;
  bool expand = true, project = true, residual = false;
};

/// Nodes of one group: [expand, clip], depthwise, clip, [project, [add]].
graph::Graph graph_of(const Chain& c) {
  Rng rng(3);
  Builder b("chain");
  const ValueId x =
      b.input("x", DType::F32, {c.batch, c.channels, c.height, c.width, kStripRuleBlock});
  const auto weight = [&](Shape shape) { return b.constant("w", small_integers(rng, shape)); };
  const auto clip = [&](ValueId v) {
    return b.node("Clip", {v, b.constant("lo", scalar(0)), b.constant("hi", scalar(6))});
  };
  const auto ours = [&](const char* op, ValueId v, ValueId w, int64_t channels,
                        graph::AttrList attrs = {}) {
    return b.node(op, {v, w, weight({channels * kStripRuleBlock})}, std::move(attrs), "",
                  "tilewright");
  };
  int64_t channels = c.channels;
  ValueId v = x;
  if (c.expand) {
    v = clip(ours("ConvBlocked", v,
                  weight({c.middle, channels, 1, 1, kStripRuleBlock, kStripRuleBlock}), c.middle));
    channels = c.middle;
  }
  const int64_t pad = c.kernel / 2;
  v = clip(ours("DepthwiseConvBlocked", v, weight({channels, c.kernel, c.kernel, kStripRuleBlock}),
                channels,
                {{"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                 {"strides", std::vector<int64_t>{c.stride, c.stride}}}));
  if (c.project)
    v = ours("ConvBlocked", v,
             weight({c.filters, channels, 1, 1, kStripRuleBlock, kStripRuleBlock}), c.filters);
  if (c.residual) v = b.node("Add", {v, x});
  b.output(v, "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

class Chains : public testing::TestWithParam<Chain> {};

TEST_P(Chains, AreOneNestThatComputesWhatTheTensorFormDoes) {
  const Func func = scheduled_and_checked(joined(graph_of(GetParam())));
  EXPECT_EQ(nests(func), 1) << print(func);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Chains,
    testing::Values(Chain{.middle = 4, .project = false},
                    Chain{.middle = 4, .stride = 2, .project = false},
                    Chain{.batch = 2, .height = 11, .width = 19, .project = false},
                    Chain{.middle = 4, .height = 9, .kernel = 5, .project = false},
                    Chain{.height = 12, .expand = false}, Chain{.expand = false},
                    Chain{.height = 23, .stride = 2, .expand = false},
                    Chain{.batch = 2, .height = 12, .expand = false, .residual = true},
                    Chain{.residual = true}, Chain{.height = 14, .stride = 2}, Chain{.height = 28},
                    Chain{.batch = 2, .height = 12, .residual = true},
                    Chain{.middle = 6, .height = 16, .kernel = 5}));

TEST(Strips, WhatOneHandsToTheNextIsMadeWhereItIsRead) {
  const Func expands = scheduled_and_checked(joined(graph_of({.project = false})));
  EXPECT_TRUE(is_inside(expands, "conv", "conv_1")) << print(expands);
  const Func projects = scheduled_and_checked(joined(graph_of({.height = 12, .expand = false})));
  EXPECT_TRUE(is_inside(projects, "conv", "conv_1")) << print(projects);
}

/// Iterations of the outermost loop of the nest.
int64_t outermost_extent(const Func& func) { return collect_blocks(func).front().extents.front(); }

TEST(Strips, AChainOfThreeSharesOutStripsOfRows) {
  const Func func = scheduled_and_checked(joined(graph_of({.height = 28})));
  EXPECT_TRUE(is_inside(func, "conv_1", "conv_2")) << print(func);
  EXPECT_TRUE(is_inside(func, "conv", "conv_1")) << print(func);
  const int64_t strips = outermost_extent(func);
  EXPECT_GE(strips, 2) << print(func);
  EXPECT_EQ(strips % 2, 0) << print(func);  // one thread would wait
}

TEST(Strips, RowsThatWouldMostlyBeExpandedTwiceStayApart) {
  hw::CpuTarget target = small_target();
  // Seven rows have no strips but single ones, of which each would expand three.
  EXPECT_FALSE(
      worth_strips(joined(graph_of({.channels = 16, .middle = 32, .height = 7})), target, 2));
  EXPECT_TRUE(
      worth_strips(joined(graph_of({.channels = 16, .middle = 32, .height = 28})), target, 2));
}

TEST(Strips, OtherProgramsHaveNoPlan) {
  const hw::CpuTarget target = small_target();
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 2, 6, 6, kStripRuleBlock});
  b.output(b.node("ConvBlocked", {x, b.constant("w", Array(DType::F32, {2, 2, 1, 1, 4, 4}))}, {},
                  "", "tilewright"),
           "y");
  const auto graph = b.finish();
  const auto made = graph::group_func(*graph, graph::fuse(*graph)[0]);
  EXPECT_FALSE(plan_strips(made->func, target, 2));
}

TEST(Strips, NoPlanWhereNothingFits) {
  hw::CpuTarget target = small_target();
  const Func func = joined(graph_of({.height = 12, .expand = false}));
  target.l2_bytes = 64;
  EXPECT_FALSE(worth_strips(func, target, 2));
}

graph::Graph attention(int64_t batch, int64_t heads, int64_t rows, int64_t keys, int64_t depth) {
  Builder b("attention");
  const ValueId q = b.input("q", DType::F32, {batch, heads, rows, depth});
  const ValueId k = b.input("k", DType::F32, {batch, heads, depth, keys});
  const ValueId v = b.input("v", DType::F32, {batch, heads, keys, depth});
  const ValueId mask = b.input("mask", DType::F32, {batch, 1, 1, keys});
  const ValueId scale = b.constant("scale", scalar(8));
  const ValueId scores = b.node("Add", {b.node("Div", {b.node("MatMul", {q, k}), scale}), mask});
  b.output(b.node("MatMul", {b.node("Softmax", {scores}), v}), "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

TEST(Attention, ScoresStayInsideTheStripOfQueries) {
  for (const auto& [rows, keys, depth] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{8, 9, 8}, {13, 11, 6}, {40, 3, 4}}) {
    const Func func = scheduled_and_checked(joined(attention(2, 3, rows, keys, depth)), 1e-5);
    EXPECT_TRUE(is_inside(func, "matmul", "y0")) << print(func);
    EXPECT_TRUE(is_inside(func, "softmax_exp", "y0")) << print(func);
  }
}

/// With many registers the fastest tile has six rows, which no strip of 32 queries is made of.
TEST(Attention, TilesDivideTheStripOfQueries) {
  const std::vector<hw::CpuTarget> targets = hw::all_targets();
  ASSERT_GE(targets.size(), 4u);
  for (const hw::CpuTarget& target : targets) {
    SCOPED_TRACE(target.name);
    const Func func = scheduled_and_checked(joined(attention(1, 2, 64, 16, 64)), 1e-5, target);
    EXPECT_TRUE(is_inside(func, "matmul", "y0")) << print(func);
    EXPECT_TRUE(is_inside(func, "softmax_exp", "y0")) << print(func);
  }
}

// 41 = 20 + 20 + 1, 37 = 32 + 5, 197 = 6 x 32 + 5: primes, so the last strip has fewer rows.
TEST(Attention, TheLastStripMayBeShorter) {
  for (const int64_t queries : {37, 41, 197}) {
    SCOPED_TRACE(queries);
    const Func func = scheduled_and_checked(joined(attention(1, 2, queries, 16, 24)), 1e-5);
    EXPECT_EQ(nests(func), 1) << print(func);
  }
}

// One head feeds no two threads, so the last strip cannot stand alone: 94 = 47 x 2.
TEST(Attention, OneHeadIsSharedByStrips) {
  const Func func = scheduled_and_checked(joined(attention(1, 1, 94, 64, 64)), 1e-5);
  EXPECT_EQ(nests(func), 1) << print(func);
}

TEST(Attention, OneQueryHasNoScoresWorthKeeping) {
  const Func func = joined(attention(2, 3, 1, 7, 5));
  EXPECT_FALSE(worth_strips(func, small_target(), 2));
  scheduled_and_checked(func, 1e-5);
}

}  // namespace
}  // namespace tilewright::rules
