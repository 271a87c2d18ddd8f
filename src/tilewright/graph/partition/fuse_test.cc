#include "tilewright/graph/partition/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/partition/views.h"
#include "tilewright/graph/testing/support.h"
#include "tilewright/interp/interp.h"

namespace tilewright::graph {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<std::string> names;
  for (const Group& group : groups) names.push_back(group_name(graph, group));
  return names;
}

/// Runs the groups' Funcs, in order, with the interpreter.
std::vector<Array> run_groups(const Graph& graph, const std::vector<Group>& groups,
                              const std::vector<Array>& inputs) {
  std::vector<Array> known(graph.values.size());
  for (size_t v = 0; v < known.size(); ++v)
    if (graph.values[v].constant) known[v] = *graph.values[v].constant;
  for (size_t i = 0; i < inputs.size(); ++i)
    known[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (Group group : groups) {
    if (group.kind == GroupKind::Alias &&
        parts_of(graph, graph.nodes[static_cast<size_t>(group.anchor)])) {
      group.kind = GroupKind::Kernel;  // what its places mean, computed
    } else if (group.kind == GroupKind::Alias) {
      const size_t to = static_cast<size_t>(group.outputs[0]);
      known[to] = known[static_cast<size_t>(group.inputs[0])].reshaped(graph.values[to].type.shape);
      continue;
    }
    auto made = group_func(graph, group);
    if (!made) {
      ADD_FAILURE() << to_string(made.error());
      return {};
    }
    interp::Arguments arguments;
    for (size_t i = 0; i < made->args.size(); ++i) {
      const Param& param = made->func.params[i];
      if (param.mode == ParamMode::Out) continue;
      const Array& array = known[static_cast<size_t>(made->args[i])];
      EXPECT_FALSE(array.empty_handle()) << "a group reads a value before it is produced";
      arguments.arrays[param.buffer.name()] = array;
    }
    auto outcome = interp::run(made->func, arguments);
    if (!outcome) {
      ADD_FAILURE() << to_string(outcome.error());
      return {};
    }
    for (size_t i = 0; i < group.outputs.size(); ++i)
      known[static_cast<size_t>(group.outputs[i])] = outcome->outputs.at("y" + std::to_string(i));
  }
  std::vector<Array> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(known[static_cast<size_t>(id)]);
  return outputs;
}

/// Fused groups compute what the nodes compute one by one, and the memory plan is sound.
void expect_same_meaning(const Graph& graph) {
  const std::vector<Group> groups = fuse(graph);
  std::vector<int> seen(graph.nodes.size(), 0);
  for (const Group& group : groups)
    for (int n : group.nodes) ++seen[static_cast<size_t>(n)];
  EXPECT_THAT(seen, testing::Each(1));
  const std::vector<Array> inputs = random_inputs(graph, 7);
  const auto expected = run_graph(graph, inputs);
  ASSERT_TRUE(expected) << to_string(expected.error());
  const std::vector<Array> got = run_groups(graph, groups, inputs);
  ASSERT_EQ(got.size(), expected->size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(max_difference(got[i], (*expected)[i]), 0);
  const MemoryPlan plan = plan_memory(graph, groups);
  const Status sound = verify_plan(graph, groups, plan);
  EXPECT_TRUE(sound) << to_string(sound.error());
  EXPECT_GE(plan.arena_bytes, plan.lower_bound);
}

TEST(Fuse, ConvolutionTakesBiasAddAndRelu) {
  Rng rng(1);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 3, 6, 6});
  const ValueId w = b.constant("w", weights(rng, {4, 3, 3, 3}));
  const ValueId s = b.constant("s", weights(rng, {1, 4, 1, 1}));
  const ValueId conv = b.node("Conv", {x, w}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  b.output(b.node("Relu", {b.node("Add", {conv, s})}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto groups = fuse(*graph);
  EXPECT_THAT(names_of(*graph, groups), ElementsAre("conv_add_relu"));
  EXPECT_EQ(groups[0].fusion, tensor::Fusion::Complex);
  EXPECT_THAT(groups[0].inputs, ElementsAre(x, w, s));
  expect_same_meaning(*graph);
}

TEST(Fuse, ResidualAddJoinsTheLaterConvolution) {
  Rng rng(2);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 5, 5});
  const ValueId w1 = b.constant("w1", weights(rng, {4, 4, 1, 1}));
  const ValueId w2 = b.constant("w2", weights(rng, {4, 4, 1, 1}));
  const ValueId first = b.node("Relu", {b.node("Conv", {x, w1})});
  const ValueId second = b.node("Conv", {first, w2});
  b.output(b.node("Relu", {b.node("Add", {second, x})}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph);
  EXPECT_THAT(names_of(*graph, fuse(*graph)), ElementsAre("conv_relu", "conv_add_relu"));
  expect_same_meaning(*graph);
}

TEST(Fuse, ADiamondFusesOnlyWhereItCloses) {
  Rng rng(3);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 4, 5, 5});
  const ValueId w = b.constant("w", weights(rng, {4, 4, 1, 1}));
  const ValueId c = b.node("Conv", {x, w});
  const ValueId swish = b.node("Mul", {c, b.node("Relu", {c})});  // closes: one value leaves
  const ValueId d = b.node("Conv", {swish, w});
  b.output(b.node("Relu", {d}), "y0");  // stays open: d is read outside as well
  b.output(b.node("MaxPool", {d}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}), "y1");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_THAT(names_of(*graph, fuse(*graph)),
              ElementsAre("conv_relu_mul", "conv", "relu", "max_pool"));
  expect_same_meaning(*graph);
}

