// Networks on FPGAs: which layers go there, and that they compute what the interpreter does.
#include "tilewright/compile/fpga/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/devices.h"
#include "tilewright/compile/evaluate.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/compile/fpga/board_launch.h"
#include "tilewright/compile/fpga/cpp_kernels.h"
#include "tilewright/compile/fpga/launch.h"
#include "tilewright/graph/testing/quantize.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/testing/meaning.h"

namespace tilewright::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CompileOptions options_for_fpga(const hw::FpgaDevice& device) {
  CompileOptions options;
  options.target = as_target(FpgaTarget{device});
  options.memo = std::make_shared<FpgaMemo>();
  return options;
}
CompileOptions options_for_fpga() {
  return options_for_fpga(hw::load_fpga_device("zcu104").value());
}

Array small_integers(Rng& rng, const Shape& shape, int64_t range) {
  Array array(DType::F32, shape);
  for (float& x : array.as<float>()) x = static_cast<float>(rng.between(-range, range));
  return array;
}

graph::Graph built(graph::Builder& b) {
  auto graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  return *std::move(graph);
}

/// The only output of `graph`, node by node in the interpreter.
Array interpreted(const graph::Graph& graph, const Array& input) {
  std::map<graph::ValueId, Array> known = {{graph.inputs[0], input}};
  for (const graph::Node& node : graph.nodes) {
    std::vector<Array> arrays;
    for (const graph::ValueId id : node.inputs) {
      const auto& constant = graph.values[static_cast<size_t>(id)].constant;
      arrays.push_back(constant ? *constant : known.at(id));
    }
    const auto results = interpret_op(graph::op_call(graph, node), arrays);
    EXPECT_TRUE(results) << node.name << ": " << to_string(results.error());
    known[node.outputs[0]] = results->at(0);
  }
  return known.at(graph.outputs[0]);
}

Array random_input(const graph::Graph& graph, uint64_t seed) {
  Rng rng(seed);
  return small_integers(rng, graph.values[static_cast<size_t>(graph.inputs[0])].type.shape, 3);
}

double largest_difference(const Array& a, const Array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.get(i) - b.get(i)));
  return most;
}

/// Layers with small integers, so that every order of additions is exact.
struct ExactLayers {
  graph::Builder b{"net"};
  Rng rng{5};

  graph::ValueId weights(const Shape& shape, int64_t range) {
    return b.constant("w", small_integers(rng, shape, range));
  }
  graph::ValueId conv(graph::ValueId x, int64_t out, int64_t kernel, int64_t stride = 1,
                      int64_t groups = 1) {
    const int64_t in = b.type(x).shape[1] / groups, pad = kernel / 2;
    return b.node("Conv", {x, weights({out, in, kernel, kernel}, 1), weights({out}, 3)},
                  {{"strides", graph::Sizes{stride, stride}},
                   {"pads", graph::Sizes{pad, pad, pad, pad}},
                   {"group", groups}});
  }
  graph::ValueId relu(graph::ValueId x) { return b.node("Relu", {x}); }
  graph::ValueId dense(graph::ValueId x, int64_t out) {
    return b.node("Gemm", {x, weights({out, b.type(x).shape[1]}, 1), weights({out}, 3)},
                  {{"transB", int64_t{1}}});
  }
};

/// Ragged extents, a stride, two equal layers, a residual, a pool, groups, a product of one row.
graph::Graph ragged_net() {
  ExactLayers l;
  graph::ValueId x = l.relu(l.conv(l.b.input("x", DType::F32, {1, 3, 11, 9}), 6, 3, 2));
  const graph::ValueId first = x;
  for (int i = 0; i < 2; ++i) x = l.relu(l.conv(x, 6, 3));
  x = l.relu(l.b.node("Add", {l.conv(x, 6, 1), first}));
  x = l.b.node("MaxPool", {x}, {{"kernel_shape", graph::Sizes{2, 2}}});
  x = l.b.node("Flatten", {l.conv(x, 4, 3, 1, 2)});
  l.b.output(l.dense(x, 7), "y");
  return built(l.b);
}

