// A network on random legal hardware: the compiler takes what fits, and its code is right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/e2e/vta_network.h"
#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/accel/vta/testing/random_config.h"

namespace tilewright::e2e {
namespace {

/// Convolutions with stride 1 and 2, a residual block, max pooling, a dense layer; channels that
/// are no multiple of any block, a batch that is not of every tile.
Network small_network(int64_t batch) {
  Layers l(5);
  ValueId x = l.relu(l.conv(l.input({batch, 3, 7, 6}), 5, 3, 1, 1));
  x = l.relu(l.conv(x, 6, 3, 2, 1));
  x = l.relu(l.b.node("Add", {l.conv(x, 6, 3, 1, 1), x}));
  x = l.b.node(
      "MaxPool", {x},
      {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  return make_network(l.finish(l.dense(l.b.node("Flatten", {x}), 7)));
}

/// Hardware the compiler is for: 8-bit operands and results, square blocks. `tiny`: memories may be
/// too small for any tile of a 3x3 convolution.
vta::Config random_hardware(Rng& rng, bool tiny) {
  vta::testing::RandomConfigOptions options;
  options.square = options.extensions = options.features = options.timing = true;
  for (;;) {
    vta::Config config = vta::testing::random_config(rng, options);
    if (config.log_inp_width != 3 || config.log_wgt_width != 3 || config.log_out_width != 3)
      continue;
    using vta::Mem;
    if (tiny || (config.depth(Mem::Inp) >= 64 && config.depth(Mem::Wgt) >= 16 &&
                 config.depth(Mem::Acc) >= 64 && config.depth(Mem::Uop) >= 32))
      return config;
  }
}

std::string describe(const vta::Config& config) {
  return fmt::format("{}{}{}{}", label(config), config.extensions.pipeline4 ? " pipeline4" : "",
                     config.extensions.fused_reset ? " fused_reset" : "",
                     config.extensions.pipelined_alu ? " pipelined_alu" : "");
}

void expect_clean(const compile::CompiledModel& model, const std::string& what) {
  for (const auto& [name, launch] : model.launches)
    for (const vta::Finding& finding : vta::check_program(compile::vta_code(launch)->program))
      ADD_FAILURE() << what << ": " << name << ": " << vta::name(finding.rule) << ": "
                    << finding.text;
}

/// Capacity must say which layer and which memory.
void expect_explained(const Error& error, const std::string& what) {
  EXPECT_EQ(error.kind, ErrorKind::Capacity) << what << ": " << to_string(error);
  EXPECT_NE(error.what.find("does not run on vta"), std::string::npos) << to_string(error);
  EXPECT_NE(error.why.find("on chip"), std::string::npos) << what << ": " << to_string(error);
}

/// Compiles a network for random hardware and runs it on the simulators, the first `rtl_runs` that
/// can be on Verilog too.
void expect_configurations(int configs, int rtl_runs) {
  const Network networks[] = {small_network(1), small_network(2)};
  Rng rng(2024);
  int fitting = 0, refused = 0, rtl = 0;
  for (int i = 0; i < configs; ++i) {
    const vta::Config config = random_hardware(rng, i % 3 == 2);
    const Network& network = networks[i % 2];
    const std::string what = fmt::format("{} {}", i, describe(config));
    std::fflush(stdout);
    const Result<compile::CompiledModel> model = compile_network(network, config);
    if (!model) {
      ++refused;
      expect_explained(model.error(), what);
      fmt::print("{}: {} ({})\n", what, model.error().what, model.error().why);
      continue;
    }
    ++fitting;
    expect_clean(*model, what);
    uint64_t cycles = 0;
    std::vector<std::string> devices = {"vta:fsim", "vta:tsim"};
    const bool on_rtl = rtl < rtl_runs && config.log_block_out <= 4 && rtl_supports(config);
    if (on_rtl) devices.push_back("vta:rtl"), ++rtl;
    for (const std::string& device : devices) {
      const Result<DeviceRun> run = run_network(network, *model, device);
      ASSERT_TRUE(run) << what << " " << device << ": " << to_string(run.error());
      EXPECT_TRUE(same_bits(run->outputs, network.expected)) << what << " " << device;
      const auto by_tsim = static_cast<double>(cycles);
      if (device == "vta:rtl") {
        EXPECT_NEAR(static_cast<double>(run->cycles), by_tsim, 0.01 * by_tsim) << what;
      }
      cycles = run->cycles;
    }
    fmt::print("{}: {} cycles{}\n", what, cycles, on_rtl ? ", rtl too" : "");
  }
  fmt::print("{} configurations fit, {} are refused, {} ran on rtl\n", fitting, refused, rtl);
  EXPECT_LE(refused, 5) << "7 if windows are never cut";
  EXPECT_EQ(rtl, rtl_runs);
}

TEST(VtaConfigs, F2_D4_RandomLegalConfigurations) { expect_configurations(12, 1); }

TEST(VtaConfigsFull, F2_D4_FiftyRandomLegalConfigurations) { expect_configurations(50, 3); }

/// The kinds of layers of ResNet-18 on a small map: its first convolution and pooling, a block with
/// and one without a change of size, the mean and the dense layer.
Network resnet_layers() {
  Layers l(18);
  ValueId x = l.relu(l.conv(l.input({1, 3, 32, 32}), 16, 7, 2, 3));
  x = l.b.node("MaxPool", {x},
               {{"kernel_shape", std::vector<int64_t>{3, 3}},
                {"strides", std::vector<int64_t>{2, 2}},
                {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  ValueId y = l.conv(l.relu(l.conv(x, 16, 3, 1, 1)), 16, 3, 1, 1);
  x = l.relu(l.b.node("Add", {y, x}));
  y = l.conv(l.relu(l.conv(x, 32, 3, 2, 1)), 32, 3, 1, 1);
  x = l.relu(l.b.node("Add", {y, l.conv(x, 32, 1, 2)}));
  x = l.b.node("Flatten", {l.b.node("GlobalAveragePool", {x})});
  return make_network(l.finish(l.dense(x, 10)));
}

TEST(VtaConfigs, F1_ResNetLayersAreTheSameOnEveryDevice) {
  const Network network = resnet_layers();
  for (const char* name : {"vta", "vta-extended"}) {
    const vta::Config config = *vta::builtin_config(name);
    const Result<compile::CompiledModel> model = compile_network(network, config);
    ASSERT_TRUE(model) << to_string(model.error());
    expect_clean(*model, name);
    for (const char* device : {"vta:fsim", "vta:tsim", "vta:rtl"}) {
      const Result<DeviceRun> run = run_network(network, *model, device);
      ASSERT_TRUE(run) << name << " " << device << ": " << to_string(run.error());
      EXPECT_TRUE(same_bits(run->outputs, network.expected)) << name << " " << device;
    }
  }
}

}  // namespace
}  // namespace tilewright::e2e
