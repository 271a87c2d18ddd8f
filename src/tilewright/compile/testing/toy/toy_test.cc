// An accelerator that the project does not know compiles and runs a network, through the library
// and through the verbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tilewright/base/check.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/testing/toy/backend.h"
#include "tilewright/compile/testing/toy/hardware.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/graph/onnx/export.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::toy {
namespace {

using ::testing::HasSubstr;
using Named = std::map<std::string, Array>;

const bool kRegistered = [] {
  compile::add_backend(toy_backend());
  return true;
}();

/// Two matrix products of five rows, the first too large for `buf` at once; then a softmax.
graph::Graph two_products() {
  graph::Layers l(3);
  const graph::ValueId hidden = l.relu(l.dense(l.input({5, 48}), 64));
  const graph::ValueId y = l.dense(hidden, 10);
  l.b.output(l.b.node("Softmax", {y}, {{"axis", int64_t{-1}}}), "p");
  return l.finish(y);
}

Named inputs_of(const graph::Graph& graph, uint64_t seed) {
  Named inputs;
  const std::vector<Array> arrays = graph::normal_inputs(graph, seed);
  for (size_t i = 0; i < arrays.size(); ++i)
    inputs[graph.values[static_cast<size_t>(graph.inputs[i])].name] = arrays[i];
  return inputs;
}

compile::QuantizeSettings two_samples() {
  compile::QuantizeSettings settings;
  settings.samples = [](const graph::Graph& graph) -> Result<compile::Samples> {
    return compile::Samples{inputs_of(graph, 11), inputs_of(graph, 12)};
  };
  return settings;
}

compile::CompileOptions options_for(const std::string& target) {
  compile::CompileOptions options;
  options.use_c = true;
  options.math = MathMode::Exact;
  options.target = *compile::find_target(target);
  return options;
}

struct Compiled {
  compile::QuantizedModel quantized;
  compile::CompiledModel model;
};
Compiled compiled() {
  const compile::CompileOptions options = options_for(kName);
  auto prepared = toy_backend().prepare(two_products(), two_samples(), options);
  TW_CHECK(prepared, "{}", to_string(prepared.error()));
  auto model = compile::compile_graph((*prepared)->laid_out, options);
  TW_CHECK(model, "{}", to_string(model.error()));
  return {**std::move(prepared), *std::move(model)};
}

TEST(Toy, IsInTheTableLikeAnyOther) {
  EXPECT_EQ(compile::find_backend("toy"), &toy_backend());
  const Result<hw::Target> target = compile::find_target("toy");
  ASSERT_TRUE(target) << to_string(target.error());
  EXPECT_EQ(&compile::backend_of(*target), &toy_backend());
  EXPECT_THAT(to_string(compile::find_target("toi").error()), HasSubstr("did you mean 'toy'"));
  EXPECT_FALSE(compile::keeps_time("toy:sim"));
  EXPECT_EQ(compile::timed_device("toy"), "");
}

TEST(Toy, RunsTwoProductsAsTheInterpreterDoes) {
  const Compiled two = compiled();
  int products = 0;
  for (const graph::Placement& place : two.quantized.placements)
    products += place.op == "ConvInteger" && place.where == graph::Where::Accelerator;
  EXPECT_EQ(products, 2);
  ASSERT_EQ(two.model.launches.size(), 1u) << "what is between the products is no reason to leave";
  EXPECT_FALSE(two.model.kernels.empty()) << "the softmax is the processor's";

  const graph::Graph& integer = two.quantized.laid_out;
  const Named inputs = inputs_of(integer, 21);
  const auto expected = driver::run_reference(integer, inputs);
  ASSERT_TRUE(expected) << to_string(expected.error());
  const auto log = std::make_shared<compile::LaunchLog>();
  runtime::SessionOptions session_options;
  session_options.load_launch = compile::make_launch_loader({}, log);
  const auto session = compile::open_session(two.model, session_options);
  ASSERT_TRUE(session) << to_string(session.error());
  for (const auto& [name, value] : inputs) ASSERT_TRUE((*session)->set_input(name, value));
  for (int run = 0; run < 2; ++run) {
    const Status status = (*session)->run();
    ASSERT_TRUE(status) << to_string(status.error());
  }
  const Array y = *(*session)->get_output("y"), &want = expected->at("y");
  ASSERT_EQ(y.bytes(), want.bytes());
  EXPECT_EQ(std::memcmp(y.data(), want.data(), static_cast<size_t>(y.bytes())), 0);
  const Array p = *(*session)->get_output("p");
  for (int64_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p.get(i), expected->at("p").get(i), 1e-6);

  ASSERT_EQ(log->entries.size(), 1u);
  std::map<std::string, uint64_t> counts;
  for (const compile::Count& count : log->entries[0].record->counters())
    counts[count.name] = count.value;
  EXPECT_EQ(counts["products"], 5u * (48 * 64 + 64 * 10));
  EXPECT_EQ(counts["stored_bytes"], 5u * (64 + 10));
}

/// The launch's program, run with `change` applied to its instructions: what it writes.
Result<std::string> outputs_of(const std::function<void(std::vector<Insn>&)>& change) {
  Program program = TW_TRY(parse_program(compiled().model.launches.begin()->second.bytes));
  for (const accel::Region& input : program.inputs)
    for (uint64_t i = 0; i < input.bytes; ++i)
      program.image[input.address - program.base + i] = static_cast<char>(i * 37 + 11);
  change(program.runs[0].insns);
  const auto device = make_simulator(program.end());
  TW_TRY_STATUS(accel::write_image(*device, program));
  TW_TRY(accel::launch_runs(*device, program));
  std::string bytes;
  for (const accel::Region& output : program.outputs) {
    std::string one(output.bytes, '\0');
    TW_TRY_STATUS(device->read(output.address, one.data(), one.size()));
    bytes += one;
  }
  return bytes;
}

TEST(ToySlow, TokensKeepQueuesInOrder) {
  const auto good = outputs_of([](std::vector<Insn>&) {});
  ASSERT_TRUE(good) << to_string(good.error());
  const auto none = outputs_of([](std::vector<Insn>& insns) {
    for (Insn& insn : insns) insn.takes = insn.gives = 0;
  });
  ASSERT_TRUE(none) << to_string(none.error());
  EXPECT_NE(*none, *good);
  const auto ungiven = outputs_of([](std::vector<Insn>& insns) {
    for (Insn& insn : insns) insn.gives = 0;
  });
  ASSERT_FALSE(ungiven);
  EXPECT_THAT(to_string(ungiven.error()), HasSubstr("waits for ever"));
}

TEST(Toy, RefusesWhatItCannotDo) {
  graph::Layers l;
  const graph::Graph conv = l.finish(l.conv(l.input({1, 3, 8, 8}), 4, 3));
  const auto refused = toy_backend().prepare(conv, two_samples(), options_for(kName));
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()), HasSubstr("does not run on toy"));
  EXPECT_THAT(to_string(refused.error()), HasSubstr("are no matrices"));
  graph::Layers wide;
  const graph::Graph large = wide.finish(wide.dense(wide.input({1, 900}), 4));
  const auto full = toy_backend().prepare(large, two_samples(), options_for(kName));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::Capacity);
}

