// Networks through the library on Gemmini's simulator, against the integer graph on this processor.
#include "tilewright/compile/gemmini/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/accel/gemmini/check.h"
#include "tilewright/compile/backends.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/gemmini/backend.h"
#include "tilewright/graph/testing/quantize.h"

namespace tilewright::compile {
namespace {

using graph::Graph;
using graph::Layers;
using ::testing::HasSubstr;

CompileOptions gemmini_options(const gemmini::Config& config = {}) {
  CompileOptions options;
  options.math = MathMode::Exact;
  options.target = as_target(GemminiTarget{config});
  return options;
}

QuantizeSettings gemmini_settings(bool allow_cpu) {
  QuantizeSettings settings;
  settings.allow_cpu = allow_cpu;
  settings.samples = [](const Graph& graph) -> Result<Samples> {
    Samples samples(1);
    const std::vector<Array> arrays = graph::normal_inputs(graph, 3);
    for (size_t i = 0; i < arrays.size(); ++i)
      samples[0][graph.values[static_cast<size_t>(graph.inputs[i])].name] = arrays[i];
    return samples;
  };
  return settings;
}

/// The outputs of a graph with `options`, and how many launches made them.
std::vector<Array> outputs_with(const Graph& graph, const CompileOptions& options,
                                size_t* launches = nullptr) {
  const auto model = compile_graph(graph, options);
  EXPECT_TRUE(model) << to_string(model.error());
  for (const auto& [name, code] : model->launches) {
    const auto program = gemmini::parse_program(code.bytes);
    EXPECT_TRUE(program && gemmini::check_program(*program).empty()) << name;
  }
  if (launches != nullptr) *launches = model->launches.size();
  runtime::SessionOptions session_options;
  session_options.load_launch = make_launch_loader({}, std::make_shared<LaunchLog>());
  const auto session = open_session(*model, session_options);
  EXPECT_TRUE(session) << to_string(session.error());
  const std::vector<Array> inputs = graph::normal_inputs(graph, 21);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(
        (*session)->set_input(graph.values[static_cast<size_t>(graph.inputs[i])].name, inputs[i]));
  const Status status = (*session)->run();
  EXPECT_TRUE(status) << to_string(status.error());
  std::vector<Array> outputs;
  for (const graph::ValueId id : graph.outputs)
    outputs.push_back(*(*session)->get_output(graph.values[static_cast<size_t>(id)].name));
  return outputs;
}

TEST(GemminiNetworkSlow, AllBitsAreThoseOfTheIntegerGraph) {
  gemmini::Config small;
  small.dim = 4, small.spad_kb = 4, small.acc_kb = 1, small.banks = 1;
  const CompileOptions options = gemmini_options(small);
  auto made = prepare_for_gemmini(graph::residual_net(2), small, gemmini_settings(true), options);
  ASSERT_TRUE(made) << to_string(made.error());
  // Every value of 8 bits, too.
  Graph& graph = made->laid_out;
  size_t on_device = 0;
  for (const graph::Placement& place : made->placements) {
    if (place.where != graph::Where::Accelerator || place.op != "Requantize") continue;
    ++on_device;
    const graph::ValueId y = graph.nodes[static_cast<size_t>(place.node)].outputs[0];
    if (std::find(graph.outputs.begin(), graph.outputs.end(), y) == graph.outputs.end())
      graph.outputs.push_back(y);
  }
  EXPECT_EQ(on_device, 6u) << "all but the depthwise ones";
  CompileOptions with_memo = options;
  with_memo.memo = made->memo;
  size_t launches = 0;
  const std::vector<Array> got = outputs_with(graph, with_memo, &launches);
  EXPECT_GE(launches, 2u);
  CompileOptions on_cpu = options;
  on_cpu.target = hw::as_target(hw::host());
  const std::vector<Array> want = outputs_with(graph, on_cpu);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(), static_cast<size_t>(got[i].bytes())), 0)
        << i;
}

TEST(GemminiNetwork, SaysWhatItCannotDo) {
  Layers l;
  const graph::ValueId low = l.b.constant("lo", Array::scalar(DType::F32, -0.3));
  const graph::ValueId high = l.b.constant("hi", Array::scalar(DType::F32, 1.3));
  const graph::ValueId x = l.b.node("Clip", {l.conv(l.input({1, 4, 8, 8}), 4, 3), low, high});
  const Graph graph = l.finish(l.conv(x, 4, 3, 1, 1, 4));
  const auto refused = prepare_for_gemmini(graph, {}, gemmini_settings(false), gemmini_options());
  ASSERT_FALSE(refused);
  const std::string text = to_string(refused.error());
  EXPECT_THAT(text, HasSubstr("does not run on gemmini"));
  EXPECT_THAT(text, HasSubstr("it clips to -19 at least"));
  EXPECT_THAT(text, HasSubstr("it is 4 convolutions of 1 channels each"));
  QuantizeSettings channels = gemmini_settings(true);
  channels.per_channel = true;
  EXPECT_THAT(to_string(prepare_for_gemmini(graph, {}, channels, gemmini_options()).error()),
              HasSubstr("one scale for all channels"));
}

TEST(GemminiNetwork, IsInTheTable) {
  EXPECT_EQ(find_backend("gemmini"), &gemmini_backend());
  const auto target = find_target("gemmini");
  ASSERT_TRUE(target);
  EXPECT_EQ(&backend_of(*target), &gemmini_backend());
  EXPECT_FALSE(keeps_time("gemmini:fsim"));
}

}  // namespace
}  // namespace tilewright::compile
