// Values that come at run time and would lead an operator outside its memory, or that it was not
// made for: a compiled program refuses them or computes what the interpreter computes, and goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tilewright/base/rng.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/graph/testing/models.h"
#include "tilewright/tensor/value_limits.h"

namespace tilewright::driver {
namespace {

using graph::Ints;
using ::testing::HasSubstr;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int kF32 = 1, kI32 = 6, kI64 = 7, kBool = 9;

/// A model in the making, and a value for each of its inputs.
struct Trial {
  graph::onnx::ModelProto model = graph::empty_model();
  std::map<std::string, Array> values;

  std::string input(const std::string& name, int type, const Array& value) {
    graph::add_input(model, name, value.shape(), type);
    values[name] = value;
    return name;
  }
  std::string weight(const std::string& name, const Array& value) {
    graph::add_weight(model, name, value);
    return name;
  }
  /// A node whose first result, `NAME.y`, is an output of the model.
  graph::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::string& name = "") {
    const std::string out = (name.empty() ? op : name) + ".y";
    graph::add_output(model, out);
    return graph::add_node(model, op, inputs, {out}, name.empty() ? op : name);
  }
};

Array numbers(const Shape& shape, uint64_t seed = 1) {
  Rng rng(seed);
  Array out(DType::F32, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, static_cast<double>(rng.between(-9, 9)) / 8);
  return out;
}
Array integers(const Shape& shape, const Ints& values, DType dtype = DType::I64) {
  Array out(dtype, shape);
  for (int64_t i = 0; i < out.size(); ++i)
    out.set_int(i, values[static_cast<size_t>(i) % values.size()]);
  return out;
}

/// One operator with an operand that has limits.
struct Operand {
  std::string op, input;
  int64_t least, most;
};

void add_recurrent(Trial& trial, std::vector<Operand>& operands, const std::string& op, int gates) {
  const std::string lens = "lens." + op;
  trial.input(lens, kI32, integers({2}, {3, 0}, DType::I32));
  trial.weight("w." + op, numbers({2, gates * 2, 4}, 2));
  trial.weight("r." + op, numbers({2, gates * 2, 2}, 3));
  auto& node = trial.node(op, {"steps", "w." + op, "r." + op, "", lens});
  graph::set_attr(node, "hidden_size", int64_t{2});
  auto& direction = *node.add_attribute();
  direction.set_name("direction"), direction.set_type(3), direction.set_s("bidirectional");
  operands.push_back({op, lens, 0, 3});
}

/// Every operator of ops_with_limits(), with operands as inputs of the model.
std::vector<Operand> add_all(Trial& trial) {
  trial.input("x", kF32, numbers({3, 4}));
  trial.input("steps", kF32, numbers({3, 2, 4}));
  trial.input("u", kF32, numbers({2, 4}, 5));
  trial.input("pooled", kF32, numbers({1, 1, 2, 2}, 6));
  std::vector<Operand> operands;
  const auto add = [&](const std::string& op, const std::string& data, const Array& good,
                       int64_t least, int64_t most,
                       const std::string& updates = "") -> graph::onnx::NodeProto& {
    const std::string operand = trial.input("i." + op, kI64, good);
    operands.push_back({op, operand, least, most});
    return trial.node(op, updates.empty() ? std::vector<std::string>{data, operand}
                                          : std::vector<std::string>{data, operand, updates});
  };
  add("Gather", "x", integers({2}, {2, -3}), -3, 2);
  add("GatherElements", "x", integers({2, 4}, {0, 1, -1, 2}), -3, 2);
  add("GatherND", "x", integers({2, 2}, {0, 3, -3, -4}), -4, 3);
  add("ScatterElements", "x", integers({2, 4}, {0, 1, -1, 0, 2, 2, 0, -3}), -3, 2, "u");
  add("ScatterND", "x", integers({2, 1}, {0, -1}), -3, 2, "u");
  add("ReverseSequence", "steps", integers({2}, {3, 0}), 0, 3);
  auto& unpool = add("MaxUnpool", "pooled", integers({1, 1, 2, 2}, {0, 2, 9, 15}), 0, 15);
  graph::set_attr(unpool, "kernel_shape", Ints{2, 2});
  graph::set_attr(unpool, "strides", Ints{2, 2});
  trial.input("rois", kF32, numbers({2, 4}, 7));
  trial.input("images", kF32, numbers({3, 1, 4, 5}, 8));
  auto& align = add("RoiAlign", "images", integers({2}, {2, 0}), 0, 2);
  align.clear_input();
  for (const char* operand : {"images", "rois", "i.RoiAlign"}) align.add_input(operand);
  add_recurrent(trial, operands, "LSTM", 4);
  add_recurrent(trial, operands, "GRU", 3);
  add_recurrent(trial, operands, "RNN", 1);
  return operands;
}

/// The compiled program of a model, through the C back-end, which every build has.
struct Compiled {
  graph::Graph graph;
  compile::CompiledModel model;
  std::unique_ptr<runtime::Session> session;
};

Compiled compile(const Trial& trial) {
  Compiled out;
  graph::ImportOptions import;
  import.evaluate = compile::make_evaluate();
  auto graph = graph::import_onnx_bytes(trial.model.SerializeAsString(), ".", import);
  EXPECT_TRUE(graph) << to_string(graph.error());
  if (!graph) return out;
  out.graph = *graph;
  compile::CompileOptions options;
  options.use_c = true;
  options.threads = 1;
  auto model = compile::compile_graph(out.graph, options);
  EXPECT_TRUE(model) << to_string(model.error());
  if (!model) return out;
  out.model = std::move(*model);
  auto session = compile::open_session(out.model, {.threads = 1});
  EXPECT_TRUE(session) << to_string(session.error());
  if (session) out.session = std::move(*session);
  return out;
}

void set_all(const Compiled& compiled, const Trial& trial) {
  for (const auto& [name, value] : trial.values) {
    const Status status = compiled.session->set_input(name, value);
    ASSERT_TRUE(status) << to_string(status.error());
  }
}

/// The session's results are those of the interpreter.
void expect_agreement(const Compiled& compiled, const std::map<std::string, Array>& inputs) {
  const auto reference = run_reference(compiled.graph, inputs);
  ASSERT_TRUE(reference) << to_string(reference.error());
  for (const graph::ValueId id : compiled.graph.outputs) {
    const std::string& name = compiled.graph.values[static_cast<size_t>(id)].name;
    const Array got = *compiled.session->get_output(name), want = reference->at(name);
    ASSERT_EQ(got.shape(), want.shape()) << name;
    for (int64_t i = 0; i < got.size(); ++i) {
      const double a = got.get(i), b = want.get(i);
      const bool same = a == b || (std::isnan(a) && std::isnan(b));
      EXPECT_TRUE(same || std::abs(a - b) <= 1e-5 * std::abs(b) + 1e-6) << name << " " << i;
    }
  }
}

TEST(HostileValuesSlow, EveryOperandWithLimitsIsLookedAt) {
  Trial trial;
  const std::vector<Operand> operands = add_all(trial);
  std::set<std::string> tried = {"Scatter"};  // left ONNX when the others came
  for (const Operand& operand : operands) tried.insert(operand.op);
  for (const std::string& op : tensor::ops_with_limits())
    EXPECT_TRUE(tried.contains(op)) << op << " is not tried here";
  const Compiled compiled = compile(trial);
  ASSERT_NE(compiled.session, nullptr);
  set_all(compiled, trial);
  for (const Operand& operand : operands) {
    const Array& good = trial.values.at(operand.input);
    for (int64_t value :
         {kLeast, kMost, operand.least - 1, operand.most + 1, int64_t{1000}, int64_t{-1000}}) {
      if (good.dtype() == DType::I32) value = static_cast<int32_t>(value) == value ? value : -7;
      Array bad = good.clone();
      bad.set_int(bad.size() - 1, value);
      ASSERT_TRUE(compiled.session->set_input(operand.input, bad));
      const Status status = compiled.session->run();
      ASSERT_FALSE(status) << operand.op << " took " << value;
      EXPECT_EQ(status.error().kind, ErrorKind::Usage);
      EXPECT_THAT(to_string(status.error()), HasSubstr(std::to_string(value)));
      EXPECT_THAT(to_string(status.error()), HasSubstr(operand.op));
      std::map<std::string, Array> inputs = trial.values;
      inputs[operand.input] = bad;
      EXPECT_FALSE(run_reference(compiled.graph, inputs)) << operand.op << " took " << value;
    }
    ASSERT_TRUE(compiled.session->set_input(operand.input, good));
    const Status status = compiled.session->run();
    ASSERT_TRUE(status) << to_string(status.error());
  }
  expect_agreement(compiled, trial.values);
}

TEST(HostileValues, IndicesComputedInTheModelAreLookedAt) {
  Trial trial;
  trial.input("x", kF32, numbers({3, 4}));
  trial.input("i", kI64, integers({2}, {1, 2}));
  graph::add_node(trial.model, "Neg", {"i"}, {"minus"});
  trial.node("Gather", {"x", "minus"});
  const Compiled compiled = compile(trial);
  ASSERT_NE(compiled.session, nullptr);
  set_all(compiled, trial);
  ASSERT_TRUE(compiled.session->run());
  expect_agreement(compiled, trial.values);
  ASSERT_TRUE(compiled.session->set_input("i", integers({2}, {1, 4})));
  const Status status = compiled.session->run();
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("index -4 of input 1 ('minus') of Gather"));
}