/// A verb of the command line in this process: exit code and standard output.
std::pair<int, std::string> tilewright_says(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"tilewright", "-q"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  ::testing::internal::CaptureStdout();
  const int code = driver::run_cli(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  return {code, ::testing::internal::GetCapturedStdout()};
}

TEST(ToySlow, IsReachedByTheVerbs) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string onnx = folder->file("net.onnx"), package = folder->file("net.twm");
  ASSERT_TRUE(graph::save_onnx(onnx, two_products()));
  EXPECT_THAT(tilewright_says({"targets"}).second, HasSubstr("toy"));
  const auto [checked, places] = tilewright_says({"check", onnx, "--target", "toy"});
  EXPECT_EQ(checked, 0);
  EXPECT_THAT(places, HasSubstr("on toy"));
  ASSERT_EQ(tilewright_says({"compile", onnx, "--target", "toy", "--quantize", "random:2",
                             "--backend", "c", "--no-calibrate", "--no-records", "-o", package})
                .first,
            0);
  EXPECT_THAT(tilewright_says({"inspect", package}).second, HasSubstr("toy_0: target toy, "));
  const auto [ran, text] = tilewright_says({"--json", "run", package, "--device", "toy:sim"});
  ASSERT_EQ(ran, 0);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << text;
  EXPECT_EQ(json["launches"][0]["counters"]["stored_bytes"], 5 * (64 + 10));
  EXPECT_EQ(tilewright_says({"verify", package}).first, 0);
  // A device without time has no trace; nothing else runs its code.
  EXPECT_EQ(tilewright_says({"run", package, "--trace", folder->file("t.json")}).first, 2);
  EXPECT_EQ(tilewright_says({"bench", package, "--duration", "0.01"}).first, 0);
  EXPECT_EQ(tilewright_says({"run", package, "--device", "cpu"}).first, 4);
}

TEST(ToySlow, NobodyElseComparesNamesOfTargets) {
  const Result<ToolResult> done =
      run_tool({"python3", std::string(TILEWRIGHT_ROOT_DIR) + "/scripts/check_targets.py"});
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(done->status, 0) << done->output;
}

}  // namespace
}  // namespace tilewright::toy