/// The only output of a compiled graph, and what the FPGA did, on `device`.
Array run_compiled(const CompiledModel& model, const Array& input, const std::string& device = "",
                   const std::shared_ptr<LaunchLog>& log = std::make_shared<LaunchLog>()) {
  runtime::SessionOptions options;
  LaunchSettings settings;
  settings.device = device;
  settings.record_times = true;
  options.load_launch = make_launch_loader(settings, log);
  const auto session = open_session(model, options);
  EXPECT_TRUE(session) << to_string(session.error());
  const auto name = [&](graph::ValueId id) {
    return model.graph.values[static_cast<size_t>(id)].name;
  };
  EXPECT_TRUE((*session)->set_input(name(model.graph.inputs[0]), input));
  const Status done = (*session)->run();
  EXPECT_TRUE(done) << to_string(done.error());
  return (*session)->get_output(name(model.graph.outputs[0]))->clone();
}

std::vector<std::string> ops_at(const std::vector<graph::Placement>& places, graph::Where where) {
  std::vector<std::string> ops;
  for (const graph::Placement& place : places)
    if (place.where == where) ops.push_back(place.op);
  return ops;
}

TEST(FpgaLayersSlow, NetworksComputeWhatTheInterpreterDoes) {
  const graph::Graph graph = ragged_net();
  const auto model = compile_graph(graph, options_for_fpga());
  ASSERT_TRUE(model) << to_string(model.error());
  ASSERT_EQ(model->launches.size(), 2u) << "the pool is between them";
  const auto before = parse_fpga_network(model->launches.begin()->second.bytes);
  ASSERT_TRUE(before) << to_string(before.error());
  EXPECT_EQ(before->calls.size(), 4u);
  EXPECT_EQ(before->designs.size(), 3u) << "equal layers share one";
  for (uint64_t seed : {1, 2}) {
    const Array input = random_input(graph, seed);
    EXPECT_EQ(largest_difference(run_compiled(*model, input), interpreted(graph, input)), 0);
  }
}

/// As above, without the residual: the Verilog would need all of it on the chip.
TEST(FpgaLayersSlow, DesignsCountTheCyclesOfEachLayer) {
  ExactLayers l;
  graph::ValueId x = l.relu(l.conv(l.b.input("x", DType::F32, {1, 3, 7, 5}), 4, 3));
  x = l.relu(l.conv(x, 4, 1));
  l.b.output(l.dense(l.b.node("Flatten", {x}), 7), "y");
  const graph::Graph graph = built(l.b);
  const auto model = compile_graph(graph, options_for_fpga());
  ASSERT_TRUE(model) << to_string(model.error());
  const auto log = std::make_shared<LaunchLog>();
  const Array input = random_input(graph, 3);
  const Array got = run_compiled(*model, input, kFpgaTsim, log);
  EXPECT_EQ(largest_difference(got, interpreted(graph, input)), 0);
  ASSERT_EQ(log->entries.size(), 1u);
  const LaunchRecord& record = *log->entries[0].record;
  uint64_t sum = 0;
  for (const LaunchLayer& layer : record.layers()) sum += layer.cycles[0].value;
  EXPECT_EQ(record.layers().size(), 3u);
  EXPECT_GT(sum, 0u);
  EXPECT_EQ(record.cycles(), sum);
  const std::optional<accel::RunTrace> trace = record.trace();
  ASSERT_TRUE(trace);
  std::set<std::string> groups;
  for (const accel::RunTrace::Row& row : trace->rows) groups.insert(row.group);
  EXPECT_EQ(groups.size(), 3u);
  // One after the other; a last cycle of control is no slice.
  EXPECT_NEAR(static_cast<double>(trace->slices.back().end), static_cast<double>(sum), 10);
}

/// Three layers of one form: channels that nothing divides, strides, windows; and a pool, which the
/// processor computes.
graph::Graph alike_net() {
  ExactLayers l;
  graph::ValueId x = l.relu(l.conv(l.b.input("x", DType::F32, {1, 3, 9, 7}), 5, 3));
  x = l.relu(l.conv(x, 7, 3, 2));
  x = l.relu(l.conv(x, 4, 3));
  l.b.output(l.b.node("MaxPool", {x}, {{"kernel_shape", graph::Sizes{2, 2}}}), "y");
  return built(l.b);
}

/// The only network of a compiled graph.
FpgaNetwork network_in(const CompiledModel& model) {
  EXPECT_EQ(model.launches.size(), 1u);
  auto network = parse_fpga_network(model.launches.begin()->second.bytes);
  EXPECT_TRUE(network) << to_string(network.error());
  return *std::move(network);
}

