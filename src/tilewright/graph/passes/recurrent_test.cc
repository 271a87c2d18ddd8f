// Recurrences with blocked weights: the interpreter must give the same for the graph before and
// after.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/passes/passes.h"
#include "tilewright/graph/testing/support.h"

namespace tilewright::graph {
namespace {

/// The default passes; blocks of 4 elements.
Graph with_blocks(const Graph& graph) {
  PassContext context;
  context.evaluate = interp_evaluate;
  context.vector_bytes = 16;
  context.verify_each = true;
  auto result = run_passes(graph, default_passes(), context);
  EXPECT_TRUE(result) << (result ? "" : to_string(result.error()));
  if (!result) return graph;
  const std::vector<Array> inputs = random_inputs(graph, 5);
  const auto expected = run_graph(graph, inputs), got = run_graph(result->graph, inputs);
  EXPECT_TRUE(expected && got) << (got ? "" : to_string(got.error()));
  for (size_t i = 0; expected && got && i < got->size(); ++i)
    EXPECT_LE(max_difference((*got)[i], (*expected)[i]), 1e-5) << print(result->graph);
  return result->graph;
}

struct Recurrent {
  const char* op;
  int64_t steps, batch, input, hidden;
  std::map<std::string, tensor::AttrValue> attrs;
  bool bias, state;
  int outputs;
};

Graph one_recurrent(const Recurrent& t) {
  Rng rng(4);
  Builder b("net");
  const std::string op = t.op;
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const auto direction = t.attrs.find("direction");
  const bool both =
      direction != t.attrs.end() && std::get<std::string>(direction->second) == "bidirectional";
  const int64_t directions = both ? 2 : 1;
  const auto layout = t.attrs.find("layout");
  const bool batch_first = layout != t.attrs.end() && std::get<int64_t>(layout->second) != 0;
  const auto fractions = [&](const Shape& shape) {
    Array a = random_array(rng, DType::F32, shape, 4);
    for (int64_t i = 0; i < a.size(); ++i) a.set(i, a.get(i) / 8);
    return a;
  };
  std::vector<ValueId> inputs = {
      b.input("x", DType::F32,
              batch_first ? Shape{t.batch, t.steps, t.input} : Shape{t.steps, t.batch, t.input}),
      b.constant("w", fractions({directions, gates * t.hidden, t.input})),
      b.constant("r", fractions({directions, gates * t.hidden, t.hidden}))};
  inputs.push_back(t.bias ? b.constant("b", fractions({directions, 2 * gates * t.hidden})) : -1);
  inputs.push_back(-1);
  const Shape state =
      batch_first ? Shape{t.batch, directions, t.hidden} : Shape{directions, t.batch, t.hidden};
  if (t.state) inputs.push_back(b.input("h0", DType::F32, state));
  if (t.state && op == "LSTM") inputs.push_back(b.input("c0", DType::F32, state));
  auto attrs = t.attrs;
  attrs["hidden_size"] = t.hidden;
  const auto made = b.nodes(op, inputs, AttrList(attrs.begin(), attrs.end()), t.outputs);
  for (size_t i = 0; i < made.size(); ++i) b.output(made[i], fmt::format("y{}", i));
  return finish(b);
}

TEST(Recurrences, KeepTheirMeaningInBlocks) {
  const int64_t one = 1;
  const std::vector<Recurrent> rows = {
      {"LSTM", 3, 1, 5, 10, {}, true, true, 3},
      {"LSTM", 2, 4, 3, 8, {{"layout", one}, {"clip", 0.75}}, true, false, 3},
      {"LSTM",
       4,
       7,
       3,
       5,
       {{"direction", std::string("reverse")}, {"input_forget", one}},
       false,
       true,
       2},
      {"GRU", 3, 1, 4, 9, {{"linear_before_reset", one}}, true, true, 2},
      {"GRU", 2, 3, 4, 4, {{"linear_before_reset", one}, {"layout", one}}, false, false, 1},
      {"RNN", 5, 2, 3, 6, {{"activations", std::vector<std::string>{"Relu"}}}, true, true, 2}};
  for (const Recurrent& t : rows) {
    SCOPED_TRACE(fmt::format("{} {} {}", t.op, t.batch, t.hidden));
    const Graph after = with_blocks(one_recurrent(t));
    EXPECT_EQ(count(after, "RecurrentBlocked"), 1) << print(after);
    EXPECT_EQ(count(after, "GemmPacked"), 1) << print(after);
  }
}

TEST(Recurrences, BothDirectionsAreOneEach) {
  const int64_t one = 1;
  const std::string both = "bidirectional";
  const std::vector<std::string> four = {"Sigmoid", "Tanh", "HardSigmoid", "Relu"};
  const std::vector<Recurrent> rows = {
      {"LSTM", 3, 2, 5, 10, {{"direction", both}}, true, true, 3},
      {"LSTM", 4, 1, 3, 8, {{"direction", both}}, false, false, 1},
      {"GRU",
       3,
       2,
       4,
       9,
       {{"direction", both}, {"linear_before_reset", one}, {"activations", four}, {"layout", one}},
       true,
       true,
       2},
      {"RNN", 5, 1, 3, 6, {{"direction", both}}, true, false, 2}};
  for (const Recurrent& t : rows) {
    SCOPED_TRACE(fmt::format("{} {} {}", t.op, t.batch, t.hidden));
    const Graph after = with_blocks(one_recurrent(t));
    EXPECT_EQ(count(after, "RecurrentBlocked"), 2) << print(after);
    EXPECT_EQ(count(after, "Concat"), t.outputs) << print(after);
  }
}

TEST(Recurrences, WithoutABlockedFormStay) {
  for (const Recurrent& t : std::vector<Recurrent>{
           {"GRU", 2, 1, 4, 8, {}, true, true, 2},    // the reset comes before the product
           {"LSTM", 2, 1, 4, 3, {}, true, true, 3}})  // smaller than a block
    EXPECT_EQ(count(with_blocks(one_recurrent(t)), t.op), 1);
}

}  // namespace
}  // namespace tilewright::graph
