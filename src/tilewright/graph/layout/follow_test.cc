// Operators between convolutions: which keep blocked channels, and which need plain ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

constexpr int64_t kLayoutFollowBlock = 4;  // channels: the lanes of a vector

/// A network in the making: what a convolution of some channels made of the input.
class LayoutFollowNet {
 public:
  Builder b{"net"};

  ValueId conv(ValueId from, int64_t channels) {
    const Shape shape = {channels, b.type(from).shape[1], 1, 1};
    return b.node("Conv", {from, b.constant("w", random_array(rng_, DType::F32, shape, 1))});
  }
  ValueId made(int64_t channels) { return conv(in_, channels); }
  ValueId floats(const std::vector<double>& values) {
    return b.constant("floats", Array::of(DType::F32, values));
  }

 private:
  Rng rng_{17};
  ValueId in_ = b.input("x", DType::F32, {2, 8, 6, 5});
};

/// A node called `mid`, and whether it works on blocks.
struct FollowCase {
  const char* name;
  bool blocked;
  std::function<ValueId(LayoutFollowNet&)> mid;
};

std::vector<FollowCase> lrn_cases() {
  const auto lrn = [](double alpha, double bias) {
    return [=](LayoutFollowNet& n) {
      return n.b.node("LRN", {n.made(6)}, {{"size", int64_t{3}}, {"alpha", alpha}, {"bias", bias}},
                      "mid");
    };
  };
  return {{"lrn", true, lrn(0.1, 1)},
          {"lrn_without_bias", false, lrn(0.1, 0)},
          {"lrn_negative", false, lrn(-0.001, 2)}};
}

std::vector<FollowCase> mean_cases() {
  const auto mean = [](Ints axes, int64_t keep) {
    return [=](LayoutFollowNet& n) {
      return n.b.node("ReduceMean", {n.made(8), n.b.ints(axes)}, {{"keepdims", keep}}, "mid");
    };
  };
  return {{"mean", true, mean({2, 3}, 1)},
          {"mean_from_behind", true, mean({-1, -2}, 1)},
          {"mean_of_channels", false, mean({1, 2}, 1)},
          {"mean_of_rows", false, mean({2}, 1)},
          {"mean_without_axes", false, mean({2, 3}, 0)}};
}

std::vector<FollowCase> concat_cases() {
  const auto concat = [](std::vector<int64_t> channels, int64_t axis, int64_t plain = 0) {
    return [=](LayoutFollowNet& n) {
      std::vector<ValueId> parts;
      for (const int64_t c : channels) parts.push_back(n.made(c));
      if (plain > 0) parts.push_back(n.b.input("plain", DType::F32, {2, plain, 6, 5}));
      return n.b.node("Concat", parts, {{"axis", axis}}, "mid");
    };
  };
  return {{"concat", true, concat({8, 4}, 1)},
          {"concat_from_behind", true, concat({8, 4}, -3)},
          {"concat_ends_inside_a_block", true, concat({4, 6}, 1)},
          {"concat_begins_inside_a_block", false, concat({6, 4}, 1)},
          {"concat_of_rows", true, concat({6, 6}, 2)},
          {"concat_of_images", false, concat({8, 8}, 0)},
          {"concat_mostly_plain", false, concat({8}, 1, 8)},
          {"concat_mostly_blocked", true, concat({8}, 1, 4)}};
}

std::vector<FollowCase> split_cases() {
  const auto split = [](Ints sizes, int64_t axis) {
    return [=](LayoutFollowNet& n) {
      return n.b.nodes("Split", {n.made(8), n.b.ints(sizes)}, {{"axis", axis}}, 2, "mid")[1];
    };
  };
  return {{"split", true, split({4, 4}, 1)},
          {"split_from_behind", true, split({4, 4}, -3)},
          {"split_inside_a_block", false, split({2, 6}, 1)},
          {"split_of_rows", false, split({2, 4}, 2)}};
}

std::vector<FollowCase> resize_cases() {
  const auto scaled = [](std::vector<double> scales, const char* mode) {
    return [=](LayoutFollowNet& n) {
      return n.b.node("Resize", {n.made(8), -1, n.floats(scales)}, {{"mode", std::string(mode)}},
                      "mid");
    };
  };
  return {{"resize", true, scaled({1, 1, 2, 3}, "nearest")},
          {"resize_linear", true, scaled({1, 1, 2, 1.5}, "linear")},
          {"resize_cubic", false, scaled({1, 1, 2, 2}, "cubic")},
          {"resize_channels", false, scaled({1, 2, 2, 2}, "nearest")},
          {"resize_images", false, scaled({2, 1, 1, 1}, "nearest")},
          {"resize_to_sizes", true, [](LayoutFollowNet& n) {
             return n.b.node("Resize", {n.made(8), -1, -1, n.b.ints({2, 8, 9, 4})}, {}, "mid");
           }}};
}

