// Zero points behind the sums: the same numbers, and products of bytes alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

struct Case {
  bool conv = true;
  DType x = DType::U8, w = DType::I8;
  /// Of x and of w: elements (0: absent) and the first of them.
  std::pair<int64_t, int64_t> x_zero = {1, 5}, w_zero = {0, 0};
  bool known = true;  ///< weights and zero points
  int64_t groups = 1;
  int64_t spread = 90;  ///< of weights around their zero point
};

Graph graph_of(const Case& c) {
  Builder b("product");
  Rng rng(3);
  const auto given = [&](const std::string& name, Array array) {
    return c.known ? b.constant(name, std::move(array))
                   : b.input(name, array.dtype(), array.shape());
  };
  const auto zero = [&](const std::string& name, DType dtype, std::pair<int64_t, int64_t> point) {
    if (point.first == 0) return ValueId{-1};
    Array array(dtype, point.first == 1 ? Shape{} : Shape{point.first});
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, point.second + i);
    return given(name, std::move(array));
  };
  Array w(c.w, c.conv ? Shape{4, 6 / c.groups, 3, 3} : Shape{8, 4});
  const int64_t centre = c.w == DType::U8 ? 128 : 0;
  for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, rng.between(-c.spread, c.spread) + centre);
  const ValueId x = b.input("x", c.x, c.conv ? Shape{1, 6, 5, 4} : Shape{3, 8});
  const std::vector<ValueId> inputs = {x, given("w", w), zero("x_zero", c.x, c.x_zero),
                                       zero("w_zero", c.w, c.w_zero)};
  AttrList attrs;
  if (c.conv) attrs = {{"pads", Ints{1, 1, 1, 1}}, {"group", c.groups}};
  b.output(b.node(c.conv ? "ConvInteger" : "MatMulInteger", inputs, attrs), "y");
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *graph;
}

PassContext context() {
  PassContext context;
  context.zero_points_apart = context.verify_each = true;
  context.dot_depth = [](DType, DType) -> int64_t { return 1; };
  return context;
}

/// Products whose operands have zero points still.
int64_t with_points(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes)
    count +=
        node.domain.empty() && node.op.ends_with("Integer") &&
        std::any_of(node.inputs.begin() + 2, node.inputs.end(), [](ValueId id) { return id >= 0; });
  return count;
}

Graph apart(const Graph& graph) {
  PassContext mine = context();
  auto result = run_passes(graph, "zero_points", mine);
  EXPECT_TRUE(result) << to_string(result.error());
  return result->graph;
}

/// All bytes of both types, so that sums are what bytes of the other type would not give.
std::vector<Array> inputs_of(const Graph& graph) {
  Rng rng(8);
  std::vector<Array> inputs;
  for (const ValueId id : graph.inputs) {
    const tensor::TensorType& type = graph.values[static_cast<size_t>(id)].type;
    inputs.emplace_back(type.dtype, type.shape);
    const int64_t least = type.dtype == DType::I8 ? -128 : 0;
    for (int64_t i = 0; i < inputs.back().size(); ++i)
      inputs.back().set_int(i, rng.between(least, least + 255));
  }
  return inputs;
}

TEST(ZeroPoints, KeepTheSums) {
  for (const bool conv : {true, false})
    for (const bool known : {true, false})
      for (const DType x : {DType::U8, DType::I8})
        for (const DType w : {DType::U8, DType::I8})
          for (const int64_t x_points : {0, 1})
            for (const int64_t w_points : {0, 1}) {
              Case c{conv, x, w, {x_points, 100}, {w_points, 100}, known};
              const Graph graph = graph_of(c), made = apart(graph);
              EXPECT_EQ(with_points(made), 0) << print(made);
              const auto want = run_graph(graph, inputs_of(graph)),
                         got = run_graph(made, inputs_of(graph));
              ASSERT_TRUE(want && got) << to_string(got ? want.error() : got.error());
              EXPECT_EQ(max_difference((*want)[0], (*got)[0]), 0) << print(made);
            }
}

TEST(ZeroPoints, KnownWeightsTakeTheirOwn) {
  // 128 - 120 - 90 .. 128 - 120 + 90 are signed bytes, 0 .. 255 less 120 are not.
  Case c{true, DType::U8, DType::U8, {1, 100}, {1, 120}};
  const Graph near = apart(graph_of(c));
  EXPECT_EQ(count(near, "ConvBytes"), 1) << print(near);
  c.spread = 127;
  const Graph far = apart(graph_of(c));
  EXPECT_EQ(count(far, "ConvBytes"), 2) << print(far);
  // One per column, and groups, where bytes hold the difference.
  c = {true, DType::U8, DType::I8, {1, 100}, {4, 3}, true, 2};
  const Graph graph = graph_of(c), made = apart(graph);
  EXPECT_EQ(count(made, "ConvBytes"), 1) << print(made);
  const auto want = run_graph(graph, inputs_of(graph)), got = run_graph(made, inputs_of(graph));
  ASSERT_TRUE(want && got);
  EXPECT_EQ(max_difference((*want)[0], (*got)[0]), 0) << print(made);
}

TEST(ZeroPoints, StayWhereTheyAreNotOneNumber) {
  for (const Case& c : {Case{false, DType::U8, DType::I8, {3, 5}, {0, 0}},
                        Case{true, DType::U8, DType::I8, {1, 5}, {4, 3}, false},
                        Case{true, DType::U8, DType::I8, {1, 5}, {1, 100}, true, 2, 127}})
    EXPECT_EQ(with_points(apart(graph_of(c))), 1);
  const Graph graph = graph_of({});
  PassContext none = context();
  none.zero_points_apart = false;
  EXPECT_EQ(with_points(*zero_points(graph, none)), 1);
  none = context();
  none.dot_depth = [](DType, DType) -> int64_t { return 0; };
  EXPECT_EQ(with_points(*zero_points(graph, none)), 1);
}

}  // namespace
}  // namespace tilewright::graph
