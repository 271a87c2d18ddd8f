// Convolutions that other passes turn into plain two-dimensional ones: the interpreter must give
// the same for the graph before and after.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

/// The default passes; blocks of 4 channels.
Graph transform(const Graph& graph, double tolerance, int64_t winograd = 0, int64_t plain = 0,
                int64_t parts = 1, bool phases_together = false) {
  PassContext context;
  context.phases_together = phases_together;
  context.evaluate = interp_evaluate;
  context.vector_bytes = 16;
  context.verify_each = true;
  if (winograd > 0) context.winograd_tile = [=](const tensor::Conv2dShape&) { return winograd; };
  if (parts > 1)
    context.direct_form = [=](const tensor::Conv2dShape&) {
      return tensor::DirectForm{parts, true};
    };
  if (plain > 0) context.plain_winograd_tile = [=](const tensor::Conv2dShape&) { return plain; };
  auto result = run_passes(graph, default_passes(), context);
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return graph;
  }
  const std::vector<Array> inputs = random_inputs(graph, 5);
  const auto expected = run_graph(graph, inputs), got = run_graph(result->graph, inputs);
  EXPECT_TRUE(expected) << to_string(expected.error());
  EXPECT_TRUE(got) << (got ? "" : to_string(got.error()));
  for (size_t i = 0; expected && got && i < got->size(); ++i)
    EXPECT_LE(max_difference((*got)[i], (*expected)[i]), tolerance) << print(result->graph);
  return result->graph;
}

struct Window {
  const char* op;
  Ints x, w;  ///< shapes
  std::map<std::string, tensor::AttrValue> attrs;
  const char* expected;  ///< operator that must be there afterwards
  bool bias = true;
};

Graph one_window(const Window& t) {
  Rng rng(3);
  Builder b("net");
  const bool transposed = std::string(t.op) == "ConvTranspose";
  const auto group = t.attrs.find("group");
  const int64_t groups = group == t.attrs.end() ? 1 : std::get<int64_t>(group->second);
  const int64_t filters = transposed ? t.w[1] * groups : t.w[0];
  std::vector<ValueId> inputs = {b.input("x", DType::F32, t.x),
                                 b.constant("w", random_array(rng, DType::F32, t.w, 2))};
  if (t.bias) inputs.push_back(b.constant("b", random_array(rng, DType::F32, {filters}, 3)));
  b.output(b.node("Relu", {b.node(t.op, inputs, AttrList(t.attrs.begin(), t.attrs.end()))}), "y");
  return finish(b);
}