TEST(Fuse, InjectiveChainsAndReductions) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 3, 4});
  const ValueId y = b.input("y", DType::F32, {4, 1, 2});
  const ValueId t = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{2, 1, 0}}});
  const ValueId sum = b.node("Add", {b.node("Neg", {t}), y});
  const ValueId total =
      b.node("ReduceSum", {b.node("Mul", {sum, sum}), b.ints({1})}, {{"keepdims", int64_t{0}}});
  b.output(b.node("Relu", {total}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_THAT(names_of(*graph, fuse(*graph)), ElementsAre("transpose_neg_add_3more"));
  expect_same_meaning(*graph);
}

TEST(Fuse, BroadcastValuesAreNotComputedAgain) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 1});
  const ValueId y = b.input("y", DType::F32, {4, 64});
  b.output(b.node("Mul", {b.node("Exp", {x}), y}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph);
  EXPECT_THAT(names_of(*graph, fuse(*graph)), ElementsAre("exp", "mul"));
}

TEST(Fuse, ReshapesBetweenKernelsAreAliases) {
  Rng rng(4);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 4, 3, 3});
  const ValueId pooled = b.node("GlobalAveragePool", {b.node("Relu", {x})});
  const ValueId flat = b.node("Flatten", {pooled});
  b.output(b.node("Gemm", {flat, b.constant("w", weights(rng, {4, 5}))}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph);
  const auto groups = fuse(*graph);
  EXPECT_THAT(names_of(*graph, groups), ElementsAre("relu_global_average_pool", "flatten", "gemm"));
  EXPECT_EQ(groups[1].kind, GroupKind::Alias);
  const MemoryPlan plan = plan_memory(*graph, groups);
  EXPECT_EQ(plan.alias[static_cast<size_t>(flat)], pooled);
  EXPECT_EQ(plan.offset[static_cast<size_t>(flat)], plan.offset[static_cast<size_t>(pooled)]);
  expect_same_meaning(*graph);
}

TEST(Fuse, AReshapeThatIsAnOutputIsCopied) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 6});
  b.output(b.node("Reshape", {x, b.ints({3, 4})}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph);
  const auto groups = fuse(*graph);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].kind, GroupKind::Kernel);
  expect_same_meaning(*graph);
}

TEST(Fuse, DisabledGivesOneGroupPerNode) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {2, 6});
  b.output(b.node("Relu", {b.node("Neg", {x})}), "y");
  const auto graph = b.finish();
  EXPECT_EQ(fuse(*graph, {false, 32}).size(), 2u);
  EXPECT_EQ(fuse(*graph).size(), 1u);
}

TEST(Fuse, EqualLayersGiveEqualFuncs) {
  Rng rng(5);
  Builder b("net");
  ValueId x = b.input("x", DType::F32, {1, 4, 5, 5});
  for (int i = 0; i < 2; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const ValueId w = b.constant(name + ".w", weights(rng, {4, 4, 1, 1}));
    x = b.node("Relu", {b.node("Conv", {x, w}, {}, name)});
  }
  b.output(x, "y");
  const auto graph = b.finish();
  const auto groups = fuse(*graph);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(equal(group_func(*graph, groups[0])->func, group_func(*graph, groups[1])->func));
}