std::vector<FollowCase> pad_and_slice_cases() {
  const auto pad = [](Ints pads) {
    return
        [=](LayoutFollowNet& n) { return n.b.node("Pad", {n.made(8), n.b.ints(pads)}, {}, "mid"); };
  };
  const auto slice = [](Ints begins, Ints ends, Ints axes) {
    return [=](LayoutFollowNet& n) {
      return n.b.node("Slice", {n.made(8), n.b.ints(begins), n.b.ints(ends), n.b.ints(axes)}, {},
                      "mid");
    };
  };
  return {{"pad", true, pad({0, 0, 1, 2, 0, 0, 0, 1})},
          {"pad_of_a_number", true,
           [](LayoutFollowNet& n) {
             const ValueId two = n.b.constant("two", Array::scalar(DType::F32, 2));
             return n.b.node("Pad", {n.made(6), n.b.ints({0, 0, 1, 0, 0, 0, 0, 1}), two}, {},
                             "mid");
           }},
          {"pad_before_channels", false, pad({0, 4, 0, 0, 0, 0, 0, 0})},
          {"pad_behind_channels", false, pad({0, 0, 0, 0, 0, 4, 0, 0})},
          {"pad_images", false, pad({0, 0, 0, 0, 1, 0, 0, 0})},
          {"slice", true, slice({1, 0}, {5, 3}, {2, 3})},
          {"slice_from_behind", true, slice({1}, {5}, {-2})},
          {"slice_of_channels", false, slice({0}, {4}, {1})},
          {"slice_of_channels_from_behind", false, slice({0}, {4}, {-3})}};
}

std::vector<FollowCase> elementwise_cases() {
  const auto with = [](Shape shape) {
    return [=](LayoutFollowNet& n) {
      return n.b.node("Add", {n.made(8), n.b.input("other", DType::F32, shape)}, {}, "mid");
    };
  };
  return {{"add", true,
           [](LayoutFollowNet& n) { return n.b.node("Add", {n.made(6), n.made(6)}, {}, "mid"); }},
          {"add_per_pixel", true, with({2, 1, 6, 5})},
          {"add_of_other_rank", false, with({6, 5})},
          {"add_of_more_plain_values", false,
           [](LayoutFollowNet& n) {
             const ValueId mean = n.b.node("ReduceMean", {n.made(8), n.b.ints({2, 3})});
             return n.b.node("Add", {mean, n.b.input("other", DType::F32, {2, 8, 6, 5})}, {},
                             "mid");
           }},
          {"not_finite_at_filled_up_channels", false,
           [](LayoutFollowNet& n) { return n.b.node("Reciprocal", {n.made(6)}, {}, "mid"); }},
          {"not_finite_at_zero", true,
           [](LayoutFollowNet& n) { return n.b.node("Reciprocal", {n.made(8)}, {}, "mid"); }}};
}

std::vector<FollowCase> follow_cases() {
  std::vector<FollowCase> all;
  for (const auto& some : {lrn_cases(), mean_cases(), concat_cases(), split_cases(), resize_cases(),
                           pad_and_slice_cases(), elementwise_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

PassContext blocks_context() {
  PassContext context;
  context.evaluate = interp_evaluate;
  context.vector_bytes = 4 * kLayoutFollowBlock;
  context.verify_each = true;
  return context;
}

class LayoutFollow : public testing::TestWithParam<FollowCase> {};

TEST_P(LayoutFollow, KeepsBlocksAndTheMeaning) {
  LayoutFollowNet net;
  const ValueId mid = GetParam().mid(net);
  net.b.output(net.b.type(mid).shape.size() == 4 ? net.conv(mid, 8) : mid, "y");
  const auto graph = net.b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  PassContext context = blocks_context();
  const auto made = run_passes(*graph, "block_layout", context);
  ASSERT_TRUE(made) << to_string(made.error());
  const Graph& out = made->graph;
  const auto node = std::find_if(out.nodes.begin(), out.nodes.end(),
                                 [](const Node& n) { return n.name == "mid"; });
  ASSERT_NE(node, out.nodes.end()) << print(out);
  const Shape& in = out.values[static_cast<size_t>(node->inputs[0])].type.shape;
  EXPECT_EQ(in.size() == 5, GetParam().blocked) << print(out);
  const std::vector<Array> inputs = random_inputs(*graph, 11);
  const auto want = run_graph(*graph, inputs), got = run_graph(out, inputs);
  ASSERT_TRUE(want) << to_string(want.error());
  ASSERT_TRUE(got) << to_string(got.error());
  const std::vector<double> expected = want->at(0).to_doubles(), actual = got->at(0).to_doubles();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;  // of a division by zero
    EXPECT_NEAR(actual[i], expected[i], 1e-3 * (1 + std::abs(expected[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, LayoutFollow, testing::ValuesIn(follow_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

/// An infinite pixel makes NaN of the channels that fill blocks up: no output may show it.
TEST(LayoutFollow, WhatFillsABlockUpReachesNoOutput) {
  LayoutFollowNet net;
  const ValueId mid = net.b.node("Sigmoid", {net.made(6)});
  net.b.output(net.conv(mid, 8), "y");
  const auto graph = net.b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  PassContext context = blocks_context();
  const auto made = run_passes(*graph, "block_layout", context);
  ASSERT_TRUE(made) << to_string(made.error());
  std::vector<Array> inputs = random_inputs(*graph, 11);
  inputs[0].set(7, std::numeric_limits<double>::infinity());
  const auto want = run_graph(*graph, inputs), got = run_graph(made->graph, inputs);
  ASSERT_TRUE(want && got);
  const std::vector<double> expected = want->at(0).to_doubles(), actual = got->at(0).to_doubles();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(expected[i])) << i;
    EXPECT_NEAR(actual[i], expected[i], 1e-3 * (1 + std::abs(expected[i]))) << i;
  }
}

}  // namespace
}  // namespace tilewright::graph