const std::vector<Window> kWindows = {
    // Stride 1: the kernel turned round.
    {"ConvTranspose", {1, 8, 5, 6}, {8, 8, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, "ConvBlocked"},
    {"ConvTranspose", {2, 8, 9}, {8, 4, 5}, {{"pads", Ints{1, 2}}}, "ConvBlocked"},
    {"ConvTranspose", {1, 8, 3, 4, 5}, {8, 4, 1, 2, 3}, {}, "ConvBlocked"},
    {"ConvTranspose",
     {1, 8, 6, 6},
     {8, 4, 3, 2},
     {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 0, 2, 1}}},
     "ConvBlocked"},
    // Phases as convolutions of their own; one phase where more is cut off than the kernel adds.
    {"ConvTranspose", {1, 8, 5, 4}, {8, 4, 3, 3}, {{"pads", Ints{3, 3, 0, 0}}}, "PhaseConvBlocked"},
    {"ConvTranspose", {1, 8, 5, 4}, {8, 8, 2, 2}, {{"strides", Ints{2, 2}}}, "PhaseConvBlocked"},
    {"ConvTranspose",
     {2, 8, 4, 5},
     {8, 6, 4, 4},
     {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
     "PhaseConvBlocked"},
    {"ConvTranspose",
     {1, 5, 4, 5},
     {5, 8, 3, 3},
     {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 2}}},
     "PhasesToSpace"},
    // More is cut off than a phase has taps.
    {"ConvTranspose",
     {1, 8, 5, 4},
     {8, 8, 3, 3},
     {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 0, 0}}},
     "PhaseConvBlocked"},
    {"ConvTranspose",
     {1, 4, 7},
     {4, 4, 3},
     {{"strides", Ints{2}}, {"output_padding", Ints{1}}, {"pads", Ints{1, 1}}},
     "PhaseConvBlocked",
     false},
    {"ConvTranspose",
     {1, 4, 2, 3, 2},
     {4, 4, 3, 4, 2},
     {{"strides", Ints{2, 2, 1}}, {"pads", Ints{1, 1, 0, 1, 1, 0}}},
     "PhaseConvBlocked"},
    // Phases as filters of one convolution.
    {"ConvTranspose",
     {1, 8, 4, 5},
     {8, 1, 7, 7},
     {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}},
     "PhasesToSpace"},
    {"ConvTranspose",
     {1, 8, 5},
     {8, 2, 4},
     {{"strides", Ints{2}}, {"pads", Ints{1, 1}}},
     "PhasesToSpace"},
    {"ConvTranspose",
     {1, 8, 3, 2, 3},
     {8, 1, 3, 3, 3},
     {{"strides", Ints{2, 2, 2}}, {"pads", Ints{1, 1, 1, 1, 1, 1}}},
     "PhasesToSpace"},
    {"ConvTranspose", {1, 8, 4, 4}, {8, 1, 2, 2}, {{"strides", Ints{3, 3}}}, "PhasesToSpace"},
    {"ConvTranspose",
     {1, 8, 37},
     {8, 1, 4},
     {{"strides", Ints{2}}, {"pads", Ints{1, 2}}},
     "PhasesToSpace"},
    // Convolutions along one and three axes; few channels are read in place.
    {"Conv", {1, 8, 11}, {8, 8, 3}, {{"pads", Ints{1, 1}}, {"strides", Ints{2}}}, "ConvBlocked"},
    {"Conv",
     {2, 8, 4, 5, 6},
     {6, 8, 3, 3, 3},
     {{"pads", Ints{1, 1, 1, 1, 1, 1}}, {"strides", Ints{1, 2, 1}}},
     "ConvBlocked"},
    {"Conv", {1, 3, 9, 8}, {8, 3, 5, 5}, {{"pads", Ints{2, 2, 2, 2}}}, "ConvBlocked"},
    {"Conv", {1, 8, 3, 4, 5}, {8, 1, 3, 3, 3}, {{"group", int64_t{8}}}, "DepthwiseConvBlocked"},
    {"Conv", {1, 8, 7}, {8, 1, 3}, {{"group", int64_t{8}}}, "DepthwiseConvBlocked"},
};

TEST(WindowForms, KeepTheirMeaning) {
  for (const Window& t : kWindows) {
    SCOPED_TRACE(fmt::format("{} {} {} {}", t.op, to_string(t.x), to_string(t.w), t.expected));
    const Graph after = transform(one_window(t), 0);
    EXPECT_EQ(count(after, t.expected), 1) << print(after);
    EXPECT_EQ(count(after, "ConvTranspose"), 0) << print(after);
  }
}

TEST(WindowForms, PaddingIsLeftOutWhereWeightsAreFinite) {
  for (const double weight : {1.0, double{INFINITY}})
    for (const int64_t parts : {1, 2}) {
      Rng rng(3);
      Builder b("net");
      Array w = random_array(rng, DType::F32, {8, 8, 3, 3}, 2);
      w.set(40, weight);
      const Ints four = {4, 4, 4, 4};
      b.output(b.node("Conv", {b.input("x", DType::F32, {1, 8, 6, 7}), b.constant("w", w)},
                      {{"pads", four}, {"dilations", Ints{4, 4}}}),
               "y");
      const Graph graph = finish(b);
      PassContext context;
      context.evaluate = interp_evaluate;
      context.vector_bytes = 16;
      context.direct_form = [&](const tensor::Conv2dShape& conv) {
        EXPECT_EQ(conv.pad_h, 4);
        EXPECT_EQ(conv.input_w, 7);
        return tensor::DirectForm{parts, false, true};
      };
      const auto made = run_passes(graph, default_passes(), context);
      ASSERT_TRUE(made) << to_string(made.error());
      const bool finite = std::isfinite(weight);
      for (const Node& node : made->graph.nodes)
        if (node.op == "ConvBlocked") {
          EXPECT_EQ(node.attrs.get_int("skip_padding", 0), finite ? 1 : 0);
        }
      EXPECT_EQ(count(made->graph, "ConvBlocked"), finite ? parts : 1);
      if (!finite) continue;
      const std::vector<Array> inputs = random_inputs(graph, 5);
      const auto want = run_graph(graph, inputs), got = run_graph(made->graph, inputs);
      ASSERT_TRUE(want && got);
      EXPECT_LE(max_difference((*got)[0], (*want)[0]), 1e-5);
    }
}