TEST(HostileValues, RunTimeExtentsInsideAKernelFitAPackage) {
  Trial trial;
  trial.input("x", kI64, integers({6, 1}, {1, 0, 3}));
  trial.weight("rows", integers({2}, {-1, 0}));
  trial.weight("shape", integers({3}, {2, -1, 1}));
  graph::add_node(trial.model, "NonZero", {"x"}, {"found"});
  graph::add_node(trial.model, "Gather", {"found", "rows"}, {"inside"});  // extent 1 is the run's
  trial.node("Reshape", {"inside", "shape"});
  const Compiled compiled = compile(trial);
  ASSERT_NE(compiled.session, nullptr);
  const auto kept = runtime::program_from_json(runtime::to_json(*compiled.model.program));
  EXPECT_TRUE(kept) << to_string(kept.error());
  set_all(compiled, trial);
  ASSERT_TRUE(compiled.session->run());
  expect_agreement(compiled, trial.values);
}

/// Operators that take any value.
void add_tolerant(Trial& trial) {
  trial.input("n", kI64, integers({2, 3}, {0, 1, -1, 5, 63, 2}));
  trial.input("m", kI64, integers({2, 3}, {1, 2, 3}));
  trial.input("f", kF32, numbers({2, 3}));
  trial.input("k", kI64, integers({}, {1}));
  trial.input("image", kF32, numbers({1, 1, 3, 4}));
  trial.input("grid", kF32, numbers({1, 2, 2, 2}));
  trial.weight("depth", integers({}, {3}));
  trial.weight("off_on", integers({2}, {0, 1}));
  trial.weight("two", integers({1}, {2}));
  trial.node("Div", {"n", "m"});
  trial.node("Mod", {"n", "m"});
  graph::set_attr(trial.node("Mod", {"n", "m"}, "Remainder"), "fmod", int64_t{1});
  trial.node("Pow", {"n", "m"});
  trial.node("OneHot", {"n", "depth", "off_on"});
  trial.node("Trilu", {"f", "k"});
  trial.node("NonZero", {"f"});
  trial.node("TopK", {"f", "two"});
  trial.node("Unique", {"f"});
  graph::set_attr(trial.node("Cast", {"f"}), "to", int64_t{kI32});
  trial.node("DynamicQuantizeLinear", {"f"});
  for (const char* padding : {"zeros", "border", "reflection"}) {
    auto& node = trial.node("GridSample", {"image", "grid"}, padding);
    auto& mode = *node.add_attribute();
    mode.set_name("padding_mode"), mode.set_type(3), mode.set_s(padding);
  }
  trial.input("regions", kF32, numbers({2, 4}, 4));
  trial.weight("of", integers({2}, {0, 0}));
  for (const char* name : {"avg", "max"})
    for (const int64_t ratio : {0, 2}) {
      auto& node = trial.node("RoiAlign", {"image", "regions", "of"}, name + std::to_string(ratio));
      graph::set_attr(node, "sampling_ratio", ratio);
      auto& mode = *node.add_attribute();
      mode.set_name("mode"), mode.set_type(3), mode.set_s(name);
    }
}

