// QDQ models out: equal integers in the interpreter and in ONNX Runtime. QDQ models in: equal where
// scales are powers of two, within one step elsewhere.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tilewright/graph/ir/edit.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/quantize/quantize.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::graph {
namespace {

using ::testing::HasSubstr;

Graph exported(const QuantizedGraph& q) {
  auto result = to_qdq(q);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  const Status sound = verify(*result);
  EXPECT_TRUE(sound.has_value()) << to_string(sound.error());
  return *result;
}

QuantizedGraph read_back(const Graph& graph) {
  PassContext context;
  auto result = from_qdq(graph, context);
  EXPECT_TRUE(result.has_value()) << to_string(result.error());
  const Status sound = verify(result->graph);
  EXPECT_TRUE(sound.has_value()) << to_string(sound.error());
  return *result;
}

TEST(ToQdq, GivesTheSameIntegers) {
  for (const Graph& graph : {residual_net(), branching_net()}) {
    const QuantizedGraph q = quantized(graph);
    const Graph e = exported(q);
    EXPECT_EQ(count_ops(e)["ConvInteger"], 0);
    EXPECT_TRUE(is_qdq(e));
    EXPECT_FALSE(is_qdq(graph));
    const auto inputs = normal_inputs(q.graph, 41);
    const auto want = run_all(q.graph, inputs), got = run_all(e, inputs);
    std::map<std::string, size_t> index;
    for (size_t v = 0; v < e.values.size(); ++v) index[e.values[v].name] = v;
    int compared = 0;
    for (size_t v = 0; v < q.graph.values.size(); ++v) {
      if (q.graph.values[v].constant || q.scales[v].empty()) continue;
      const auto found = index.find(q.graph.values[v].name);
      ASSERT_NE(found, index.end()) << q.graph.values[v].name;
      EXPECT_TRUE(identical(want[v], got[found->second])) << q.graph.values[v].name;
      ++compared;
    }
    EXPECT_GE(compared, 10);
  }
}

TEST(FromQdq, ReadsItsOwnModelsBack) {
  for (const Graph& graph : {residual_net(), branching_net()}) {
    const QuantizedGraph q = quantized(graph);
    const QuantizedGraph back = read_back(exported(q));
    // Im2Col leaves as a convolution of the f32 input, which has no integers to come back to.
    EXPECT_EQ(count_ops(back.graph)["Conv"], count_ops(q.graph)["Im2Col"]);
    EXPECT_EQ(count_ops(back.graph)["ConvInteger"], count_ops(q.graph)["ConvInteger"]);
    for (const uint64_t seed : {51, 52}) {
      const auto inputs = normal_inputs(q.graph, seed);
      const auto want = run_graph(q.graph, inputs), got = run_graph(back.graph, inputs);
      ASSERT_TRUE(want && got);
      EXPECT_TRUE(identical((*want)[0], (*got)[0]));
    }
  }
}

/// Rounds a value to 8 bits and back, as a QDQ model says it.
struct QdqLayers : Layers {
  using Layers::Layers;
  ValueId rounded(ValueId x, double scale, DType dtype = DType::I8, int64_t zero = 0) {
    const ValueId s = b.constant("s", Array::scalar(DType::F32, scale));
    const ValueId z = b.constant("z", Array::scalar(dtype, static_cast<double>(zero)));
    return b.node("DequantizeLinear", {b.node("QuantizeLinear", {x, s, z}), s, z});
  }
  /// A weight of integers with one scale, or one per output channel.
  ValueId codes(const Shape& shape, const std::vector<double>& scales) {
    Array q(DType::I8, shape);
    for (int64_t i = 0; i < q.size(); ++i) q.set_int(i, rng.between(-127, 127));
    const Shape form = scales.size() == 1 ? Shape{} : Shape{shape[0]};
    return b.node(
        "DequantizeLinear",
        {b.constant("q", q), b.constant("s", Array::of(DType::F32, scales).reshaped(form)),
         b.constant("z", Array(DType::I8, form))},
        {{"axis", int64_t{0}}});
  }
};

Graph users_model() {
  QdqLayers l(3);
  const ValueId x = l.rounded(l.input({1, 5, 6, 6}), 0.0231);
  std::vector<double> scales;
  for (int o = 0; o < 6; ++o) scales.push_back(0.0011 * (1 + 0.2 * o));
  const ValueId bias = l.b.node(
      "DequantizeLinear",
      {l.b.constant("b", Array::of(DType::I32, std::vector<double>{100, -200, 300, 0, 50, -1})),
       l.b.constant("bs", Array::scalar(DType::F32, 0.0231 * 0.0011))});
  ValueId y =
      l.b.node("Conv", {x, l.codes({6, 5, 3, 3}, scales), bias}, {{"pads", Sizes{1, 1, 1, 1}}});
  y = l.rounded(l.relu(y), 0.0173);
  ValueId z = l.rounded(l.b.node("Conv", {y, l.codes({6, 6, 1, 1}, {0.0037})}), 0.0291);
  z = l.rounded(l.b.node("Add", {z, y}), 0.0311);
  z = l.rounded(l.b.node("MaxPool", {z}, {{"kernel_shape", Sizes{2, 2}}, {"strides", Sizes{2, 2}}}),
                0.0311);
  z = l.rounded(l.b.node("GlobalAveragePool", {z}), 0.0199);
  z = l.b.node("Gemm", {l.b.node("Flatten", {z}), l.codes({7, 6}, {0.0023})},
               {{"transB", int64_t{1}}});
  return l.finish(l.rounded(z, 0.0057));
}

TEST(FromQdq, UsersScalesStayWithinOneStep) {
  const Graph graph = users_model();
  const QuantizedGraph q = read_back(graph);
  EXPECT_EQ(count_ops(q.graph)["Conv"] + count_ops(q.graph)["Gemm"] + count_ops(q.graph)["Add"], 0);
  EXPECT_EQ(count_ops(q.graph)["QuantizeLinear"], 1);
  // Each layer on the integers its predecessors really gave, against the real formula.
  std::map<std::string, double> step;
  for (size_t v = 0; v < q.graph.values.size(); ++v)
    if (!q.scales[v].empty()) step[q.graph.values[v].name] = q.scales[v][0];
  int64_t wrong = 0, total = 0;
  for (uint64_t seed = 61; seed < 65; ++seed) {
    const auto inputs = normal_inputs(graph, seed);
    const auto got = run_all(q.graph, inputs);
    const auto real = run_all(exported(q), inputs);
    const Graph e = exported(q);
    for (size_t v = 0; v < e.values.size(); ++v) {
      if (e.values[v].constant || e.values[v].type.dtype != DType::I8) continue;
      for (size_t k = 0; k < q.graph.values.size(); ++k) {
        if (q.graph.values[k].name != e.values[v].name) continue;
        for (int64_t i = 0; i < got[k].size(); ++i) {
          const int64_t difference = std::abs(got[k].get_int(i) - real[v].get_int(i));
          EXPECT_LE(difference, 1) << e.values[v].name;
          wrong += difference != 0;
          ++total;
        }
      }
    }
    const auto want = run_graph(graph, inputs), out = run_graph(q.graph, inputs);
    ASSERT_TRUE(want && out);
    EXPECT_LE(max_difference((*want)[0], (*out)[0]), 0.0057 * 2.01);
  }
  EXPECT_LE(wrong * 100, total);
  EXPECT_GT(total, 1000);
}

TEST(FromQdq, UnsignedAround128IsSigned) {
  QdqLayers l(4);
  const ValueId x = l.rounded(l.input({1, 3, 4, 4}), 1.0 / 32, DType::U8, 128);
  const ValueId y = l.b.node("Conv", {x, l.codes({4, 3, 1, 1}, {1.0 / 128})});
  const Graph graph = l.finish(l.rounded(y, 1.0 / 16, DType::U8, 128));
  const QuantizedGraph q = read_back(graph);
  EXPECT_EQ(count_ops(q.graph)["ConvInteger"], 1);
  const auto inputs = normal_inputs(graph, 71);
  const auto want = run_graph(graph, inputs), got = run_graph(q.graph, inputs);
  ASSERT_TRUE(want && got);
  EXPECT_LE(max_difference((*want)[0], (*got)[0]), 1.0 / 16);
}

TEST(FromQdq, SaysWhatItCannotRead) {
  const auto problem = [](DType dtype, int64_t zero) {
    QdqLayers l(5);
    const ValueId x = l.rounded(l.input({1, 3, 4, 4}), 0.1, dtype, zero);
    const Graph graph = l.finish(l.rounded(l.relu(x), 0.1, dtype, zero));
    PassContext context;
    const auto result = from_qdq(graph, context);
    return result ? std::string("accepted") : to_string(result.error());
  };
  EXPECT_EQ(problem(DType::I8, 0), "accepted");
  EXPECT_THAT(problem(DType::U8, 0), HasSubstr("u8 with zero point 0"));
  EXPECT_THAT(problem(DType::I8, 3), HasSubstr("i8 with zero point 3"));
  EXPECT_THAT(problem(DType::I8, 3), HasSubstr("QuantizeLinear_2"));  // all of them are listed
}

TEST(FromQdq, ValuesReadBeforeRoundingStayExact) {
  QdqLayers l(6);
  const ValueId x = l.b.node("Exp", {l.input({1, 2, 3, 3})});
  const ValueId r = l.rounded(x, 0.5);
  const Graph graph = l.finish(l.b.node("Mul", {x, l.b.node("Sigmoid", {r})}));
  const QuantizedGraph q = read_back(graph);
  const auto inputs = normal_inputs(graph, 81);
  const auto want = run_graph(graph, inputs), got = run_graph(q.graph, inputs);
  ASSERT_TRUE(want && got);
  EXPECT_LE(max_difference((*want)[0], (*got)[0]), 1e-6);
}

// --- ONNX Runtime.

constexpr const char* kScript = R"(
import sys
try:
    import numpy, onnxruntime
except ImportError:
    sys.exit(77)
for folder in sys.argv[1:]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder + "/m.onnx", options, providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": numpy.load(folder + "/x.npy")})[0]
    numpy.save(folder + "/y.npy", y)
)";