/// One configuration of the device for three layers.
TEST(FpgaLayersSlow, LayersOfOneFormShareADesign) {
  const graph::Graph graph = alike_net();
  const auto model =
      compile_graph(graph, options_for_fpga(hw::load_fpga_device("zynq7020").value()));
  ASSERT_TRUE(model) << to_string(model.error());
  const FpgaNetwork network = network_in(*model);
  EXPECT_EQ(network.designs.size(), 3u);
  EXPECT_EQ(network.structures(), 1u);
  const Array input = random_input(graph, 4);
  const Array expected = interpreted(graph, input);
  EXPECT_EQ(largest_difference(run_compiled(*model, input), expected), 0);
  const auto log = std::make_shared<LaunchLog>();
  EXPECT_EQ(largest_difference(run_compiled(*model, input, kFpgaTsim, log), expected), 0);
  const auto cycles = static_cast<double>(log->entries.at(0).record->cycles());
  EXPECT_NEAR(static_cast<double>(network.cycles()), cycles, 0.1 * cycles);
}

/// The processor computes between two layers: each launch has both designs, and so the same
/// Verilog.
TEST(FpgaLayersSlow, LaunchesShareADesign) {
  ExactLayers l;
  graph::ValueId x = l.conv(l.b.input("x", DType::F32, {1, 3, 9, 7}), 5, 3);
  x = l.b.node("MaxPool", {x}, {{"kernel_shape", graph::Sizes{2, 2}}});
  l.b.output(l.conv(x, 4, 3), "y");
  const graph::Graph graph = built(l.b);
  const hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  const auto model = compile_graph(graph, options_for_fpga(device));
  ASSERT_TRUE(model) << to_string(model.error());
  ASSERT_EQ(model->launches.size(), 2u);
  std::vector<uint32_t> identities;
  std::vector<std::string> texts;
  for (const auto& [name, launch] : model->launches) {
    EXPECT_EQ(launch.kernel_count, 1);
    const FpgaNetwork network = parse_fpga_network(launch.bytes).value();
    EXPECT_EQ(network.used_designs(), 1u);
    EXPECT_EQ(layers_text(network), "1 layer on 1 design, which other launches share");
    const auto alike = network.by_structure();
    ASSERT_EQ(alike.size(), 1u);
    ASSERT_EQ(alike[0].size(), 2u);
    const auto kernels = board_kernels(shared_designs(alike[0], device).value());
    ASSERT_TRUE(kernels) << to_string(kernels.error());
    identities.push_back((*kernels)[0].identity);
    const auto cpp = cpp_kernels(alike[0], device);
    ASSERT_TRUE(cpp) << to_string(cpp.error());
    ASSERT_EQ(cpp->kernels.size(), 1u);
    texts.push_back(cpp->kernels[0].kernel.files.at("kernel.cpp"));
    EXPECT_NE(cpp->uses[0].row, cpp->uses[1].row);
  }
  EXPECT_EQ(identities[0], identities[1]);
  EXPECT_EQ(texts[0], texts[1]);
  const Array input = random_input(graph, 4);
  const Array expected = interpreted(graph, input);
  EXPECT_EQ(largest_difference(run_compiled(*model, input), expected), 0);
  EXPECT_EQ(largest_difference(run_compiled(*model, input, kFpgaTsim), expected), 0);
}

/// Shifts differ from layer to layer, too: all is in the table of one build of the Verilog.
TEST(FpgaLayersSlow, IntegersShareOneBuildOfTheVerilog) {
  hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  device.cells.dsps = 40;  // few products: Verilator needs little time
  CompileOptions options = options_for_fpga(device);
  QuantizeSettings settings;
  settings.samples = [](const graph::Graph& prepared) -> Result<Samples> {
    const std::string& name = prepared.values[static_cast<size_t>(prepared.inputs[0])].name;
    return Samples{{{name, graph::normal_inputs(prepared, 1)[0]}}};
  };
  settings.allow_cpu = true;
  const auto prepared = fpga_backend().prepare(alike_net(), settings, options);
  ASSERT_TRUE(prepared) << to_string(prepared.error());
  options.memo = (*prepared)->memo;
  const auto model = compile_graph((*prepared)->laid_out, options);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(network_in(*model).structures(), 1u);
  const Array input = graph::normal_inputs((*prepared)->laid_out, 7)[0];
  const Array expected = interpreted((*prepared)->laid_out, input);
  const auto simulated = std::make_shared<LaunchLog>(), verilog = std::make_shared<LaunchLog>();
  EXPECT_EQ(largest_difference(run_compiled(*model, input, kFpgaTsim, simulated), expected), 0);
  EXPECT_EQ(largest_difference(run_compiled(*model, input, kFpgaRtl, verilog), expected), 0);
  EXPECT_EQ(verilog->entries.at(0).record->cycles(), simulated->entries.at(0).record->cycles());
}

