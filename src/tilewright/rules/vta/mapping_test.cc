// The closed-form model: against the cycle simulator, and its search against trying everything.
#include "tilewright/rules/vta/mapping.h"

#include <gtest/gtest.h>

#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/rules/vta/model.h"
#include "tilewright/rules/vta/testing/layers.h"

namespace tilewright::rules {
namespace {

vta::Config small_config() {
  vta::Config c;
  c.log_block_in = c.log_block_out = 2;
  c.log_uop_buff = 12, c.log_inp_buff = 9, c.log_wgt_buff = 10, c.log_acc_buff = 11;
  return c;
}

/// A convolution of ResNet-18. source: VTA paper, table 1.
struct ResNetLayer {
  const char* name;
  TestLayer layer;
  int repeats;  ///< in the network; C3 is in the paper's table only
};
const std::vector<ResNetLayer> kResNet = {
    {"C2", {.in = 4, .out = 4, .h = 56, .w = 56, .kernel = 3, .pad = 1}, 4},
    {"C3", {.in = 4, .out = 4, .h = 56, .w = 56}, 0},
    {"C4", {.in = 4, .out = 8, .h = 56, .w = 56, .kernel = 3, .stride = 2, .pad = 1}, 1},
    {"C5", {.in = 4, .out = 8, .h = 56, .w = 56, .stride = 2}, 1},
    {"C6", {.in = 8, .out = 8, .h = 28, .w = 28, .kernel = 3, .pad = 1}, 3},
    {"C7", {.in = 8, .out = 16, .h = 28, .w = 28, .kernel = 3, .stride = 2, .pad = 1}, 1},
    {"C8", {.in = 8, .out = 16, .h = 28, .w = 28, .stride = 2}, 1},
    {"C9", {.in = 16, .out = 16, .h = 14, .w = 14, .kernel = 3, .pad = 1}, 3},
    {"C10", {.in = 16, .out = 32, .h = 14, .w = 14, .kernel = 3, .stride = 2, .pad = 1}, 1},
    {"C11", {.in = 16, .out = 32, .h = 14, .w = 14, .stride = 2}, 1},
    {"C12", {.in = 32, .out = 32, .h = 7, .w = 7, .kernel = 3, .pad = 1}, 3},
};

struct Simulated {
  uint64_t cycles = 0, gemm_steps = 0;  ///< of the network's C2 to C12
};

/// Maps, schedules and simulates every layer; each must take the time that the model says.
Simulated expect_predicted(const vta::Config& config) {
  Simulated total;
  for (const auto& [name, test, repeats] : kResNet) {
    SCOPED_TRACE(name);
    const Func func = make_layer(test, config);
    const VtaLayer layer = facts_of(func);
    const auto m = best_mapping(layer, config);
    EXPECT_TRUE(m) << to_string(m.error());
    SCOPED_TRACE(to_string(*m));
    const auto trace = vta_trace(func, config, *m);
    EXPECT_TRUE(trace) << to_string(trace.error());
    const auto cycles = vta_cycles(func, *trace, config);
    EXPECT_TRUE(cycles) << to_string(cycles.error());
    const auto predicted = static_cast<double>(predict(layer, *m, config).cycles);
    EXPECT_NEAR(predicted / static_cast<double>(*cycles), 1, 0.03) << *cycles << " cycles";
    EXPECT_GE(*cycles, static_cast<uint64_t>(layer_bound(layer, config)));
    int64_t steps = 1;
    for (const int64_t extent : layer.extent) steps *= extent;
    total.cycles += *cycles * static_cast<uint64_t>(repeats);
    total.gemm_steps += static_cast<uint64_t>(steps * repeats);
  }
  return total;
}

TEST(VtaMappingSlow, PredictsTheSimulatorOnResNetLayers) {
  EXPECT_LE(expect_predicted(vta::Config()).cycles, 7'302'748u);
}

TEST(VtaMappingSlow, PredictsTheSimulatorOfTheExtendedDesign) {
  const Simulated total = expect_predicted(*vta::builtin_config("vta-extended"));
  EXPECT_LE(total.cycles, 6'660'000u);
  EXPECT_GE(static_cast<double>(total.gemm_steps), 0.99 * static_cast<double>(total.cycles));
}

TEST(VtaMapping, PredictsTheSimulatorWhereWindowsAreCut) {
  for (const auto& [name, test, config] : cut_windows()) {
    SCOPED_TRACE(name);
    const Func func = make_layer(test, config);
    const VtaLayer layer = facts_of(func);
    const auto m = best_mapping(layer, config);
    ASSERT_TRUE(m) << to_string(m.error());
    SCOPED_TRACE(to_string(*m));
    const auto trace = vta_trace(func, config, *m);
    ASSERT_TRUE(trace) << to_string(trace.error());
    const auto cycles = vta_cycles(func, *trace, config);
    ASSERT_TRUE(cycles) << to_string(cycles.error());
    const auto predicted = static_cast<double>(predict(layer, *m, config).cycles);
    EXPECT_NEAR(predicted / static_cast<double>(*cycles), 1, 0.03) << *cycles << " cycles";
    EXPECT_GE(*cycles, static_cast<uint64_t>(layer_bound(layer, config)));
  }
}

TEST(VtaMapping, SearchFindsWhatTryingEverythingFinds) {
  const vta::Config config = small_config();
  const std::vector<TestLayer> layers = {
      {.in = 2, .out = 3, .h = 4, .w = 3, .kernel = 3, .pad = 1},
      {.in = 3, .out = 2, .h = 6, .w = 3, .stride = 2, .residual = true},
      {.n = 3, .in = 2, .out = 2, .h = 2, .w = 2},
  };
  for (const TestLayer& l : layers) {
    const VtaLayer layer = facts_of(make_layer(l, config));
    for (int copies : {1, 2}) {
      MappingOptions everything;
      everything.prune = false;
      everything.budget = INT64_MAX;
      everything.max_copies = copies;
      MappingOptions pruned = everything;
      pruned.prune = true;
      const auto want = best_mapping(layer, config, everything);
      const auto got = best_mapping(layer, config, pruned);
      ASSERT_TRUE(want && got);
      EXPECT_EQ(to_string(*got), to_string(*want));
    }
  }
}

TEST(VtaMapping, LatencyHidingHelps) {
  const vta::Config config;
  const VtaLayer layer = facts_of(make_layer(kResNet.back().layer, config));
  const auto m = best_mapping(layer, config);
  ASSERT_TRUE(m);
  VtaMapping one = *m;
  one.copies = one.result_copies = 1;
  EXPECT_LT(predict(layer, *m, config).cycles * 5, predict(layer, one, config).cycles * 4);
}

TEST(VtaMapping, SaysWhatDoesNotFit) {
  vta::Config config = small_config();
  config.log_inp_buff = 3;  // two elements: steps on one accumulator are three apart
  const VtaLayer layer = facts_of(make_layer({.h = 4, .w = 4, .kernel = 3, .pad = 1}, config));
  const auto m = best_mapping(layer, config);
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().kind, ErrorKind::Capacity);
  EXPECT_NE(m.error().why.find("INP 3"), std::string::npos) << m.error().why;
}

TEST(VtaMapping, ReadsFactsOfALayer) {
  const vta::Config config;
  const VtaLayer layer = facts_of(make_layer({.n = 2,
                                              .in = 4,
                                              .out = 6,
                                              .h = 9,
                                              .w = 8,
                                              .kernel = 3,
                                              .stride = 2,
                                              .pad = 1,
                                              .groups = 2,
                                              .residual = true},
                                             config));
  EXPECT_EQ((std::vector<int64_t>(layer.extent.begin(), layer.extent.end())),
            (std::vector<int64_t>{2, 6, 5, 4, 2, 3, 3}));
  EXPECT_EQ(layer.out_per_group, 3);
  EXPECT_EQ(layer.stride_h, 2);
  EXPECT_EQ(layer.in_h, 9);
  EXPECT_EQ(layer.pad_top, 1);
  EXPECT_EQ(layer.vectors, 1);
  EXPECT_EQ(layer.residuals, 1);
  EXPECT_EQ(layer.imm_ops, 3);
}

TEST(VtaMapping, PiecesCountFromTheEnd) {
  EXPECT_EQ(piece_sizes(10, {}), (std::vector<int64_t>{10}));
  EXPECT_EQ(piece_sizes(10, {3, 1}), (std::vector<int64_t>{6, 3, 1}));
  EXPECT_EQ(piece_sizes(3, {3, 1}), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(piece_sizes(1, {3, 1}), (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace tilewright::rules