TEST(ToQdqSlow, OnnxRuntimeAgrees) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("qdq_test_" + std::to_string(getpid()));
  struct Remove {
    fs::path path;
    ~Remove() { fs::remove_all(path); }
  } remove{root};
  const std::vector<Graph> graphs = {residual_net(), branching_net(), residual_net(2)};
  std::vector<Array> expected;
  std::string command;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const QuantizedGraph q = quantized(graphs[i]);
    Graph e = exported(q);
    // The integers themselves: what enters the last conversions.
    const auto inputs = normal_inputs(q.graph, 91 + i);
    const fs::path folder = root / std::to_string(i);
    fs::create_directories(folder);
    ASSERT_TRUE(save_onnx((folder / "m.onnx").string(), e));
    ASSERT_TRUE(write_npy((folder / "x.npy").string(), inputs[0]));
    const auto outputs = run_graph(q.graph, inputs);
    ASSERT_TRUE(outputs);
    expected.push_back((*outputs)[0]);
    command += " '" + folder.string() + "'";
  }
  std::ofstream(root / "run.py") << kScript;
  const fs::path own = fs::path(TILEWRIGHT_ROOT_DIR) / ".venv/bin/python";
  const std::string python = fs::exists(own) ? own.string() : "python3";
  const int status =
      std::system((python + " '" + (root / "run.py").string() + "'" + command).c_str());
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
    GTEST_SKIP() << "no onnxruntime in " << python;
  ASSERT_EQ(status, 0);
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto y = read_npy((root / std::to_string(i) / "y.npy").string());
    ASSERT_TRUE(y) << to_string(y.error());
    // One step of the last layer moves outputs by far more than Softmax and Sigmoid round.
    EXPECT_LT(max_difference(*y, expected[i]), 1e-6) << i;
  }
}

}  // namespace
}  // namespace tilewright::graph
