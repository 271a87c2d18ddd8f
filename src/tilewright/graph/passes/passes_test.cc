#include "tilewright/graph/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

using ::testing::ElementsAre;
std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op);
  return names;
}

/// Runs passes and checks that the graph is sound, keeps its interface and its meaning.
Graph transform(const Graph& graph, const std::string& passes, double tolerance = 0,
                int vector_bytes = 16) {
  PassContext context;
  context.evaluate = interp_evaluate;
  context.vector_bytes = vector_bytes;
  context.verify_each = true;
  auto result = run_passes(graph, passes, context);
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return graph;
  }
  const Graph& out = result->graph;
  EXPECT_EQ(out.inputs.size(), graph.inputs.size());
  EXPECT_EQ(out.outputs.size(), graph.outputs.size());
  for (size_t i = 0; i < std::min(out.outputs.size(), graph.outputs.size()); ++i)
    EXPECT_EQ(out.values[static_cast<size_t>(out.outputs[i])].name,
              graph.values[static_cast<size_t>(graph.outputs[i])].name);
  const std::vector<Array> inputs = random_inputs(graph, 11);
  const auto expected = run_graph(graph, inputs), got = run_graph(out, inputs);
  EXPECT_TRUE(expected) << to_string(expected.error());
  EXPECT_TRUE(got) << (got ? "" : to_string(got.error()));
  for (size_t i = 0; expected && got && i < got->size(); ++i)
    EXPECT_LE(max_difference((*got)[i], (*expected)[i]), tolerance) << print(out);
  return out;
}

TEST(Passes, UnknownNameListsTheKnownOnes) {
  PassContext context;
  const auto result = run_passes(Graph{}, "simplify,nonsense", context);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Usage);
  EXPECT_THAT(result.error().fix, testing::HasSubstr("merge_common"));
}

TEST(FoldConstants, ComputesWhatIsKnownAndReports) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4});
  Rng rng(1);
  const ValueId c = b.constant("c", weights(rng, {4}));
  b.output(b.node("Add", {x, b.node("Relu", {b.node("Neg", {c})})}), "y");
  EXPECT_THAT(ops(transform(finish(b), "fold_constants")), ElementsAre("Add"));
}

TEST(FoldConstants, LargeFillsStayOperators) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 1});
  const ValueId big = b.node("ConstantOfShape", {b.ints({8192, 8192})});
  b.output(b.node("Add", {x, big}), "y");
  PassContext context;
  context.evaluate = interp_evaluate;
  EXPECT_THAT(ops(*fold_constants(finish(b), context)), ElementsAre("ConstantOfShape", "Add"));
}

TEST(MergeCommon, EqualNodesBecomeOneButOutputsKeepTheirNames) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  const ValueId first = b.node("Reshape", {x, b.ints({3, 2})});
  const ValueId second = b.node("Reshape", {x, b.ints({3, 2})});
  b.output(b.node("Add", {first, second}), "y");
  b.output(b.node("Neg", {first}), "a");
  b.output(b.node("Neg", {second}), "b");
  const Graph out = transform(finish(b), "merge_common");
  EXPECT_EQ(count(out, "Reshape"), 1);
  EXPECT_EQ(count(out, "Neg"), 2);  // two outputs cannot be one value
}

TEST(MergeCommon, DifferentAttributesStayApart) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3});
  const ValueId p = b.node("LeakyRelu", {x}, {{"alpha", 0.5}});
  const ValueId q = b.node("LeakyRelu", {x}, {{"alpha", 0.25}});
  b.output(b.node("Sub", {p, q}), "y");
  EXPECT_EQ(count(transform(finish(b), "merge_common"), "LeakyRelu"), 2);
}

TEST(Simplify, DropsWhatChangesNothing) {
  Builder b("net");
  ValueId x = b.input("x", DType::F32, {1, 4, 2, 2});
  const ValueId one = b.constant("one", Array::scalar(DType::F32, 1));
  const ValueId zero = b.constant("zero", Array::scalar(DType::F32, 0));
  x = b.node("Relu", {x});
  x = b.node("Identity", {x});
  x = b.node("Mul", {one, b.node("Add", {x, zero})});
  x = b.node("Cast", {x}, {{"to", int64_t{1}}});
  x = b.node("Reshape", {x, b.ints({1, 4, 2, 2})});
  x = b.node("Transpose", {x}, {{"perm", Ints{0, 1, 2, 3}}});
  x = b.node("Pad", {x, b.ints({0, 0, 0, 0, 0, 0, 0, 0})});
  x = b.node("Relu", {x});
  b.output(b.nodes("Dropout", {x}, {}, 1)[0], "y");
  const Graph out = transform(finish(b), "simplify");
  EXPECT_THAT(ops(out), ElementsAre("Relu"));
}