TEST(HostileValuesSlow, WhatTakesAnyValueComputesWhatTheInterpreterDoes) {
  Trial trial;
  add_tolerant(trial);
  const Compiled compiled = compile(trial);
  ASSERT_NE(compiled.session, nullptr);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const auto& [name, good] : trial.values)
    for (int trick = 0; trick < 5; ++trick) {
      Trial bad = trial;
      Array& value = bad.values.at(name);
      value = value.clone();
      const double real[] = {nan, inf, -inf, 3e38, -1e30};
      const int64_t whole[] = {0, kLeast, kMost, -1, 1000};
      for (int64_t i = trick % 2; i < value.size(); i += 2)
        is_float(value.dtype()) ? value.set(i, real[trick]) : value.set_int(i, whole[trick]);
      set_all(compiled, bad);
      const Status status = compiled.session->run();
      ASSERT_TRUE(status) << name << ": " << to_string(status.error());
      expect_agreement(compiled, bad.values);
    }
}

TEST(HostileValues, LimitsOfNonMaxSuppression) {
  Trial trial;
  trial.input("boxes", kF32, numbers({1, 5, 4}));
  trial.input("scores", kF32, numbers({1, 2, 5}));
  trial.input("count", kI64, integers({1}, {2}));
  trial.input("iou", kF32, Array::of(DType::F32, std::vector<double>{0.5}));
  trial.input("score", kF32, Array::of(DType::F32, std::vector<double>{0}));
  trial.input("keep", kBool, integers({7}, {1, 0, 1}, DType::Bool));
  trial.node("NonMaxSuppression", {"boxes", "scores", "count", "iou", "score"});
  graph::set_attr(trial.node("Compress", {"boxes", "keep"}), "axis", int64_t{1});
  const Compiled compiled = compile(trial);
  ASSERT_NE(compiled.session, nullptr);
  const double nan = std::nan("");
  for (const int64_t count : {kLeast, int64_t{-1}, int64_t{0}, int64_t{1000}, kMost}) {
    trial.values["count"] = integers({1}, {count});
    for (const double score : {0.0, nan, 1e38}) {
      trial.values["score"] = Array::of(DType::F32, std::vector<double>{score});
      set_all(compiled, trial);
      ASSERT_TRUE(compiled.session->run());
      expect_agreement(compiled, trial.values);
    }
  }
  for (const double iou : {nan, -1.0, 7.0}) {
    ASSERT_TRUE(
        compiled.session->set_input("iou", Array::of(DType::F32, std::vector<double>{iou})));
    const Status status = compiled.session->run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Usage);
  }
}

}  // namespace
}  // namespace tilewright::driver
