// The scheduled convolution computes what the tensor form does, for every shape of strip.
#include "tilewright/rules/cpu/winograd.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/graph/ir/builder.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/cpu/conv_algorithm.h"

namespace tilewright::rules {
namespace {

hw::CpuTarget winograd_schedule_target_of(int vector_registers) {
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = vector_registers;
  target.l2_bytes = 1 << 15;
  target.rates = hw::assumed_rates(16, 2);
  return target;
}

Array integers(Rng& rng, const Shape& shape) {
  Array array(DType::F32, shape);
  for (int64_t i = 0; i < array.size(); ++i) array.set(i, static_cast<double>(rng.between(-4, 4)));
  return array;
}

struct WinogradScheduleCase {
  int64_t m, height, width;
  int threads, registers;
  bool residual;
  int64_t batch = 1;
  int64_t taps_h = 3, taps_w = 3;
  int64_t filter_blocks = 3;
  int64_t filter_sets = 1;  ///< image i uses set i % filter_sets
};

/// conv [+ residual] + relu on 8 channels, in blocks of 4.
Func conv_func(const WinogradScheduleCase& c) {
  graph::Builder b("net");
  const graph::ValueId x = b.input("x", DType::F32, {c.batch, 2, c.height, c.width, 4});
  const auto points = [&](int64_t taps) { return taps == 1 ? 1 : c.m + taps - 1; };
  const graph::ValueId u = b.input(
      "u", DType::F32, {c.filter_sets * c.filter_blocks, points(c.taps_h), points(c.taps_w), 8, 4});
  const int64_t h = c.taps_h / 2, w = c.taps_w / 2;
  const graph::ValueId bias = b.input("bias", DType::F32, {4 * c.filter_sets * c.filter_blocks});
  graph::ValueId y = b.node(
      "WinogradConvBlocked", {x, u, bias},
      {{"pads", std::vector<int64_t>{h, w, h, w}}, {"m", c.m}, {"filter_sets", c.filter_sets}},
      "conv", "tilewright");
  if (c.residual)
    y = b.node("Add",
               {y, b.input("r", DType::F32, {c.batch, c.filter_blocks, c.height, c.width, 4})});
  b.output(b.node("Relu", {y}), "y");
  Result<graph::Graph> graph = b.finish();
  EXPECT_TRUE(graph) << to_string(graph.error());
  const std::vector<graph::Group> groups = graph::fuse(*graph);
  EXPECT_EQ(groups.size(), 1u);
  return graph::group_func(*graph, groups[0])->func;
}

/// Compares what `trace` makes of the convolution with its tensor form.
void expect_same(const Func& func, const schedule::Trace& trace, const std::string& what) {
  Rng rng(3);
  const Result<Func> scheduled = schedule::replay(func, trace);
  ASSERT_TRUE(scheduled) << what << to_string(scheduled.error());
  interp::Arguments arguments;
  for (const Param& param : func.params)
    if (param.mode != ParamMode::Out) {
      Shape shape;
      for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
      arguments.arrays[param.buffer.name()] = integers(rng, shape);
    }
  const auto expected = interp::run(func, arguments);
  interp::Options check;
  check.check = true;
  const auto actual = interp::run(*scheduled, arguments, check);
  ASSERT_TRUE(expected && actual) << what;
  EXPECT_TRUE(actual->findings.empty()) << what << actual->findings[0].text;
  const Array &want = expected->outputs.begin()->second, &got = actual->outputs.begin()->second;
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(want.get(i), got.get(i), 1e-3 * (1 + std::abs(want.get(i)))) << what << " " << i;
    largest = std::max(largest, want.get(i));
  }
  EXPECT_GT(largest, 1) << what;
}

TEST(WinogradScheduleSlow, KeepsTheMeaning) {
  const std::vector<WinogradScheduleCase> cases = {
      {4, 8, 8, 1, 32, false},          {4, 7, 9, 1, 32, true},
      {4, 14, 14, 2, 16, true},         {4, 7, 7, 2, 32, false},
      {2, 6, 5, 1, 16, false},          {2, 7, 7, 2, 16, true},
      {6, 13, 12, 2, 32, false},        {4, 5, 40, 1, 32, true},
      {2, 13, 11, 1, 16, false},        {4, 9, 8, 2, 32, true, 3},
      {2, 3, 24, 3, 32, false, 2},      {4, 5, 9, 2, 32, true, 1, 1, 7},
      {4, 9, 5, 1, 16, false, 1, 7, 1}, {4, 8, 8, 2, 32, false, 1, 1, 3},
      {4, 7, 6, 2, 32, true, 1, 5, 5},  {2, 6, 7, 1, 32, false, 2, 3, 5},
      {2, 1, 75, 2, 32, true, 1, 1, 9}, {4, 1, 141, 1, 32, false, 1, 1, 3},
  };
  for (const WinogradScheduleCase& c : cases) {
    const std::string what = fmt::format("m {} {}x{} by {}x{} threads {}", c.m, c.height, c.width,
                                         c.taps_h, c.taps_w, c.threads);
    const Func func = conv_func(c);
    const hw::CpuTarget target = winograd_schedule_target_of(c.registers);
    const Answer<schedule::Trace> trace = winograd_trace(func, target, c.threads);
    ASSERT_TRUE(trace) << what;
    expect_same(func, *trace, what);
    if (HasFatalFailure()) return;
    const Result<Func> scheduled = schedule::replay(func, *trace);
    // Sums of a register tile, and what one side's inverse finishes, stay in registers.
    const std::string text = print(*scheduled);
    EXPECT_EQ(text.find("wino_rows") == std::string::npos, c.taps_h == 1 || c.taps_w == 1) << what;
  }
}

TEST(WinogradSchedule, TakesSeveralImagesInOneStrip) {
  const hw::CpuTarget target = winograd_schedule_target_of(32);
  for (const bool by_filters : {false, true})
    for (const int64_t group : {1, 2, 4}) {
      const WinogradScheduleCase c{2, 5, 6, 2, 32, true, 4, 3, 3, 4};
      const Func func = conv_func(c);
      const cost::WinogradPlan plan{{2, 3, 3}, group, 4, 1, by_filters, {}};
      const auto trace = winograd_trace(func, target, 2, nullptr, &plan);
      ASSERT_TRUE(trace) << group;
      expect_same(func, *trace, fmt::format("groups of {}, by filters: {}", group, by_filters));
      // Weights of one point stay while all images pass: the loop over images is inside points.
      const Result<Func> scheduled = schedule::replay(func, *trace);
      const std::string text = print(*scheduled);
      EXPECT_THAT(text, ::testing::ContainsRegex("wino_sum.wb.y in 4.* wino_sum.wb.n in 2"))
          << text;
    }
}

TEST(WinogradSchedule, KnowsWhoseFiltersDiffer) {
  const hw::CpuTarget target = winograd_schedule_target_of(32);
  WinogradScheduleCase c{2, 5, 6, 1, 32, false, 4};
  EXPECT_TRUE(winograd_shape(conv_func(c), target)->shared);
  c.filter_sets = 2;
  const auto shape = winograd_shape(conv_func(c), target);
  ASSERT_TRUE(shape);
  EXPECT_FALSE(shape->shared);
}

/// Names of the loops that run in parallel.
std::vector<std::string> parallel_loops(const schedule::Trace& trace) {
  std::vector<std::string> loops;
  for (const schedule::Step& step : trace)
    if (const auto* parallel = std::get_if<schedule::Parallel>(&step))
      loops.push_back(parallel->loop);
  return loops;
}

TEST(WinogradSchedule, DividesFiltersOrStrips) {
  // With a cache that holds nothing, two workers read half of the weights each.
  hw::CpuTarget target = winograd_schedule_target_of(32);
  target.l2_bytes = 1 << 10;
  target.rates.fork_join_ns = 0;
  target.rates.dram = {1e-3, 2e-3};
  const Func func = conv_func({4, 8, 8, 2, 32, false});
  const auto filters = winograd_trace(func, target, 2);
  ASSERT_TRUE(filters);
  EXPECT_THAT(parallel_loops(*filters), ::testing::ElementsAre("wino_in.co", "y0.i1.o"));
  // Groups that can be shared out evenly: each worker transforms the input for its own.
  const auto even = winograd_trace(conv_func({4, 8, 8, 2, 32, false, 1, 3, 3, 8}), target, 2);
  ASSERT_TRUE(even);
  EXPECT_THAT(parallel_loops(*even), ::testing::ElementsAre("y0.i1.o.o"));
  // Where joins cost most, they share nothing but the image.
  target.rates.fork_join_ns = 1e9;
  const auto strips = winograd_trace(func, target, 2);
  ASSERT_TRUE(strips);
  EXPECT_THAT(parallel_loops(*strips), ::testing::ElementsAre("y0.i0*y0.i2.o*y0.i3.o"));
}

TEST(WinogradSchedule, LeavesOthersAlone) {
  graph::Builder b("net");
  b.output(b.node("Relu", {b.input("x", DType::F32, {4, 4})}), "y");
  const auto graph = b.finish();
  const Func func = graph::group_func(*graph, graph::fuse(*graph)[0])->func;
  EXPECT_FALSE(winograd_trace(func, winograd_schedule_target_of(32), 1));
}

TEST(ConvAlgorithm, FollowsTheArithmetic) {
  hw::CpuTarget target = winograd_schedule_target_of(32);
  target.vector_bytes = 64;
  target.l2_bytes = 1 << 20;
  const auto gain = [&](int64_t channels) {
    const tensor::Conv2dShape conv{1, channels, channels, 56, 56};
    return predict_conv(conv, 0, target, 1).total() / predict_conv(conv, 4, target, 1).total();
  };
  // Large images: four times fewer products. Few channels: transforms cost what products save.
  EXPECT_EQ(winograd_tile({1, 256, 256, 56, 56}, target, 1), 4);
  EXPECT_GT(gain(256), 2.8);
  EXPECT_LT(gain(16), 0.9 * gain(256));
  // One side: 10 points for 4 outputs of 7 taps; both sides of 5x5: 64 for 16 of 25.
  EXPECT_EQ(winograd_tile({1, 192, 192, 17, 17, 1, 7}, target, 1), 4);
  EXPECT_EQ(winograd_tile({1, 192, 192, 17, 17, 7, 1}, target, 1), 4);
  EXPECT_EQ(winograd_tile({1, 128, 128, 36, 36, 5, 5}, target, 1), 4);
  EXPECT_EQ(winograd_tiles({1, 64, 64, 9, 9, 3, 3}), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(winograd_tiles({1, 64, 64, 9, 9, 1, 3}), (std::vector<int64_t>{2, 3, 4, 6}));
  EXPECT_EQ(winograd_tiles({1, 64, 64, 9, 9, 7, 7}), (std::vector<int64_t>{2}));
  EXPECT_EQ(winograd_tiles({1, 64, 64, 9, 9, 2, 3}), (std::vector<int64_t>{3, 4}));
  // 389 tiles in a row, a prime number: a few more come out in even strips.
  EXPECT_EQ(winograd_tile({1, 256, 512, 1, 778, 1, 9}, target, 2), 2);
  // A single pixel needs a whole tile.
  EXPECT_EQ(winograd_tile({1, 64, 64, 1, 1}, target, 1), 0);
  // 37 MB of transformed weights for one tile are not worth reading.
  EXPECT_NE(winograd_tile({1, 512, 512, 2, 2}, target, 1), 4);
  const cost::Prediction direct = predict_conv({1, 64, 64, 56, 56}, 0, target, 1);
  EXPECT_NEAR(predict_conv({1, 64, 64, 56, 56}, 0, target, 2).compute, direct.compute / 2, 1e-6);
}

TEST(ConvAlgorithm, SeesDilatedWindowsWhereTheyLie) {
  hw::CpuTarget target = winograd_schedule_target_of(32);
  target.vector_bytes = 64;
  target.l2_bytes = 1 << 20;
  const tensor::Conv2dShape far{1, 64, 64, 42, 42, 3, 3, 14, 14}, near{1, 64, 64, 42, 42, 3, 3};
  // The direct form has rows of 42 pixels, not those of 3 that phases have.
  EXPECT_NEAR(predict_conv(far, 0, target, 1).compute, predict_conv(near, 0, target, 1).compute,
              1e-6);
  EXPECT_EQ(far.phases(), (tensor::Conv2dShape{196, 64, 64, 3, 3, 3, 3}));
  // Taking phases apart and putting them together costs something.
  EXPECT_GT(predict_conv(far, 3, target, 1).total(),
            predict_conv(far.phases(), 3, target, 1).total());
}

TEST(ConvAlgorithm, PaddingThatIsLeftOutIsNotRead) {
  hw::CpuTarget target = winograd_schedule_target_of(32);
  target.vector_bytes = 64;
  target.l2_bytes = 2 << 20;
  const tensor::Conv2dShape far{1, 1616, 272, 26, 27, 3, 3, 6, 6, 6, 6, 26, 27};
  ASSERT_TRUE(direct_form(far, target, 2).skip);
  // The input is read from L3 once for each vector of filters and row of the window at most.
  const double input = 4.0 * 1616 * 26 * 27;
  const hw::CpuRates rates = target.rates_or_assumed();
  EXPECT_LT(predict_conv(far, 0, target, 1).l3, 17 * 3 * input / rates.l3.of(1));
  EXPECT_EQ(winograd_tile(far, target, 2), 0);
}

TEST(ConvAlgorithm, ReadsBlocksWhereWeightsLeaveTheCache) {
  hw::CpuTarget target = winograd_schedule_target_of(32);
  target.vector_bytes = 64;
  target.l2_bytes = 1 << 20;
  const tensor::DirectForm few = direct_form({1, 64, 64, 33, 33}, target, 2);
  EXPECT_EQ(few.parts, 1);
  EXPECT_TRUE(few.rows);
  const tensor::Conv2dShape deep{1, 2048, 512, 33, 33, 3, 3, 16, 16};
  const tensor::DirectForm form = direct_form(deep, target, 2);
  EXPECT_EQ(2048 / 16 % form.parts, 0);
  // Whole or in parts, lines of blocks are read whole, those of plain channels in part.
  EXPECT_FALSE(form.rows);
}

}  // namespace
}  // namespace tilewright::rules