TEST(Simplify, ATransposeThatMovesTheAxisOfARunStays) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 1});
  const ValueId y = b.node("Transpose", {b.node("Relu", {x})});
  b.output(y, "y");
  Graph graph = finish(b);
  EXPECT_THAT(ops(transform(graph, "simplify")), ElementsAre("Relu"));
  for (Value& value : graph.values) value.type.dynamic_axis = 1;  // [1, <=1]
  graph.values[static_cast<size_t>(graph.outputs[0])].type.dynamic_axis = 0;
  EXPECT_THAT(ops(transform(graph, "simplify")), ElementsAre("Relu", "Transpose"));
}

TEST(Simplify, MergesTransposesReshapesAndClips) {
  Builder b("net");
  ValueId x = b.input("x", DType::F32, {2, 3, 4});
  x = b.node("Transpose", {x}, {{"perm", Ints{1, 2, 0}}});
  x = b.node("Transpose", {x}, {{"perm", Ints{2, 1, 0}}});
  x = b.node("Reshape", {x, b.ints({6, 4})});
  x = b.node("Unsqueeze", {x, b.ints({0})});
  x = b.node("Relu", {x});
  const ValueId lo = b.constant("lo", Array::scalar(DType::F32, -1));
  const ValueId hi = b.constant("hi", Array::scalar(DType::F32, 2));
  b.output(b.node("Clip", {x, lo, hi}), "y");
  const Graph out = transform(finish(b), "simplify");
  EXPECT_THAT(ops(out), ElementsAre("Transpose", "Reshape", "Clip"));
}

TEST(Simplify, ADropoutOfWhichOnlyTheMaskIsReadStays) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2});
  b.output(b.nodes("Dropout", {x}, {}, 2)[1], "mask");
  EXPECT_THAT(ops(transform(finish(b), "simplify")), ElementsAre("Dropout"));
}

TEST(Simplify, AnInputThatIsAnOutputStaysACopy) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2});
  b.output(b.node("Identity", {x}), "y");
  EXPECT_THAT(ops(transform(finish(b), "simplify")), ElementsAre("Identity"));
}

std::vector<ValueId> batch_norm(Builder& b, Rng& rng, int64_t channels) {
  std::vector<ValueId> ids;
  for (const char* name : {"gamma", "beta", "mean"})
    ids.push_back(b.constant(name, weights(rng, {channels})));
  Array variance(DType::F32, {channels});
  for (int64_t c = 0; c < channels; ++c) variance.set(c, 0.5 + rng.uniform());
  ids.push_back(b.constant("variance", variance));
  return ids;
}

TEST(FoldBatchNorm, IntoConvolutionWithEverythingPerChannelBehind) {
  Rng rng(3);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 5, 5});
  ValueId y =
      b.node("Conv", {x, b.constant("w", weights(rng, {6, 2, 3, 3}))}, {{"group", int64_t{2}}});
  const auto p = batch_norm(b, rng, 6);
  y = b.node("BatchNormalization", {y, p[0], p[1], p[2], p[3]});
  y = b.node("Mul", {y, b.constant("s", weights(rng, {6, 1, 1}))});
  y = b.node("Add", {b.constant("t", weights(rng, {1, 6, 1, 1})), y});
  b.output(b.node("Relu", {y}), "y");
  const Graph out = transform(finish(b), "fold_batch_norm", 1e-4);
  EXPECT_THAT(ops(out), ElementsAre("Conv", "Relu"));
}

TEST(FoldBatchNorm, IntoTransposedConvolutionAndGemm) {
  Rng rng(4);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 3, 3});
  ValueId y = b.node("ConvTranspose", {x, b.constant("w", weights(rng, {4, 3, 2, 2}))},
                     {{"group", int64_t{2}}});
  const auto p = batch_norm(b, rng, 6);
  b.output(b.node("BatchNormalization", {y, p[0], p[1], p[2], p[3]}), "y");
  const ValueId a = b.input("a", DType::F32, {2, 3});
  const ValueId g =
      b.node("Gemm", {a, b.constant("m", weights(rng, {5, 3}))}, {{"transB", int64_t{1}}});
  b.output(b.node("Sub", {b.constant("u", weights(rng, {5})), g}), "z");
  const Graph out = transform(finish(b), "fold_batch_norm", 1e-4);
  EXPECT_THAT(ops(out), ElementsAre("ConvTranspose", "Gemm"));
}