TEST(FpgaLayers, EachLayerMayHaveADesignOfItsOwn) {
  CompileOptions options = options_for_fpga();
  options.target = as_target(FpgaTarget{hw::load_fpga_device("zynq7020").value(), false});
  const auto model = compile_graph(alike_net(), options);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(network_in(*model).structures(), 3u);
}

TEST(FpgaLayersSlow, IntegersOfAQuantisedNetwork) {
  const graph::Graph graph = graph::residual_net();
  QuantizeSettings settings;
  settings.samples = [](const graph::Graph& prepared) -> Result<Samples> {
    const std::string& name = prepared.values[static_cast<size_t>(prepared.inputs[0])].name;
    return Samples{{{name, graph::normal_inputs(prepared, 1)[0]}}};
  };
  CompileOptions options = options_for_fpga();
  const auto refused = fpga_backend().prepare(graph, settings, options);
  ASSERT_FALSE(refused) << "its depthwise convolution has no design";
  EXPECT_THAT(to_string(refused.error()), HasSubstr("--fallback cpu"));
  settings.allow_cpu = true;
  const auto prepared = fpga_backend().prepare(graph, settings, options);
  ASSERT_TRUE(prepared) << to_string(prepared.error());
  const graph::Graph& integer = (*prepared)->laid_out;
  EXPECT_GE(std::count_if((*prepared)->placements.begin(), (*prepared)->placements.end(),
                          [](const graph::Placement& place) {
                            return place.op == "ConvInteger" &&
                                   place.where == graph::Where::Accelerator;
                          }),
            5);
  options.memo = (*prepared)->memo;
  const auto model = compile_graph(integer, options);
  ASSERT_TRUE(model) << to_string(model.error());
  const Array input = graph::normal_inputs(integer, 7)[0];
  const Array computed = run_compiled(*model, input);
  EXPECT_LT(largest_difference(computed, interpreted(integer, input)), 1e-6);
  // The Verilog makes no floats of integers: the processor does that for all devices.
  EXPECT_EQ(largest_difference(run_compiled(*model, input, kFpgaTsim), computed), 0);
}

TEST(FpgaLayers, ProductsAndWhatFollowsThem) {
  ExactLayers l;
  const graph::ValueId x = l.b.input("x", DType::F32, {1, 3, 6, 6});
  const graph::ValueId sum = l.b.node("Tanh", {l.relu(l.conv(x, 4, 1))});
  l.b.output(l.conv(l.b.node("GlobalAveragePool", {sum}), 4, 1, 1, 4), "y");
  const graph::Graph graph = built(l.b);
  const CompileOptions options = options_for_fpga();
  FpgaMemo memo;
  const auto places = place_on_fpga(graph, options, memo);
  ASSERT_TRUE(places) << to_string(places.error());
  EXPECT_THAT(ops_at(places->nodes, graph::Where::Accelerator), ElementsAre("Conv", "Relu"));
  EXPECT_THAT(ops_at(places->nodes, graph::Where::Cpu),
              ElementsAre("Tanh", "GlobalAveragePool", "Conv"));
  EXPECT_THAT(places->summary, HasSubstr("1 layer on 1 design"));
  EXPECT_THAT(places->summary, HasSubstr("DSP"));
  // One channel for each group: nothing is summed over that a design could do side by side.
  const Status all = all_placed(places->nodes, "fpga");
  ASSERT_FALSE(all);
  EXPECT_THAT(to_string(all.error()), HasSubstr("(Conv) does not run on fpga"));
  EXPECT_TRUE(all.error().others.empty()) << "the others are meant for the processor";
}

TEST(FpgaLayers, DevicesThatCountCyclesSaySo) {
  EXPECT_TRUE(keeps_time("fpga:tsim"));
  EXPECT_TRUE(keeps_time("fpga:rtl"));
  EXPECT_FALSE(keeps_time("fpga:csim"));
  EXPECT_EQ(timed_device("fpga"), "fpga:tsim");
}

TEST(FpgaLayers, ADeviceThatIsTooSmallSaysWhatItLacks) {
  ExactLayers l;
  l.b.output(l.conv(l.b.input("x", DType::F32, {1, 3, 6, 6}), 4, 3), "y");
  hw::FpgaDevice device = hw::load_fpga_device("zcu104").value();
  device.cells.dsps = 2;
  FpgaMemo memo;
  const graph::Graph graph = built(l.b);
  const CompileOptions options = options_for_fpga(device);
  const auto places = place_on_fpga(graph, options, memo);
  ASSERT_TRUE(places) << to_string(places.error());
  const Status all = all_placed(places->nodes, "fpga");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(to_string(all.error()), HasSubstr("needs DSP 5 of 1 "));
}