TEST(WindowForms, PhasesMultiplyTheTapsTheyHave) {
  for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 1, 1, 1}, Ints{1, 0, 0, 1}}) {
    const Graph after = transform(one_window({"ConvTranspose",
                                              {2, 8, 5, 6},
                                              {8, 8, 3, 3},
                                              {{"strides", Ints{2, 2}}, {"pads", pads}},
                                              ""}),
                                  0);
    EXPECT_EQ(count(after, "ConvBlocked"), 4) << print(after);
    EXPECT_EQ(count(after, "ToBlocked") + count(after, "FromBlocked"), 1) << print(after);
    int64_t weights = 0;
    for (const Node& node : after.nodes)
      if (node.op == "ConvBlocked")
        weights += element_count(after.values[static_cast<size_t>(node.inputs[1])].type.shape);
    EXPECT_EQ(weights, 8 * 8 * 9);
  }
}

TEST(WindowForms, PhasesAreFiltersOfOneConvolutionWhereTheTargetWantsThat) {
  for (const Ints& weight : {Ints{8, 8, 4, 4}, Ints{8, 6, 3, 3}}) {
    const Graph after = transform(one_window({"ConvTranspose",
                                              {2, 8, 5, 6},
                                              weight,
                                              {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
                                              ""}),
                                  1e-5, 0, 0, 1, true);
    EXPECT_EQ(count(after, "PhasesToSpace"), 1) << print(after);
    EXPECT_EQ(count(after, "ConvTranspose"), 0) << print(after);
  }
}

TEST(WindowForms, WhatHasNoOtherFormStays) {
  for (const Window& t : std::vector<Window>{{"ConvTranspose",
                                              {1, 8, 4, 4},
                                              {8, 4, 3, 3},
                                              {{"strides", Ints{2, 2}}, {"dilations", Ints{2, 2}}},
                                              ""},
                                             {"ConvTranspose",
                                              {1, 8, 4, 4},
                                              {8, 2, 3, 3},
                                              {{"strides", Ints{2, 2}}, {"group", int64_t{2}}},
                                              ""}})
    EXPECT_EQ(count(transform(one_window(t), 0), "ConvTranspose"), 1) << to_string(t.w);
}

TEST(WindowForms, WinogradTakesGroupsDilationAndDepth) {
  const std::vector<Window> rows = {
      {"Conv",
       {2, 8, 6, 7},
       {16, 4, 3, 3},
       {{"group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}},
       "WinogradConvBlocked"},
      {"Conv",
       {1, 8, 9, 10},
       {8, 8, 3, 3},
       {{"dilations", Ints{2, 2}}, {"pads", Ints{1, 2, 1, 2}}},
       "SpaceToBatch"},
      {"Conv", {2, 4, 11, 12}, {6, 4, 3, 3}, {{"dilations", Ints{1, 3}}}, "BatchToSpace"},
      // Phases of one pixel and of two.
      {"Conv",
       {1, 8, 5, 6},
       {8, 8, 3, 3},
       {{"dilations", Ints{4, 4}}, {"pads", Ints{4, 4, 4, 4}}},
       "BatchToSpace"},
      {"Conv",
       {1, 8, 5, 6, 7},
       {6, 8, 3, 3, 3},
       {{"pads", Ints{1, 1, 1, 1, 1, 1}}},
       "DepthToChannels"},
      {"Conv",
       {2, 4, 7, 4, 5},
       {8, 4, 2, 3, 3},
       {{"strides", Ints{2, 1, 1}}, {"dilations", Ints{3, 1, 1}}, {"pads", Ints{1, 0, 1, 2, 1, 0}}},
       "BatchToDepth"},
      {"Conv", {1, 8, 5, 9}, {8, 8, 1, 3}, {{"pads", Ints{0, 1, 0, 1}}}, "WinogradConvBlocked"},
      {"Conv", {1, 4, 9, 5}, {8, 4, 7, 1}, {{"pads", Ints{3, 0, 3, 0}}}, "WinogradConvBlocked"},
      // One axis; a row of more tiles than it needs.
      {"Conv", {2, 8, 11}, {8, 8, 3}, {{"pads", Ints{1, 1}}}, "WinogradConvBlocked"},
      {"Conv", {1, 8, 71}, {6, 8, 5}, {{"pads", Ints{2, 2}}}, "WinogradConvBlocked"},
      {"Conv",
       {1, 8, 15},
       {8, 4, 3},
       {{"group", int64_t{2}}, {"pads", Ints{0, 2}}},
       "WinogradConvBlocked"},
      {"Conv", {1, 4, 20}, {8, 4, 3}, {{"dilations", Ints{2}}}, "BatchToSpace"},
      {"Conv",
       {1, 8, 9, 10},
       {8, 8, 5, 5},
       {{"dilations", Ints{1, 2}}, {"pads", Ints{2, 4, 2, 4}}},
       "SpaceToBatch"},
      {"Conv",
       {1, 8, 5, 6, 7},
       {6, 8, 2, 3, 1},
       {{"pads", Ints{1, 1, 0, 1, 1, 0}}},
       "DepthToChannels"}};
  for (const Window& t : rows) {
    SCOPED_TRACE(fmt::format("{} {}", to_string(t.x), to_string(t.w)));
    const Graph after = transform(one_window(t), 2e-4, 2);
    EXPECT_EQ(count(after, "WinogradConvBlocked"), 1) << print(after);
    EXPECT_EQ(count(after, t.expected), 1) << print(after);
  }
}

TEST(WindowForms, DeepConvolutionsAreSumsOverGroupsOfChannels) {
  // 19 channels are five blocks, the last one filled up.
  for (const Window& t :
       std::vector<Window>{{"Conv",
                            {1, 19, 9, 8},
                            {6, 19, 3, 3},
                            {{"dilations", Ints{3, 2}}, {"pads", Ints{3, 2, 3, 2}}},
                            ""},
                           {"Conv", {1, 20, 5, 5}, {8, 20, 3, 1}, {}, "", false}}) {
    const Graph after = transform(one_window(t), 1e-4, 0, 0, 5);
    EXPECT_EQ(count(after, "ConvBlocked"), 5) << print(after);
    EXPECT_EQ(count(after, "Add"), 4) << print(after);
  }
  // Windows that step are whole, and so are those whose blocks do not divide.
  EXPECT_EQ(
      count(transform(
                one_window({"Conv", {1, 20, 9, 8}, {8, 20, 3, 3}, {{"strides", Ints{2, 2}}}, ""}),
                1e-4, 0, 0, 5),
            "ConvBlocked"),
      1);
  EXPECT_EQ(
      count(transform(one_window({"Conv", {1, 16, 9, 8}, {8, 16, 3, 3}, {}, ""}), 1e-4, 0, 0, 3),
            "ConvBlocked"),
      1);
}

TEST(WindowForms, GroupsOfFewChannelsAreJoined) {
  const auto grouped = [](int64_t groups) {
    return one_window({"Conv",
                       {1, 2 * groups, 5, 6},
                       {2 * groups, 2, 3, 3},
                       {{"group", groups}, {"pads", Ints{1, 1, 1, 1}}},
                       ""});
  };
  EXPECT_EQ(count(transform(grouped(4), 1e-4), "ConvBlocked"), 1);
  // Three groups do not come in pairs.
  EXPECT_EQ(count(transform(grouped(3), 1e-4), "Conv"), 1);
}

TEST(WindowForms, WhatFollowsWinogradRunsInItsEpilogue) {
  for (const Window& t :
       std::vector<Window>{{"Conv", {1, 8, 15}, {8, 8, 3}, {}, ""},
                           {"Conv", {1, 8, 5, 5}, {8, 4, 3, 3}, {{"group", int64_t{2}}}, ""}}) {
    const Graph after = transform(one_window(t), 2e-4, 2);
    const auto relu = std::find_if(after.nodes.begin(), after.nodes.end(),
                                   [](const Node& node) { return node.op == "Relu"; });
    ASSERT_NE(relu, after.nodes.end());
    const bool fused = std::any_of(after.nodes.begin(), after.nodes.end(), [&](const Node& node) {
      return node.op == "WinogradConvBlocked" && node.outputs[0] == relu->inputs[0];
    });
    EXPECT_TRUE(fused) << print(after);
  }
}

TEST(WindowForms, WinogradOnPlainChannels) {
  const Window square = {"Conv", {2, 5, 6, 7}, {8, 5, 3, 3}, {{"pads", Ints{1, 0, 1, 1}}}, ""};
  for (const int64_t m : {2, 4}) {
    const Graph after = transform(one_window(square), 2e-4, 0, m);
    EXPECT_EQ(count(after, "WinogradConv"), 1) << print(after);
    EXPECT_EQ(count(after, "PackWinogradWeight"), 0) << print(after);
  }
  for (const Window& t :
       std::vector<Window>{{"Conv", {1, 8, 6, 7}, {16, 4, 3, 3}, {{"group", int64_t{2}}}, ""},
                           {"Conv", {1, 8, 9, 9}, {8, 8, 3, 3}, {{"dilations", Ints{2, 2}}}, ""},
                           {"Conv", {1, 8, 9, 9}, {8, 8, 3, 3}, {{"strides", Ints{2, 2}}}, ""},
                           {"Conv", {1, 8, 9, 9}, {8, 8, 1, 3}, {}, ""}})
    EXPECT_EQ(count(transform(one_window(t), 2e-4, 0, 2), "WinogradConv"), 0) << to_string(t.w);
}

TEST(Bilinear, BecomesProductsWithLittleBetween) {
  struct Case {
    Shape w;        ///< out, in1, in2
    Shape between;  ///< the largest value that is made on the way; batch 3
  };
  const std::vector<Case> cases = {
      {{4, 5, 7}, {3, 4, 5}}, {{4, 7, 5}, {3, 4, 5}}, {{9, 3, 2}, {3, 3, 2}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.w));
    Rng rng(6);
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {3, c.w[1]});
    const ValueId y = b.input("y", DType::F32, {3, c.w[2]});
    const ValueId w = b.constant("w", random_array(rng, DType::F32, c.w, 2));
    b.output(b.node("Bilinear", {x, w, y}, {}, "bilinear", "tilewright"), "z");
    const Graph after = transform(finish(b), 0);
    EXPECT_EQ(count(after, "Bilinear"), 0) << print(after);
    EXPECT_EQ(count(after, "GemmPacked"), 1) << print(after);
    int64_t largest = 0;
    for (const Node& node : after.nodes)
      largest = std::max(
          largest, element_count(after.values[static_cast<size_t>(node.outputs[0])].type.shape));
    EXPECT_EQ(largest, std::max(element_count(c.between), 3 * c.w[0])) << print(after);
  }
}

TEST(Bilinear, IsFoundInAnEinsum) {
  struct Case {
    const char* equation;
    Shape w;
    bool found;
  };
  const std::vector<Case> cases = {
      {"bi,oij,bj->bo", {4, 5, 7}, true},  {"nk, kmj ,nj -> nm", {5, 4, 7}, true},
      {"bi,jio,bj->bo", {7, 5, 4}, true},  {"bi,oij,bj->ob", {4, 5, 7}, false},
      {"bi,oij,bj->bi", {4, 5, 7}, false}, {"bi,oij,cj->bo", {4, 5, 7}, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.equation);
    Rng rng(6);
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {3, 5}), y = b.input("y", DType::F32, {3, 7});
    const ValueId w = b.constant("w", random_array(rng, DType::F32, c.w, 2));
    b.output(b.node("Einsum", {x, w, y}, {{"equation", std::string(c.equation)}}), "z");
    EXPECT_EQ(count(transform(finish(b), 0), "Einsum"), c.found ? 0 : 1);
  }
}

}  // namespace
}  // namespace tilewright::graph