TEST(FoldBatchNorm, ElsewhereBecomesScaleAndShift) {
  Rng rng(5);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 3, 3});
  const auto p = batch_norm(b, rng, 4);
  b.output(b.node("BatchNormalization", {x, p[0], p[1], p[2], p[3]}), "y");
  const Graph out = transform(finish(b), "fold_batch_norm", 1e-5);
  EXPECT_THAT(ops(out), ElementsAre("Mul", "Add"));
}

TEST(FoldBatchNorm, AValueReadTwiceKeepsItsConvolution) {
  Rng rng(6);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 3, 3});
  const ValueId c = b.node("Conv", {x, b.constant("w", weights(rng, {4, 4, 1, 1}))});
  const auto p = batch_norm(b, rng, 4);
  b.output(b.node("Add", {c, b.node("BatchNormalization", {c, p[0], p[1], p[2], p[3]})}), "y");
  EXPECT_THAT(ops(transform(finish(b), "fold_batch_norm", 1e-4)),
              ElementsAre("Conv", "Mul", "Add", "Add"));
}

TEST(FoldBatchNorm, AlongOtherAxesNothingIsFolded) {
  Rng rng(7);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 4, 4});
  const ValueId c = b.node("Conv", {x, b.constant("w", weights(rng, {4, 4, 1, 1}))});
  b.output(b.node("Mul", {c, b.constant("s", weights(rng, {4}))}), "y");  // along the columns
  EXPECT_THAT(ops(transform(finish(b), "fold_batch_norm")), ElementsAre("Conv", "Mul"));
}

TEST(FoldPad, IntoConvolutionAndPools) {
  Rng rng(8);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 5, 6});
  const ValueId pads = b.ints({0, 0, 1, 0, 0, 0, 1, 2});
  const ValueId w = b.constant("w", weights(rng, {4, 4, 3, 3}));
  b.output(b.node("Conv", {b.node("Pad", {x, pads}), w}), "conv");
  const ValueId r = b.node("Relu", {x});
  b.output(b.node("MaxPool", {b.node("Pad", {r, pads})}, {{"kernel_shape", Ints{3, 3}}}), "max");
  b.output(b.node("AveragePool", {b.node("Pad", {x, pads})}, {{"kernel_shape", Ints{3, 3}}}),
           "avg");
  const Graph out = transform(finish(b), "fold_pad", 1e-6);
  EXPECT_EQ(count(out, "Pad"), 0);
}

TEST(FoldPad, StaysWhereItMatters) {
  Rng rng(9);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 5, 6});
  const ValueId pads = b.ints({0, 0, 1, 0, 0, 0, 1, 0});
  const ValueId one = b.constant("one", Array::scalar(DType::F32, 1));
  const ValueId w = b.constant("w", weights(rng, {4, 4, 3, 3}));
  b.output(b.node("Conv", {b.node("Pad", {x, pads, one}), w}), "not zero");
  b.output(b.node("MaxPool", {b.node("Pad", {x, pads})}, {{"kernel_shape", Ints{3, 3}}}),
           "may be negative");
  b.output(b.node("Conv", {b.node("Pad", {x, b.ints({0, -1, 0, 0, 0, 1, 0, 0})}), w}), "channels");
  EXPECT_EQ(count(transform(finish(b), "fold_pad"), "Pad"), 3);
}

/// Two residual blocks, a strided one with a projection, then pooling and a classifier.
Graph small_resnet(int64_t channels) {
  Rng rng(10);
  Builder b("resnet");
  ValueId x = b.input("x", DType::F32, {1, 3, 9, 9});
  const auto conv = [&](ValueId in, int64_t out, int64_t k, int64_t stride) {
    const int64_t from = b.type(in).shape[1], p = k / 2;
    const ValueId w = b.constant("w", random_array(rng, DType::F32, {out, from, k, k}, 1));
    return b.node("Conv", {in, w, b.constant("b", weights(rng, {out}))},
                  {{"pads", Ints{p, p, p, p}}, {"strides", Ints{stride, stride}}});
  };
  x = b.node("Relu", {conv(x, channels, 3, 1)});
  x = b.node("MaxPool", {x}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}});
  for (int block = 0; block < 2; ++block) {
    const int64_t stride = block == 0 ? 1 : 2, width = channels * (block + 1);
    const ValueId skip = block == 0 ? x : conv(x, width, 1, stride);
    x = b.node("Relu", {conv(x, width, 3, stride)});
    x = b.node("Relu", {b.node("Add", {conv(x, width, 3, 1), skip})});
  }
  x = b.node("Flatten", {b.node("GlobalAveragePool", {x})});
  const ValueId w = b.constant("fc", weights(rng, {7, b.type(x).shape[1]}));
  b.output(b.node("Gemm", {x, w, b.constant("fb", weights(rng, {7}))}, {{"transB", int64_t{1}}}),
           "y");
  return finish(b);
}