TEST(FpgaLayers, WeightsInAnyOrderMeanTheSame) {
  ExactLayers l;
  l.b.output(l.conv(l.b.input("x", DType::F32, {1, 2, 5, 4}), 3, 3), "y");
  const graph::Graph graph = built(l.b);
  const Func func = graph::group_func(graph, graph::fuse(graph)[0]).value().func;
  interp::Arguments arguments = lower::testing::arguments_of(func, 3);
  const auto wanted = interp::run(func, arguments).value();
  const std::vector<AxisOrder> orders = weight_orders(func);
  ASSERT_EQ(orders.size(), 2u);
  for (const AxisOrder& order : orders) {
    interp::Arguments other = arguments;
    Array& weights = other.arrays.at(func.params[order.param].buffer.name());
    const Shape before = weights.shape();
    weights = in_order(weights, order.order);
    EXPECT_NE(weights.shape(), before);
    const Func moved = with_order(func, order);
    EXPECT_EQ(lower::testing::difference(wanted, interp::run(moved, other).value(), 0), "")
        << print(moved);
  }
}

TEST(FpgaLayers, DamagedCodeIsRefused) {
  const Func func = *parse_func(
      "func f(X: f32[8], const W: f32[8], out Y: f32[8]) { for i in 8 { block Y(a: space 8 = i) { "
      "Y[a] = X[a] * W[a] } } }");
  FpgaNetwork network = network_of(func, 12, hw::load_fpga_device("zcu104").value()).value();
  ASSERT_EQ(network.inputs.size(), 2u);
  network.inputs.pop_back();
  network.values[1].constant = 0;
  network.constants = std::string(32, '\1');
  const std::string code = serialise(network);
  const auto read = parse_fpga_network(code);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->cycles(), 12);
  EXPECT_EQ(read->device, network.device);
  EXPECT_EQ(print(read->designs[0].func), print(func));
  for (size_t end = 0; end < code.size(); end += 7)
    EXPECT_FALSE(parse_fpga_network(code.substr(0, end))) << end;
  EXPECT_FALSE(parse_fpga_network(code + "x"));
  const auto refused = [&](auto change) {
    FpgaNetwork other = network;
    change(other);
    const auto again = parse_fpga_network(serialise(other));
    return !again && again.error().kind == ErrorKind::Package;
  };
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.calls[0].design = 1; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.calls[0].values.pop_back(); }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.designs[0].structure = -1; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.calls[0].values.push_back(0); }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.calls[0].values[0] = 3; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { std::swap(n.values[1], n.values[2]); }))
      << "the result would be a constant";
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.values[0].bytes = 28; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.values[1].constant = 4; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.values[1].constant = -2; }));
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.inputs[0] = 1; })) << "an input that is a constant";
  EXPECT_TRUE(refused([](FpgaNetwork& n) { n.outputs[0] = 3; }));
}

/// A file whose `source` says something else is the same device.
TEST(FpgaHardware, OtherNumbersAreOtherHardware) {
  const Func func = *parse_func(
      "func f(X: f32[8], out Y: f32[8]) { for i in 8 { block Y(a: space 8 = i) { Y[a] = X[a] } } "
      "}");
  hw::FpgaDevice device = hw::load_fpga_device("zynq7020").value();
  const std::string code = serialise(network_of(func, 0, device).value());
  const auto folder = TemporaryFolder::create().value();
  const auto fits = [&](const hw::FpgaDevice& other) {
    EXPECT_TRUE(write_file(folder.file("own.toml"), hw::to_toml(other)));
    return fpga_runtime().fits_hardware("f", code, folder.file("own.toml"));
  };
  device.source = device.memory.source = device.operators[0].source = "somebody else";
  const auto same = fits(device);
  EXPECT_TRUE(same) << to_string(same.error());
  device.cells.dsps -= 1;
  const auto different = fits(device);
  ASSERT_FALSE(different);
  EXPECT_EQ(different.error().kind, ErrorKind::Package);
  EXPECT_THAT(different.error().why, HasSubstr("dsps is 220 in the program, 219 in"));
  EXPECT_THAT(different.error().why, Not(HasSubstr("source")));
}

}  // namespace
}  // namespace tilewright::compile
