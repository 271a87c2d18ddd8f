// Scheduled layers against the interpreter: as a loop program, and as a VTA program on fsim.
#include "tilewright/rules/vta/schedule.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tilewright/accel/vta/check.h"
#include "tilewright/accel/vta/sim/fsim.h"
#include "tilewright/base/rng.h"
#include "tilewright/codegen/vta/vta.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/rules/vta/testing/layers.h"

namespace tilewright::rules {
namespace {

using vta::Mem;

vta::Config small_config(int log_batch, int log_block) {
  vta::Config c;
  c.log_batch = log_batch;
  c.log_block_in = c.log_block_out = log_block;
  c.log_uop_buff = 13;
  c.log_inp_buff = 12 + log_batch;
  c.log_wgt_buff = 13;
  c.log_acc_buff = 13 + log_batch;
  return c;
}

/// The program of `scheduled` with the arguments in DRAM.
Result<vta::Program> program_of(const Func& scheduled, const interp::Arguments& arguments,
                                const vta::Config& config) {
  vta::Builder builder(config);
  std::vector<uint64_t> addresses;
  for (const Param& p : scheduled.params) {
    const std::string& name = p.buffer.name();
    int64_t bytes = storage_bytes(p.buffer.dtype(), 1);
    for (const Expr& e : p.buffer.shape()) bytes *= *as_int(e);
    addresses.push_back(TW_TRY(builder.allocate(name, static_cast<uint64_t>(bytes))));
    if (p.mode == ParamMode::Out) {
      builder.add_output({name, addresses.back(), static_cast<uint64_t>(bytes)});
    } else {
      const Array& values = arguments.arrays.at(name);
      builder.write(addresses.back(),
                    {static_cast<const char*>(values.data()), static_cast<size_t>(values.bytes())});
    }
  }
  TW_TRY_STATUS(codegen::emit_vta(scheduled, addresses, codegen::VtaOptions{}, builder));
  return builder.finish();
}

/// The result of the device is the interpreter's of `func`, and the checker has nothing to say.
void expect_same_on_device(const Func& func, const Func& scheduled, const vta::Config& config) {
  const interp::Arguments arguments = random_arguments(func, 5);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << to_string(expected.error());
  const auto program = program_of(scheduled, arguments, config);
  ASSERT_TRUE(program) << to_string(program.error()) << "\n" << print(scheduled);
  for (const vta::Finding& f : vta::check_program(*program)) ADD_FAILURE() << f.text;
  const auto device = vta::make_fsim(config, program->end());
  const auto report = vta::execute(*device, *program);
  ASSERT_TRUE(report) << to_string(report.error());
  for (const vta::Region& region : program->outputs) {
    const Array& want = expected->outputs.at(region.name);
    Array got(want.dtype(), want.shape());
    ASSERT_TRUE(device->read(region.address, static_cast<char*>(got.data()), region.bytes));
    EXPECT_TRUE(identical(got, want)) << print(scheduled);
  }
}

void expect_right(const Func& func, const vta::Config& config, const VtaMapping& mapping) {
  SCOPED_TRACE(to_string(mapping));
  const auto trace = vta_trace(func, config, mapping);
  ASSERT_TRUE(trace) << to_string(trace.error());
  Func now = func;
  for (const schedule::Step& step : *trace) {
    const auto next = schedule::apply(step, now);
    ASSERT_TRUE(next) << to_string(next.error());
    now = *next;
    ASSERT_TRUE(verify(now, Stage::Scheduled)) << schedule::print(step) << "\n" << print(now);
  }
  // Only copies of the image have guards, at its edge.
  std::istringstream lines(print(now));
  for (std::string line; func.name != "pool" && std::getline(lines, line);)
    EXPECT_TRUE(line.find(" where ") == std::string::npos ||
                line.find("block pad") != std::string::npos ||
                line.find("block x.inp") != std::string::npos)
        << line;
  expect_same_on_device(func, now, config);
  // As a loop program it means the same too.
  const interp::Arguments arguments = random_arguments(func, 6);
  const auto want = interp::run(func, arguments), got = interp::run(now, arguments);
  ASSERT_TRUE(want && got);
  EXPECT_TRUE(identical(got->outputs.at("y"), want->outputs.at("y"))) << print(now);
}

/// A mapping at random; most fit.
VtaMapping random_mapping(Rng& rng, const VtaLayer& layer) {
  VtaMapping m;
  for (size_t i = 0; i < kTileAxes; ++i) {
    const bool taps = i >= static_cast<size_t>(TileAxis::R);
    do m.tile[i] = rng.between(1, layer.extent[i]);
    while (taps && layer.extent[i] % m.tile[i] != 0);
    if (m.tile[i] < layer.extent[i])
      m.order.insert(m.order.begin() + rng.between(0, static_cast<int64_t>(m.order.size())),
                     static_cast<TileAxis>(i));
  }
  const auto size = static_cast<int64_t>(m.order.size());
  m.input_depth = static_cast<int>(rng.between(0, size));
  m.weight_depth = static_cast<int>(rng.between(0, size));
  for (int64_t i = rng.between(0, 2); i > 0; --i) m.tail.push_back(rng.between(1, 2));
  m.copies = static_cast<int>(rng.between(1, 3));
  m.result_copies = static_cast<int>(rng.between(1, 2));
  return m;
}

TEST(VtaTrace, RandomMappingsOfSmallLayersAreRight) {
  Rng rng(3);
  const std::vector<TestLayer> layers = {
      {.in = 2, .out = 3, .h = 5, .w = 4, .kernel = 3, .pad = 1},
      {.n = 2, .in = 3, .out = 2, .h = 5, .w = 5, .kernel = 1, .stride = 2},
      {.in = 2, .out = 2, .h = 7, .w = 6, .kernel = 3, .stride = 2, .pad = 1, .residual = true},
  };
  int tried = 0;
  for (const TestLayer& l : layers) {
    for (int i = 0; i < 6; ++i) {
      const vta::Config config = small_config(i % 2, 2 + i % 2);
      const Func func = make_layer(l, config);
      const VtaLayer layer = facts_of(func);
      const VtaMapping m = random_mapping(rng, layer);
      if (!need(layer, m, config).fits(config)) continue;
      expect_right(func, config, m);
      ++tried;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(tried, 16);
}

TEST(VtaTraceSlow, BestMappingsFitAndAreRight) {
  const vta::Config config = small_config(0, 2);
  const std::vector<TestLayer> layers = {
      {.in = 6, .out = 9, .h = 9, .w = 8, .kernel = 3, .pad = 1, .residual = true},
      {.in = 40, .out = 30, .h = 1, .w = 1},  // a dense layer
      {.in = 5, .out = 5, .h = 9, .w = 9, .kernel = 3, .pad = 1, .groups = 5},
      {.n = 12, .in = 1, .out = 1, .h = 5, .w = 5, .kernel = 5},  // a mean
  };
  for (const TestLayer& l : layers) {
    const Func func = make_layer(l, config);
    for (int copies : {1, 2}) {
      MappingOptions options;
      options.max_copies = copies;
      const auto m = best_mapping(facts_of(func), config, options);
      ASSERT_TRUE(m) << to_string(m.error());
      expect_right(func, config, *m);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(VtaTraceSlow, WindowsCutIntoTapsAreRight) {
  for (const auto& [name, test, config] : cut_windows()) {
    SCOPED_TRACE(name);
    const Func func = make_layer(test, config);
    for (const bool extended : {false, true}) {
      vta::Config design = config;
      if (extended) design.extensions = vta::builtin_config("vta-extended")->extensions;
      const auto m = best_mapping(facts_of(func), design);
      ASSERT_TRUE(m) << to_string(m.error());
      EXPECT_LT(m->tile[TileAxis::R] * m->tile[TileAxis::S], test.kernel * test.kernel);
      expect_right(func, design, *m);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(VtaTrace, CopiesOfTheInputAreAsLargeAsTheirNeed) {
  // Three rows of results in tiles of two: the copy around both holds what three rows read.
  const vta::Config config = tiny_config(8, 6, 6, 7);
  const Func ragged = make_layer(
      {.n = 2, .in = 4, .out = 2, .h = 9, .w = 9, .kernel = 4, .stride = 2, .groups = 2}, config);
  VtaMapping m;
  m.tile = {{1, 1, 2, 3, 1, 4, 4}};
  m.order = {TileAxis::N, TileAxis::O, TileAxis::C, TileAxis::H};
  m.input_depth = m.weight_depth = 3;
  m.copies = m.result_copies = 1;
  EXPECT_EQ(need(facts_of(ragged), m, config).inp, 64);
  expect_right(ragged, config, m);
  // One channel block of each of two groups: the copy holds the one between.
  const Func groups = make_layer(
      {.in = 4, .out = 2, .h = 7, .w = 3, .kernel = 5, .stride = 2, .pad = 2, .groups = 2}, config);
  m.tile = {{1, 2, 1, 2, 1, 1, 1}};
  m.order = {TileAxis::C, TileAxis::H, TileAxis::R, TileAxis::S};
  m.copies = m.result_copies = 2;
  EXPECT_EQ(need(facts_of(groups), m, config).inp, 2 * 3 * 7);
  expect_right(groups, config, m);
}

TEST(VtaTraceSlow, RandomWindowsInTinyMemoriesAreRight) {
  Rng rng(991);
  int cut = 0, refused = 0;
  for (int i = 0; i < 100; ++i) {
    TestLayer l;
    l.kernel = rng.between(2, 6), l.stride = rng.between(1, 2), l.dilation = rng.between(1, 2);
    l.pad = rng.between(0, l.kernel - 1), l.residual = rng.chance(0.2);
    l.groups = rng.chance(0.2) ? 2 : 1;
    l.n = rng.between(1, 2), l.in = l.groups * rng.between(1, 2), l.out = 2 * rng.between(1, 2);
    const int64_t window = (l.kernel - 1) * l.dilation + 1;
    l.h = std::max<int64_t>(1, window - 2 * l.pad) + rng.between(2, 6);
    l.w = std::max<int64_t>(1, window - 2 * l.pad) + rng.between(2, 6);
    const auto log_elements = [&](int most) { return static_cast<int>(rng.between(2, most)); };
    vta::Config config =
        tiny_config(log_elements(6), log_elements(8), log_elements(5), log_elements(7));
    if (rng.chance(0.3)) config.extensions = vta::builtin_config("vta-extended")->extensions;
    const Func func = make_layer(l, config);
    const auto m = best_mapping(facts_of(func), config);
    if (!m) {
      EXPECT_EQ(m.error().kind, ErrorKind::Capacity) << to_string(m.error());
      ++refused;
      continue;
    }
    cut += m->tile[TileAxis::R] * m->tile[TileAxis::S] < l.kernel * l.kernel ? 1 : 0;
    expect_right(func, config, *m);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(cut, 65);
  EXPECT_LE(refused, 8);
}

TEST(VtaTrace, PoolingIsRight) {
  const vta::Config config = small_config(0, 2);
  for (const auto& [kernel, stride, pad] :
       {std::tuple{3, 2, 1}, std::tuple{2, 2, 0}, std::tuple{3, 1, 1}}) {
    const Func func = make_pool(3, 9, 8, kernel, stride, pad, config);
    const VtaLayer layer = facts_of(func);
    EXPECT_FALSE(layer.conv);
    const auto best = best_mapping(layer, config);
    ASSERT_TRUE(best) << to_string(best.error());
    expect_right(func, config, *best);
    VtaMapping ragged;
    ragged.tile = {{1, 2, 2, layer.extent[TileAxis::W] - 1, 1, kernel, kernel}};
    ragged.order = {TileAxis::W, TileAxis::O, TileAxis::H};
    expect_right(func, config, ragged);
    if (HasFatalFailure()) return;
  }
}

TEST(VtaTrace, SaysWhatHasNoMapping) {
  const auto func = parse_func(
      "func add(a: i8[4], out y: i8[4]) {\n  for y.i in 4 {\n"
      "    block y(i: space 4 = y.i) { y[i] = a[i] + 1i8 }\n  }\n}\n");
  ASSERT_TRUE(func) << to_string(func.error());
  const auto trace = vta_trace(*func, vta::Config(), VtaMapping());
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::Unsupported);
  const Func conv = make_layer({.in = 2}, vta::Config());
  VtaMapping outside;
  outside.tile[0] = 2;
  EXPECT_EQ(vta_trace(conv, vta::Config(), outside).error().kind, ErrorKind::Invalid);
  const Func window = make_layer({.kernel = 3, .pad = 1}, vta::Config());
  VtaMapping ragged;
  ragged.tile = facts_of(window).extent;
  ragged.tile[TileAxis::R] = 2;
  EXPECT_EQ(vta_trace(window, vta::Config(), ragged).error().kind, ErrorKind::Invalid);
}

}  // namespace
}  // namespace tilewright::rules