TEST(BlockLayout, NoConversionInsideAResidualNetwork) {
  const Graph out = transform(small_resnet(8), default_passes(), 1e-2);
  EXPECT_EQ(count(out, "ToBlocked"), 0);  // the image is read as it is
  EXPECT_EQ(count(out, "FromBlocked"), 0);
  EXPECT_EQ(count(out, "ConvBlocked"), 6);
  EXPECT_EQ(count(out, "Conv"), 0);
  EXPECT_EQ(count(out, "GemmPacked"), 1);
  EXPECT_EQ(count(out, "PackConvWeight"), 0);  // computed at compile time
  std::vector<std::string> names;
  for (const Group& group : fuse(out))
    if (group.kind == GroupKind::Kernel) names.push_back(group_name(out, group));
  EXPECT_THAT(names,
              ElementsAre("conv_blocked_relu", "max_pool_blocked", "conv_blocked_relu",
                          "conv_blocked_add_relu", "conv_blocked", "conv_blocked_relu",
                          "conv_blocked_add_relu", "global_average_pool_blocked", "gemm_packed"));
}

struct PoolCase {
  int64_t filters;
  Ints kernel, strides, pads;
  bool counted, bias;
  bool moves;
};

TEST(NarrowPools, AveragesFewerChannels) {
  Rng rng(14);
  const std::vector<PoolCase> cases = {
      {3, {3, 3}, {1, 1}, {1, 1, 1, 1}, true, true, true},
      {3, {3, 3}, {1, 1}, {1, 1, 1, 1}, false, true, true},
      {3, {3, 2}, {1, 1}, {1, 1, 1, 0}, false, false, true},
      {8, {3, 3}, {1, 1}, {1, 1, 1, 1}, true, true, false},  // no fewer channels
      {3, {3, 3}, {2, 2}, {1, 1, 1, 1}, true, true, false},  // fewer elements
  };
  for (const PoolCase& c : cases) {
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {2, 8, 5, 6});
    const ValueId pool = b.node("AveragePool", {x},
                                {{"kernel_shape", c.kernel},
                                 {"strides", c.strides},
                                 {"pads", c.pads},
                                 {"count_include_pad", int64_t{c.counted}}},
                                "pool");
    std::vector<ValueId> inputs = {pool, b.constant("w", weights(rng, {c.filters, 8, 1, 1}))};
    if (c.bias) inputs.push_back(b.constant("b", weights(rng, {c.filters})));
    b.output(b.node("Relu", {b.node("Conv", inputs, {}, "conv")}), "y");
    const Graph out = transform(finish(b), "narrow_pools", 1e-4);
    EXPECT_EQ(ops(out)[0], c.moves ? "Conv" : "AveragePool") << print(out);
    EXPECT_EQ(count(out, "Add"), c.moves && c.bias ? 1 : 0) << print(out);
    EXPECT_EQ(count(out, "AveragePool"), 1) << print(out);
  }
}

TEST(NarrowPools, LeavesPoolsThatOthersRead) {
  Rng rng(15);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 8, 4, 4});
  const ValueId pool = b.node("AveragePool", {x}, {{"kernel_shape", Ints{1, 1}}}, "pool");
  const ValueId first = b.node("Conv", {pool, b.constant("w", weights(rng, {4, 8, 1, 1}))});
  b.output(b.node("Conv", {first, b.constant("v", weights(rng, {2, 4, 1, 1}))}), "y");
  b.output(b.node("Neg", {pool}), "z");
  EXPECT_EQ(ops(transform(finish(b), "narrow_pools"))[0], "AveragePool");
}

TEST(NarrowPools, KeepsTheOrderOfSumsIfAsked) {
  Rng rng(16);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 8, 4, 4});
  const ValueId pool = b.node("AveragePool", {x}, {{"kernel_shape", Ints{1, 1}}}, "pool");
  b.output(b.node("Conv", {pool, b.constant("w", weights(rng, {4, 8, 1, 1}))}), "y");
  const Graph graph = finish(b);
  EXPECT_EQ(ops(transform(graph, "narrow_pools", 1e-4))[0], "Conv");
  PassContext exact;
  exact.regroup = false;
  const auto kept = run_passes(graph, "narrow_pools", exact);
  ASSERT_TRUE(kept) << to_string(kept.error());
  EXPECT_EQ(ops(kept->graph)[0], "AveragePool");
}

