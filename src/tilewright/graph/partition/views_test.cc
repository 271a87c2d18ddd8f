#include "tilewright/graph/partition/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/memory.h"
#include "tilewright/graph/passes/passes.h"

namespace tilewright::graph {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;

ValueId relu_of_product(Builder& b, ValueId x, int64_t columns) {
  const int64_t rows = b.type(x).shape.back();
  return b.node("Relu",
                {b.node("MatMul", {x, b.constant("w", Array(DType::F32, {rows, columns}))})});
}

std::vector<bool> all(const Graph& graph) { return std::vector<bool>(graph.nodes.size(), true); }

int parts_among(const Graph& graph) {
  int count = 0;
  for (const Group& group : fuse(graph))
    count += group.kind == GroupKind::Alias &&
             parts_of(graph, graph.nodes[static_cast<size_t>(group.anchor)]).has_value();
  return count;
}

TEST(Views, NestedConcatenationsShareOneBlock) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 16});
  const auto one = [&](ValueId v) { return b.node("Unsqueeze", {v, b.ints({0})}); };
  const ValueId a = relu_of_product(b, x, 16), c = relu_of_product(b, a, 16);
  const ValueId first = b.node("Concat", {a, c}, {{"axis", int64_t{0}}});
  const ValueId d = relu_of_product(b, first, 16);
  const ValueId second = b.node("Concat", {first, d}, {{"axis", int64_t{0}}});
  b.output(one(b.node("ReduceSum", {second, b.ints({1})})), "y");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto groups = fuse(*graph);
  const MemoryPlan plan = plan_memory(*graph, groups);
  const auto offset = [&](ValueId id) { return plan.offset[static_cast<size_t>(id)]; };
  EXPECT_EQ(parts_among(*graph), 2);
  EXPECT_EQ(offset(first), offset(second));
  EXPECT_EQ(offset(a), offset(second));
  EXPECT_EQ(offset(c), offset(second) + 4 * 16 * 4);
  EXPECT_EQ(offset(d), offset(second) + 8 * 16 * 4);
  EXPECT_TRUE(verify_plan(*graph, groups, plan));
  MemoryPlan moved = plan;
  moved.offset[static_cast<size_t>(c)] += 64;
  EXPECT_FALSE(verify_plan(*graph, groups, moved));
}