TEST(Fuse, JoinsConvolutionsInARowWhereAsked) {
  Rng rng(6);
  Builder b("net");
  const auto ours = [&](const char* op, ValueId x, Shape weight, AttrList attrs = {}) {
    const ValueId w = b.constant("w", weights(rng, weight));
    return b.node(op, {x, w}, std::move(attrs), "", "tilewright");
  };
  const AttrList pads = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const ValueId x = b.input("x", DType::F32, {1, 2, 5, 3, 4});
  const ValueId wide = b.node("Relu", {ours("ConvBlocked", x, {3, 2, 1, 1, 4, 4})});
  const ValueId deep = b.node("Relu", {ours("DepthwiseConvBlocked", wide, {3, 3, 3, 4}, pads)});
  const ValueId narrow = ours("ConvBlocked", deep, {2, 3, 1, 1, 4, 4});
  b.output(b.node("Add", {narrow, x}), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const std::string expand = "conv_blocked_relu", window = "depthwise_conv_blocked_relu";
  EXPECT_THAT(names_of(*graph, fuse(*graph)), ElementsAre(expand, window, "conv_blocked_add"));
  const auto joined = [&](size_t nodes) {
    FuseOptions options;
    options.join = [nodes](const Group& group) { return group.nodes.size() == nodes; };
    const std::vector<Group> groups = fuse(*graph, options);
    EXPECT_EQ(groups.back().outputs, graph->outputs);
    return groups.size();
  };
  EXPECT_EQ(joined(6), 1u);  // all three with what follows them
  EXPECT_EQ(joined(4), 2u);  // expand and window, or window and project with the addition
  EXPECT_EQ(joined(5), 3u);
}

TEST(Fuse, JoinsCopiesAroundConvolutionsWhereAsked) {
  for (const bool read : {false, true}) {
    Rng rng(6);
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {1, 8, 5, 3});
    const ValueId in = b.node("ToBlocked", {x}, {{"block", int64_t{4}}}, "", "tilewright");
    const ValueId made =
        b.node("DepthwiseConvBlocked", {in, b.constant("w", weights(rng, {2, 3, 3, 4}))}, {}, "",
               "tilewright");
    const ValueId y = b.node("FromBlocked", {b.node("Relu", {made})}, {{"channels", int64_t{8}}},
                             "", "tilewright");
    b.output(y, "y");
    if (read) b.output(b.node("Neg", {in}), "z");
    const auto graph = b.finish();
    ASSERT_TRUE(graph) << to_string(graph.error());
    FuseOptions options;
    options.join = [](const Group&) { return true; };
    EXPECT_EQ(fuse(*graph, options).size(), read ? 3u : 1u);
    EXPECT_EQ(fuse(*graph).size(), read ? 4u : 3u);
    options.join = [](const Group& group) { return group.nodes.size() == 3; };  // but not all four
    const std::vector<Group> groups = fuse(*graph, options);
    EXPECT_EQ(groups.back().outputs[0], read ? graph->outputs[1] : graph->outputs[0]);
    EXPECT_EQ(groups.size(), read ? 3u : 2u);
  }
}

TEST(Fuse, JoinsCopiesThatLeaveChannelsOut) {
  Rng rng(6);
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {1, 2, 5, 3, 4});
  const ValueId conv = b.node("ConvBlocked", {x, b.constant("w", weights(rng, {2, 2, 1, 1, 4, 4}))},
                              {}, "", "tilewright");
  b.output(b.node("FromBlocked", {conv}, {{"channels", int64_t{7}}}, "", "tilewright"), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  FuseOptions options;
  options.join = [](const Group&) { return true; };
  EXPECT_EQ(fuse(*graph, options).size(), 1u);
}

TEST(Fuse, JoinsWhatIsComputedForAConvolutionWhereAsked) {
  for (const bool read : {false, true}) {
    Rng rng(6);
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {1, 2, 5, 3, 4});
    const auto conv = [&](ValueId v) {
      return b.node("ConvBlocked", {v, b.constant("w", weights(rng, {2, 2, 1, 1, 4, 4}))}, {}, "",
                    "tilewright");
    };
    const ValueId first = b.node("Relu", {conv(x)});  // read twice: nobody's own
    const ValueId scaled = b.node("Mul", {b.constant("s", weights(rng, {1, 2, 1, 1, 4})), first});
    const ValueId before = b.node("Relu", {scaled});
    b.output(b.node("Add", {conv(before), first}), "y");
    if (read) b.output(b.node("Neg", {before}), "z");
    const auto graph = b.finish();
    ASSERT_TRUE(graph) << to_string(graph.error());
    FuseOptions options;
    options.join = [](const Group&) { return true; };
    const std::string conv_relu = "conv_blocked_relu", conv_add = "conv_blocked_add";
    const auto joined = names_of(*graph, fuse(*graph, options));
    const auto apart = names_of(*graph, fuse(*graph));
    if (read) {
      EXPECT_THAT(joined, ElementsAre(conv_relu, "mul_relu", conv_add, "neg"));
      continue;
    }
    EXPECT_THAT(joined, ElementsAre(conv_relu, "mul_relu_conv_blocked_add"));
    EXPECT_THAT(apart, ElementsAre(conv_relu, "mul_relu", conv_add));
  }
}