TEST(BlockLayout, ChannelsThatFillNoWholeBlock) {
  const Graph out = transform(small_resnet(6), default_passes(), 1e-2);
  EXPECT_EQ(count(out, "ConvBlocked"), 6);
  EXPECT_EQ(count(out, "ToBlocked"), 0);
}

TEST(BlockLayout, EveryKindOfNodeThatStaysBlocked) {
  Rng rng(12);
  Builder b("net");
  const ValueId in = b.input("x", DType::F32, {1, 8, 6, 6});
  const auto conv = [&](ValueId x, int64_t out, int64_t groups) {
    const int64_t from = b.type(x).shape[1] / groups;
    const ValueId w = b.constant("w", random_array(rng, DType::F32, {out, from, 1, 1}, 1));
    return b.node("Conv", {x, w}, {{"group", groups}});
  };
  ValueId x = conv(in, 8, 1);
  x = conv(x, 8, 8);  // depthwise
  x = conv(x, 8, 2);  // grouped, whole blocks
  const ValueId pooled =
      b.node("AveragePool", {x}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const ValueId scales =
      b.constant("scales", Array::of(DType::F32, std::vector<double>{1, 1, 2, 2}));
  const ValueId up = b.node("Resize", {pooled, -1, scales},
                            {{"mode", std::string("nearest")},
                             {"coordinate_transformation_mode", std::string("asymmetric")},
                             {"nearest_mode", std::string("floor")}});
  ValueId y = b.node("Concat", {x, up}, {{"axis", int64_t{1}}});
  const auto parts = b.nodes("Split", {y, b.ints({4, 12})}, {{"axis", int64_t{1}}}, 2);
  y = b.node("LRN", {parts[1]}, {{"size", int64_t{5}}, {"alpha", 0.1}});
  y = b.node("Pad", {y, b.ints({0, 0, 1, 2, 0, 0, 1, 2})});
  y = b.node("Slice", {y, b.ints({1, -1}), b.ints({8, 0}), b.ints({-2, 3}), b.ints({1, -1})});
  y = b.node("Mul",
             {y, b.node("Sigmoid", {conv(b.node("ReduceMean", {y, b.ints({2, 3})}), 12, 1)})});
  y = b.node("Add", {y, b.constant("c", weights(rng, {12, 1, 1}))});
  y = b.node("PRelu", {y, b.constant("slope", weights(rng, {12, 1, 1}))});
  y = b.node("Mul", {y, b.constant("row", weights(rng, {9}))});
  y = b.node("Div", {y, b.constant("two", Array::scalar(DType::F32, 2).reshaped({1, 1, 1, 1}))});
  b.output(conv(y, 8, 1), "y");
  b.output(b.node("Neg", {parts[0]}), "z");
  const Graph out = transform(finish(b), default_passes(), 1e-2);
  EXPECT_EQ(count(out, "ToBlocked"), 0) << print(out);    // rows of whole vectors are read as is
  EXPECT_EQ(count(out, "FromBlocked"), 2) << print(out);  // the outputs
}

TEST(BlockLayout, NodesKeepTheirNames) {
  const Graph before = small_resnet(8), after = transform(before, "block_layout", 1e-2);
  for (const Node& node : before.nodes) {
    if (node.op == "Flatten") continue;
    const auto same = [&](const Node& other) { return other.name == node.name; };
    EXPECT_TRUE(std::any_of(after.nodes.begin(), after.nodes.end(), same)) << node.name;
  }
}

TEST(BlockLayout, DivisionByFilledUpChannelsStaysPlain) {
  Rng rng(13);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 3, 3});
  const auto conv = [&](ValueId from) {
    Array w(DType::F32, {6, b.type(from).shape[1], 1, 1});
    for (int64_t i = 0; i < w.size(); ++i) w.set(i, 1 + static_cast<double>(i % 3));
    return b.node("Conv", {from, b.constant("w", w)});
  };
  const ValueId positive = b.node("Exp", {conv(x)});
  b.output(conv(b.node("Reciprocal", {positive})), "y");
  const ValueId six = b.constant("six", Array::scalar(DType::F32, 6));
  b.output(conv(b.node("Div", {conv(x), six})), "z");
  const Graph out = transform(finish(b), default_passes(), 1e-3);
  EXPECT_EQ(count(out, "ToBlocked"), 2) << print(out);  // the input, the reciprocal
}

}  // namespace
}  // namespace tilewright::graph