TEST(Views, ConcatenationsThatBeginAlikeAreNested) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 16});
  const ValueId a = relu_of_product(b, x, 16), c = relu_of_product(b, a, 16);
  const ValueId first = b.node("Concat", {a, c}, {{"axis", int64_t{0}}});
  const ValueId d = relu_of_product(b, first, 16);
  const ValueId second = b.node("Concat", {a, c, d}, {{"axis", int64_t{-2}}});
  const ValueId beside = b.node("Concat", {a, c, a}, {{"axis", int64_t{1}}});
  b.output(b.node("ReduceSum", {second, b.ints({1})}), "y");
  b.output(b.node("ReduceSum", {beside, b.ints({1})}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(parts_among(*graph), 1);
  PassContext context;
  const auto nested = nest_concats(*graph, context);
  ASSERT_TRUE(nested);
  EXPECT_EQ(parts_among(*nested), 2);
  EXPECT_THAT(context.notes, ElementsAre("'Concat_2' begins with 'Concat'"));
  EXPECT_TRUE(verify(*nested));
  for (const Node& node : nested->nodes)
    if (node.outputs[0] == second) {
      EXPECT_THAT(node.inputs, ElementsAre(first, d));
    }
}

TEST(Views, AValueHasOnePlace) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 16});
  const ValueId a = relu_of_product(b, x, 16), c = relu_of_product(b, a, 16);
  const ValueId first = b.node("Concat", {a, c}, {{"axis", int64_t{0}}});
  const ValueId second = b.node("Concat", {c, a}, {{"axis", int64_t{0}}});
  const ValueId twice = b.node("Concat", {second, second}, {{"axis", int64_t{0}}});
  b.output(
      b.node("ReduceSum", {b.node("MatMul", {first, b.constant("w", Array(DType::F32, {16, 3}))}),
                           b.ints({0, 1})}),
      "y");
  b.output(b.node("ReduceSum", {twice, b.ints({0, 1})}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const Views views = find_views(*graph, all(*graph));
  EXPECT_EQ(views.part[static_cast<size_t>(a)].whole, first);
  EXPECT_EQ(views.part[static_cast<size_t>(c)].offset, 4 * 16 * 4);
  EXPECT_EQ(views.part[static_cast<size_t>(second)].whole, -1);
  EXPECT_EQ(parts_among(*graph), 1);
}

TEST(Views, WhatIsConcatenatedUnderAnotherShapeIsMadeInPlace) {
  for (const bool twice : {false, true}) {
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {4, 16});
    const ValueId a = relu_of_product(b, x, 16), c = relu_of_product(b, a, 32);
    const auto wide = [&](ValueId v) { return b.node("Reshape", {v, b.ints({-1, 32})}); };
    const ValueId again = twice ? wide(a) : c;
    const ValueId whole = b.node("Concat", {c, wide(wide(a)), again}, {{"axis", int64_t{0}}});
    b.output(b.node("ReduceSum", {whole, b.ints({0, 1})}), "y");
    const auto graph = b.finish();
    ASSERT_TRUE(graph) << to_string(graph.error());
    EXPECT_EQ(parts_among(*graph), 0);  // one value in two places
  }
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 16});
  const ValueId a = relu_of_product(b, x, 16), c = relu_of_product(b, a, 32);
  const ValueId flat = b.node("Reshape", {a, b.ints({64})});
  const ValueId wide = b.node("Reshape", {flat, b.ints({2, 32})});
  const ValueId whole = b.node("Concat", {c, wide}, {{"axis", int64_t{0}}});
  b.output(b.node("ReduceSum", {whole, b.ints({0, 1})}), "y");
  b.output(b.node("ReduceSum", {flat, b.ints({0})}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto groups = fuse(*graph);
  const MemoryPlan plan = plan_memory(*graph, groups);
  const auto offset = [&](ValueId id) { return plan.offset[static_cast<size_t>(id)]; };
  EXPECT_EQ(parts_among(*graph), 1);
  EXPECT_EQ(offset(c), offset(whole));
  for (const ValueId id : {a, flat, wide}) EXPECT_EQ(offset(id), offset(whole) + 4 * 32 * 4);
  EXPECT_TRUE(verify_plan(*graph, groups, plan));
  MemoryPlan moved = plan;
  moved.offset[static_cast<size_t>(a)] -= 64;
  EXPECT_FALSE(verify_plan(*graph, groups, moved));
}

TEST(Views, InputsOutputsAndOddPlacesAreCopied) {
  const auto count = [](auto make) {
    Builder b("net");
    const ValueId x = b.input("x", DType::F32, {4, 16});
    b.output(make(b, x), "y");
    const auto graph = b.finish();
    EXPECT_TRUE(graph) << to_string(graph.error());
    return parts_among(*graph);
  };
  const auto concat = [](Builder& b, ValueId a, ValueId c, int64_t axis) {
    return b.node("Concat", {a, c}, {{"axis", axis}});
  };
  const auto sum = [](Builder& b, ValueId v) { return b.node("ReduceSum", {v, b.ints({0, 1})}); };
  EXPECT_EQ(count([&](Builder& b, ValueId x) {
              return sum(b, concat(b, relu_of_product(b, x, 16), relu_of_product(b, x, 16), 0));
            }),
            1);
  EXPECT_EQ(count([&](Builder& b, ValueId x) {  // an input
              return sum(b, concat(b, x, relu_of_product(b, x, 16), 0));
            }),
            0);
  EXPECT_EQ(count([&](Builder& b, ValueId x) {  // an output
              return concat(b, relu_of_product(b, x, 16), relu_of_product(b, x, 16), 0);
            }),
            0);
  EXPECT_EQ(count([&](Builder& b, ValueId x) {  // rows that alternate
              return sum(b, concat(b, relu_of_product(b, x, 16), relu_of_product(b, x, 16), 1));
            }),
            0);
  EXPECT_EQ(count([&](Builder& b, ValueId x) {  // 4 x 3 floats are 48 bytes
              return sum(b, concat(b, relu_of_product(b, x, 3), relu_of_product(b, x, 3), 0));
            }),
            0);
}

TEST(Views, PiecesOfASplitAreReadInPlace) {
  Builder b("net");
  const ValueId x = b.input("x", DType::F32, {4, 16});
  const ValueId a = relu_of_product(b, x, 16);
  const std::vector<ValueId> halves =
      b.nodes("Split", {a, b.ints({1, 3})}, {{"axis", int64_t{0}}}, 2);
  b.output(b.node("ReduceSum", {relu_of_product(b, halves[1], 5), b.ints({0, 1})}), "y");
  b.output(b.node("ReduceSum", {relu_of_product(b, halves[0], 5), b.ints({0, 1})}), "z");
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << to_string(graph.error());
  const auto groups = fuse(*graph);
  const MemoryPlan plan = plan_memory(*graph, groups);
  EXPECT_EQ(parts_among(*graph), 1);
  EXPECT_EQ(plan.offset[static_cast<size_t>(halves[1])],
            plan.offset[static_cast<size_t>(a)] + 16 * 4);
  EXPECT_TRUE(verify_plan(*graph, groups, plan));
  const auto parts = parts_of(*graph, graph->nodes[2]);
  ASSERT_TRUE(parts);
  EXPECT_THAT(*parts, ElementsAre(Field(&SubRange::offset, 0), Field(&SubRange::offset, 64)));
  EXPECT_THAT(*parts, Each(Field(&SubRange::whole, a)));
}

}  // namespace
}  // namespace tilewright::graph