TEST(Fuse, JoinsSlicesInAConcatenationOnlyWhereOneConvolutionReadsIt) {
  for (const bool read : {false, true}) {
    Rng rng(6);
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {1, 2, 6, 6, 4});
    const ValueId skip = b.node("Relu", {x}),
                  up = b.node("Neg", {b.input("u", DType::F32, {1, 1, 4, 4, 4})});
    const ValueId part = b.node("Slice", {skip, b.ints({1, 1}), b.ints({5, 5}), b.ints({2, 3})});
    const ValueId both = b.node("Concat", {part, up}, {{"axis", int64_t{1}}});
    b.output(b.node("ConvBlocked", {both, b.constant("w", weights(rng, {1, 3, 1, 1, 4, 4}))}, {},
                    "", "tilewright"),
             "y");
    b.output(b.node("MaxPoolBlocked", {skip}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}, "",
                    "tilewright"),
             "pool");
    if (read) b.output(b.node("Neg", {both}), "z");
    const auto graph = b.finish();
    ASSERT_TRUE(graph) << to_string(graph.error());
    FuseOptions options;
    options.join = [](const Group&) { return true; };
    const auto joined = names_of(*graph, fuse(*graph, options));
    EXPECT_EQ(std::count(joined.begin(), joined.end(), "slice_concat_conv_blocked"), read ? 0 : 1);
    const auto apart = names_of(*graph, fuse(*graph));
    EXPECT_EQ(std::count(apart.begin(), apart.end(), "concat"), 1);
  }
}

TEST(Fuse, JoinsAttentionOnlyWhereNobodyElseReadsTheScores) {
  for (const bool read : {false, true}) {
    Builder b("net");
    const ValueId q = b.input("q", DType::F32, {2, 3, 4}), k = b.input("k", DType::F32, {2, 4, 5});
    const ValueId v = b.input("v", DType::F32, {2, 5, 4});
    const ValueId weights = b.node("Softmax", {b.node("MatMul", {q, k})});
    b.output(b.node("MatMul", {weights, v}), "y");
    if (read) b.output(b.node("Neg", {weights}), "z");
    const auto graph = b.finish();
    ASSERT_TRUE(graph) << to_string(graph.error());
    FuseOptions options;
    options.join = [](const Group&) { return true; };
    EXPECT_EQ(fuse(*graph, options).size(), read ? 4u : 1u);
    EXPECT_EQ(fuse(*graph).size(), read ? 4u : 3u);
  }
}

/// Random graphs of elementwise, movement, reduction and matrix nodes.
Graph random_graph(uint64_t seed) {
  Rng rng(seed);
  Builder b("random");
  std::vector<ValueId> pool = {b.input("a", DType::F32, {4, 4}), b.input("b", DType::F32, {4, 4})};
  const auto pick = [&] { return pool[static_cast<size_t>(rng.below(std::ssize(pool)))]; };
  for (int i = 0; i < 14; ++i) {
    ValueId made = -1;
    switch (rng.below(8)) {
      case 0:
        made = b.node("Relu", {pick()});
        break;
      case 1:
        made = b.node("Add", {pick(), pick()});
        break;
      case 2:
        made = b.node("Sub", {pick(), pick()});
        break;
      case 3:
        made = b.node("Transpose", {pick()});
        break;
      case 4:
        made = b.node("MatMul", {b.node("Sign", {pick()}), b.node("Sign", {pick()})});
        break;
      case 5:
        made = b.node("Reshape", {pick(), b.ints({4, 4})});
        break;
      case 6:
        made = b.node("Expand", {b.node("ReduceMax", {pick(), b.ints({1})}), b.ints({4, 4})});
        break;
      default:
        made = b.node("Max", {pick(), pick()});
    }
    pool.push_back(made);
  }
  b.output(pool.back(), "y0");
  b.output(b.node("Neg", {pool[pool.size() - 3]}), "y1");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return compact(*graph);
}

TEST(Fuse, RandomGraphsKeepTheirMeaning) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same_meaning(random_graph(seed));
  }
}

}  // namespace
}  // namespace tilewright::graph
