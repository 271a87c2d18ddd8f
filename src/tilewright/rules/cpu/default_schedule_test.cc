// Operators scheduled by rule compute what their tensor form does, for shapes that fill no tile.
#include "tilewright/rules/cpu/default_schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/passes.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/tensor/op.h"

namespace tilewright::rules {
namespace {

using Ints = std::vector<int64_t>;

hw::CpuTarget target_of(int vector_registers) {
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = vector_registers;
  return target;
}

void expect_close(const Array& want, const Array& got, const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(want.get(i), got.get(i), 1e-4 * (1 + std::abs(want.get(i)))) << what << " " << i;
    largest = std::max(largest, std::abs(want.get(i)));
  }
  EXPECT_GT(largest, 1e-3) << what;
}

void expect_same_meaning(const OpCase& c) {
  const Func func = func_of(c);
  const interp::Arguments arguments = quarters(func);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected) << c.op;
  for (const int threads : {1, 2})
    for (const int registers : {16, 32}) {
      std::string what = fmt::format("{} threads {} registers {}", c.op, threads, registers);
      for (const Shape& shape : c.inputs) what += " " + to_string(shape);
      const hw::CpuTarget target = target_of(registers);
      const Result<Func> scheduled = schedule::replay(func, default_trace(func, target, threads));
      ASSERT_TRUE(scheduled) << what << to_string(scheduled.error());
      interp::Options check;
      check.check = true;
      const auto actual = interp::run(*scheduled, arguments, check);
      ASSERT_TRUE(actual) << what << to_string(actual.error());
      EXPECT_TRUE(actual->findings.empty()) << what << actual->findings[0].text;
      expect_close(expected->outputs.begin()->second, actual->outputs.begin()->second, what);
      const Result<Func> lowered = lower::run_pipeline(*scheduled, "cpu");
      ASSERT_TRUE(lowered) << what << to_string(lowered.error());
      const auto last = interp::run(*lowered, arguments);
      ASSERT_TRUE(last) << what << to_string(last.error());
      expect_close(expected->outputs.begin()->second, last->outputs.begin()->second, what);
    }
}

OpCase depthwise(int64_t blocks, Shape size, int64_t kernel, int64_t stride, Ints pads) {
  return {"tilewright",
          "DepthwiseConvBlocked",
          {{1, blocks, size[0], size[1], 4}, {blocks, kernel, kernel, 4}, {4 * blocks}},
          {{"pads", std::move(pads)}, {"strides", Ints{stride, stride}}}};
}

OpCase pool(const std::string& op, Shape size, int64_t kernel, int64_t stride, int64_t pad) {
  return {"tilewright",
          op,
          {{1, 3, size[0], size[1], 4}},
          {{"pads", Ints{pad, pad, pad, pad}},
           {"strides", Ints{stride, stride}},
           {"kernel_shape", Ints{kernel, kernel}}}};
}

TEST(DefaultScheduleSlow, WindowsKeepTheirMeaning) {
  const Ints one = {1, 1, 1, 1}, two = {2, 2, 2, 2};
  for (const OpCase& c :
       {depthwise(3, {9, 19}, 3, 1, one), depthwise(1, {14, 14}, 3, 1, one),
        depthwise(2, {7, 7}, 3, 1, one), depthwise(3, {1, 1}, 3, 1, one),
        depthwise(1, {2, 3}, 3, 1, one), depthwise(3, {13, 30}, 3, 2, one),
        depthwise(1, {12, 12}, 3, 2, {0, 0, 1, 1}), depthwise(2, {11, 13}, 5, 1, two),
        depthwise(1, {9, 8}, 5, 2, two), depthwise(1, {8, 9}, 7, 1, {3, 3, 3, 3}),
        depthwise(1, {10, 10}, 3, 1, {0, 0, 0, 0})})
    expect_same_meaning(c);
  for (const char* op : {"MaxPoolBlocked", "AveragePoolBlocked"})
    for (const OpCase& c : {pool(op, {13, 29}, 3, 2, 1), pool(op, {8, 9}, 3, 1, 1),
                            pool(op, {12, 10}, 2, 2, 0), pool(op, {3, 3}, 3, 2, 1)})
      expect_same_meaning(c);
}

TEST(DefaultScheduleSlow, ConvolutionsKeepTheirMeaning) {
  auto conv = [](int64_t in_blocks, int64_t in_block, int64_t out_blocks, Shape size,
                 int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2;
    return OpCase{"tilewright",
                  "ConvBlocked",
                  {{1, in_blocks, size[0], size[1], in_block},
                   {out_blocks, in_blocks, kernel, kernel, in_block, 4},
                   {4 * out_blocks}},
                  {{"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}}};
  };
  for (const OpCase& c :
       {conv(1, 3, 4, {17, 13}, 7, 2), conv(2, 4, 3, {11, 9}, 3, 2), conv(2, 4, 2, {7, 7}, 1, 1),
        conv(2, 4, 5, {5, 4}, 1, 1), conv(2, 4, 3, {10, 5}, 3, 1), conv(1, 4, 4, {3, 3}, 3, 1),
        conv(1, 4, 2, {8, 6}, 1, 2), conv(3, 4, 5, {8, 9}, 1, 2), conv(1, 4, 4, {14, 15}, 3, 1)})
    expect_same_meaning(c);
  expect_same_meaning({"",
                       "Conv",
                       {{1, 4, 9, 11}, {4, 1, 3, 3}, {4}},
                       {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{4}}}});
}

OpCase dilated(Shape size, Shape kernel, int64_t dilation, int64_t stride = 1) {
  const int64_t rows = dilation * (kernel[0] / 2), columns = dilation * (kernel[1] / 2);
  return {"tilewright",
          "ConvBlocked",
          {{1, 2, size[0], size[1], 4}, {4, 2, kernel[0], kernel[1], 4, 4}, {16}},
          {{"pads", Ints{rows, columns, rows, columns}},
           {"dilations", Ints{dilation, dilation}},
           {"strides", Ints{stride, stride}},
           {"skip_padding", int64_t{1}}}};
}

TEST(DefaultScheduleSlow, ConvolutionsWithoutPaddingKeepTheirMeaning) {
  for (const OpCase& c :
       {dilated({14, 14}, {3, 3}, 6), dilated({9, 13}, {3, 3}, 4), dilated({7, 33}, {3, 3}, 18),
        dilated({12, 17}, {3, 3}, 1), dilated({5, 23}, {5, 5}, 5), dilated({13, 28}, {3, 3}, 12),
        dilated({11, 20}, {3, 3}, 7, 2), dilated({6, 2}, {3, 3}, 2), dilated({2, 1}, {3, 3}, 1)})
    expect_same_meaning(c);
}

/// Products of vectors that `s` computes; extents are constant.
int64_t products_of(const Stmt& s) {
  if (const Store* store = s.as<Store>())
    return store->combine == Combine::Add && store->value.as<Binary>() != nullptr ? 1 : 0;
  int64_t sum = 0;
  for (const Stmt& child : children(s)) sum += products_of(child);
  const For* loop = s.as<For>();
  if (loop == nullptr || loop->kind == ForKind::Vector) return sum;
  const auto extent = as_int(loop->extent);
  EXPECT_TRUE(extent);
  return sum * extent.value_or(0);
}

TEST(DefaultSchedule, TapsInThePaddingAreNotMultiplied) {
  for (const int64_t width : {14, 17, 28, 33})
    for (const int64_t dilation : {1, 5, 12}) {
      const Func func = func_of(dilated({1, width}, {1, 3}, dilation));
      const hw::CpuTarget target = target_of(32);
      const Result<Func> scheduled = schedule::replay(func, default_trace(func, target, 1));
      ASSERT_TRUE(scheduled);
      const Result<Func> lowered = lower::run_pipeline(*scheduled, "cpu");
      ASSERT_TRUE(lowered);
      int64_t taps = 0;
      for (int64_t x = 0; x < width; ++x)
        for (const int64_t at : {x - dilation, x, x + dilation}) taps += at >= 0 && at < width;
      EXPECT_EQ(products_of(lowered->body), taps * 4 * 2 * 4) << width << " " << dilation;
    }
}

TEST(DefaultSchedule, RowsKeepTheirMeaning) {
  for (const Shape& shape :
       {Shape{5, 19}, Shape{3, 64}, Shape{7, 3}, Shape{2, 3, 33}, Shape{40, 17}})
    for (const char* op : {"Softmax", "ReduceSum", "ReduceMax", "ReduceMean"})
      expect_same_meaning({"", op, {shape}, {}});
  for (const int64_t n : {5, 19, 48})
    expect_same_meaning({"", "LayerNormalization", {{6, n}, {n}, {n}}, {}});
  expect_same_meaning({"tilewright", "GlobalAveragePoolBlocked", {{1, 5, 7, 7, 4}}, {}});
}

TEST(DefaultSchedule, MovesKeepTheirMeaning) {
  expect_same_meaning({"", "Transpose", {{3, 50}}, {{"perm", Ints{1, 0}}}});
  expect_same_meaning({"", "Transpose", {{64, 41}}, {{"perm", Ints{1, 0}}}});
  for (const Ints& perm : {Ints{0, 2, 3, 1}, Ints{0, 3, 1, 2}, Ints{3, 2, 1, 0}, Ints{0, 2, 1, 3}})
    expect_same_meaning({"", "Transpose", {{2, 19, 5, 23}}, {{"perm", perm}}});
}

/// Blocks of a window's middle read their input without a test.
TEST(DefaultSchedule, WindowsTestPaddingAtTheBorderOnly) {
  for (const OpCase& c :
       {depthwise(2, {20, 40}, 3, 1, {1, 1, 1, 1}), pool("MaxPoolBlocked", {40, 80}, 3, 2, 1)}) {
    const Func func = func_of(c);
    const hw::CpuTarget target = target_of(32);
    const Result<Func> scheduled = schedule::replay(func, default_trace(func, target, 1));
    ASSERT_TRUE(scheduled);
    const Result<Func> lowered = lower::run_pipeline(*scheduled, "cpu");
    ASSERT_TRUE(lowered);
    int selects = 0, stores = 0;
    walk(
        lowered->body, [&](const Stmt& s) { stores += s.as<Store>() != nullptr; },
        [&](const Expr& e) { selects += e.as<Select>() != nullptr; });
    EXPECT_EQ(selects, 0) << c.op;
    EXPECT_GT(stores, 100) << c.op;
    walk(lowered->body, [&](const Stmt& s) {
      const Alloc* alloc = s.as<Alloc>();
      if (alloc != nullptr) {
        EXPECT_EQ(alloc->buffer.scope(), "local") << alloc->buffer.name();
      }
    });
  }
}

TEST(DefaultScheduleSlow, EveryPointOfAContractionComputesTheSame) {
  const std::vector<OpCase> cases = {
      {"tilewright",
       "ConvBlocked",
       {{1, 2, 9, 9, 4}, {4, 2, 3, 3, 4, 4}, {16}},
       {{"pads", Ints{0, 0, 0, 0}}, {"strides", Ints{1, 1}}}},
      {"tilewright", "GemmPacked", {{13, 24}, {5, 24, 4}, {18}}, {{"n", int64_t{18}}}}};
  hw::CpuTarget target = target_of(32);
  target.l2_bytes = 256;  // so that fetching ahead is worth it
  for (const OpCase& c : cases) {
    const Func func = func_of(c);
    const interp::Arguments arguments = quarters(func);
    const auto expected = interp::run(func, arguments);
    ASSERT_TRUE(expected);
    const std::vector<cost::RankedPoint> points = schedule_points(func, target, 2);
    ASSERT_GE(points.size(), 8u) << c.op;
    for (const cost::RankedPoint& ranked : points) {
      const std::string what = c.op + " " + cost::describe(ranked.point);
      const Result<schedule::Trace> trace = trace_at(func, ranked.point, target, 2);
      ASSERT_TRUE(trace) << what << to_string(trace.error());
      const Result<Func> scheduled = schedule::replay(func, *trace);
      ASSERT_TRUE(scheduled) << what << to_string(scheduled.error());
      const auto actual = interp::run(*scheduled, arguments);
      ASSERT_TRUE(actual) << what << to_string(actual.error());
      expect_close(expected->outputs.begin()->second, actual->outputs.begin()->second, what);
    }
  }
}

/// `blocks` of four filters that read `groups` groups of four channels.
OpCase grouped(int64_t blocks, int64_t groups, int64_t rows = 12) {
  return {"tilewright",
          "ConvBlocked",
          {{1, 4 * groups, rows, 9, 1}, {blocks, 4, 3, 3, 1, 4}, {4 * blocks}},
          {{"pads", Ints{1, 1, 1, 1}}, {"group", groups}}};
}

TEST(DefaultSchedule, BlocksOfFiltersShareThePaddedInputOfTheirGroup) {
  for (const int64_t blocks : {3, 6}) {  // one or two to a group
    expect_same_meaning(grouped(blocks, 3));
    expect_same_meaning(grouped(blocks, 3, 3));  // too few rows for strips
    const Func func = func_of(grouped(blocks, 3));
    const Result<Func> scheduled = schedule::replay(func, default_trace(func, target_of(16), 1));
    ASSERT_TRUE(scheduled) << to_string(scheduled.error());
    const std::vector<BlockFacts> before = collect_blocks(func);
    const int64_t padded = find_block(before, "conv_pad")->work();
    int64_t stored = 0;
    for (const BlockFacts& block : collect_blocks(*scheduled)) {
      int64_t times = 1;
      for (const int64_t extent : block.extents) times *= extent;
      if (block.name.find("conv_pad") == 0) stored += times;
    }
    EXPECT_GT(stored, padded / 2);
    EXPECT_LT(stored, padded * 3 / 2) << print(*scheduled);  // strips have two rows in common
  }
}

/// A tile of several rows cannot be cut from strips of another number of rows: the steps of the
/// tile that the model finds best would not apply, and the next one would be taken.
TEST(DefaultSchedule, StripsHoldWholeTilesOfSeveralRows) {
  for (const auto& [size, window] : {std::pair<int64_t, int64_t>{7, 3}, {8, 5}, {13, 3}}) {
    const int64_t pad = window / 2;
    const OpCase layer = {"tilewright",
                          "ConvBlocked",
                          {{1, 7, size, size, 4}, {7, 1, window, window, 4, 4}, {28}},
                          {{"pads", Ints{pad, pad, pad, pad}}, {"group", int64_t{7}}}};
    const cost::RuleDecision decision = choose_schedule(func_of(layer), target_of(32), 2).decision;
    EXPECT_EQ(decision.chosen.algorithm, "direct");
    EXPECT_THAT(decision.runner_up.tile, ::testing::Not(::testing::HasSubstr("do not apply")));
    expect_same_meaning(layer);
  }
}

TEST(DefaultSchedule, NextWeightsAreFetchedWhereTheyAreConstantAndFitL2) {
  Func func =
      func_of({"tilewright", "GemmPacked", {{90, 24}, {5, 24, 4}, {18}}, {{"n", int64_t{18}}}});
  cost::TilePoint point{6, 2};
  point.ahead = 8;
  const auto marked = [&](int64_t l2_bytes) {
    hw::CpuTarget target = target_of(16);
    target.l2_bytes = l2_bytes;
    const Result<schedule::Trace> trace = trace_at(func, point, target, 1);
    EXPECT_TRUE(trace) << to_string(trace.error());
    std::vector<int64_t> bytes;
    walk(schedule::replay(func, *trace)->body, [&](const Stmt& s) {
      if (const auto* loop = s.as<For>(); loop != nullptr)
        if (const auto value = int_mark(loop->marks, MarkKind::FetchNext)) bytes.push_back(*value);
    });
    return bytes;
  };
  EXPECT_THAT(marked(1 << 20), ::testing::IsEmpty());
  func.params[1].mode = ParamMode::Const;
  constexpr int64_t kPart = 24 * 2 * 4 * 4;  // steps x vectors x lanes x bytes
  EXPECT_THAT(marked(1 << 20),
              ::testing::AllOf(::testing::Not(::testing::IsEmpty()), ::testing::Each(kPart)));
  EXPECT_THAT(marked(2 * kPart), ::testing::IsEmpty());
}

/// Iterations of each parallel loop of the product at a point, for two threads.
std::vector<int64_t> parallel_pieces(const Func& func, const cost::TilePoint& point) {
  const Result<schedule::Trace> trace = trace_at(func, point, target_of(16), 2);
  EXPECT_TRUE(trace) << to_string(trace.error());
  const Result<Func> scheduled = schedule::replay(func, *trace);
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  std::vector<int64_t> pieces;
  walk(scheduled->body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    if (loop != nullptr && loop->kind == ForKind::Parallel)
      pieces.push_back(as_int(loop->extent).value_or(0));
  });
  return pieces;
}

/// Blocks of rows are few, and a partial tile of columns is cut off: the threads get both joined.
TEST(DefaultSchedule, BlocksOfRowsAreSharedOutWithTheColumns) {
  const Func func =
      func_of({"tilewright", "GemmPacked", {{90, 24}, {5, 24, 4}, {18}}, {{"n", int64_t{18}}}});
  // 3 blocks of 5 tiles, by 2 whole tiles of columns and a partial one.
  EXPECT_THAT(parallel_pieces(func, {6, 2, 1, false, 0, 30}),
              ::testing::ElementsAre(3 * 2 * 5, 3 * 5));
}

/// 62 rows are eleven tiles of which the last is partial, in blocks of four; 24 columns are three.
TEST(DefaultSchedule, TilesOfTheLastBlockOfRowsAreSharedOut) {
  const Func func =
      func_of({"tilewright", "GemmPacked", {{62, 24}, {6, 24, 4}, {24}}, {{"n", int64_t{24}}}});
  // Whole blocks; whole tiles of the last one, and its partial ones.
  EXPECT_THAT(parallel_pieces(func, {6, 2, 1, false, 0, 24}),
              ::testing::ElementsAre(2 * 3 * 4, 3 * 2, 3));
}

/// 50 rows are eight tiles of six and one of two: blocks of two and of three tiles end in it.
TEST(DefaultSchedule, TheLastBlockOfRowsMayBeShorter) {
  const Func func =
      func_of({"tilewright", "GemmPacked", {{50, 24}, {4, 24, 4}, {16}}, {{"n", int64_t{16}}}});
  const interp::Arguments arguments = quarters(func);
  const auto expected = interp::run(func, arguments);
  ASSERT_TRUE(expected);
  for (const int64_t block : {12, 15, 24, 48, 49})
    for (const int threads : {1, 2}) {
      cost::TilePoint point{6, 2};
      point.block = block;
      const Result<schedule::Trace> trace = trace_at(func, point, target_of(16), threads);
      ASSERT_TRUE(trace) << block << to_string(trace.error());
      const Result<Func> scheduled = schedule::replay(func, *trace);
      ASSERT_TRUE(scheduled) << block << to_string(scheduled.error());
      EXPECT_EQ(print(*scheduled).find("where"), std::string::npos) << block << print(*scheduled);
      const auto actual = interp::run(*scheduled, arguments);
      ASSERT_TRUE(actual) << block << to_string(actual.error());
      expect_close(expected->outputs.begin()->second, actual->outputs.begin()->second, "blocks");
    }
}

/// A tile of 6x2 vectors takes 15 registers of 16, one of 4x3 all of them.
TEST(DefaultSchedule, StepsAreWrittenOutWhereRegistersAreLeft) {
  const auto written_out = [](int64_t depth, const cost::TilePoint& point, int registers) {
    const Func func = func_of(
        {"tilewright", "GemmPacked", {{84, depth}, {4, depth, 4}, {16}}, {{"n", int64_t{16}}}});
    const auto trace = trace_at(func, point, target_of(registers), 1);
    EXPECT_TRUE(trace) << to_string(trace.error());
    const auto scheduled = schedule::replay(func, *trace);
    EXPECT_TRUE(scheduled) << to_string(scheduled.error());
    int64_t steps = 1;
    walk(scheduled->body, [&](const Stmt& s) {
      const For* loop = s.as<For>();
      if (loop == nullptr || loop->kind != ForKind::Unroll) return;
      if (loop->var.name().find("gemm.k") == 0) steps = as_int(loop->extent).value_or(0);
    });
    return steps;
  };
  EXPECT_EQ(written_out(24, {6, 2}, 16), 4);   // a part of a long loop
  EXPECT_EQ(written_out(33, {6, 2}, 16), 3);   // one that divides it
  EXPECT_EQ(written_out(22, {6, 2}, 16), 1);   // two steps spill
  EXPECT_EQ(written_out(8, {6, 2}, 16), 8);    // a whole loop
  EXPECT_EQ(written_out(8, {12, 1}, 16), 8);   // the same of one column
  EXPECT_EQ(written_out(24, {12, 1}, 16), 1);  // where a part gains nothing
  EXPECT_EQ(written_out(24, {4, 3}, 16), 1);   // no register is left
  EXPECT_EQ(written_out(24, {6, 2}, 32), 1);   // not measured with so many
}

TEST(DefaultSchedule, SaysWhatWasDecidedAndWhatCannotBe) {
  const Func func = func_of(OpCase{"", "MatMul", {{40, 64}, {64, 48}}, {}});
  const hw::CpuTarget target = target_of(32);
  const ScheduleChoice choice = choose_schedule(func, target, 1);
  EXPECT_EQ(choice.decision.chosen.algorithm, "direct");
  EXPECT_GT(choice.decision.candidates, 1);
  EXPECT_LE(choice.decision.chosen.time.total(), choice.decision.runner_up.time.total());
  const Result<schedule::Trace> refused = trace_at(func, {30, 4, 1, false, 0}, target, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::NotApplicable);
  const Func add = func_of(OpCase{"", "Add", {{8}, {8}}, {}});
  EXPECT_FALSE(trace_at(add, {}, target, 1));
  EXPECT_TRUE(schedule_points(add, target, 1).empty());
  EXPECT_EQ(choose_schedule(add, target, 1).decision.candidates, 0);
}

TEST(DefaultSchedule, SaysWhereATileIsRefused) {
  const auto func = parse_func(R"(
func f(A: f32[40,64], B: f32[64,48], out C: f32[40,48]) {
  for i in 40, j in 48 {
    block C.init(i: space 40 = i, j: space 48 = j) { C[i, j] = 0.0 }
    for k in 64 {
      block C(i: space 40 = i, j: space 48 = j, k: reduce 64 = k) { C[i, j] += A[i, k] * B[k, j] }
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  const cost::RuleDecision decision = choose_schedule(*func, target_of(32), 1).decision;
  EXPECT_EQ(decision.chosen.algorithm, "loops");
  EXPECT_EQ(decision.chosen.time.total(), 0);
  EXPECT_EQ(decision.runner_up.algorithm, "direct");
}

/// Statements of `s` that store something outside of parallel loops.
int64_t stores_alone(const Stmt& s) {
  if (const For* loop = s.as<For>(); loop != nullptr && loop->kind == ForKind::Parallel) return 0;
  int64_t count = s.as<Store>() != nullptr;
  for (const Stmt& child : children(s)) count += stores_alone(child);
  return count;
}

TEST(DefaultSchedule, ProductsOfFewTilesAreSharedOut) {
  hw::CpuTarget target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  for (const auto& [rows, depth, columns] :
       {std::tuple{23, 1550, 38}, std::tuple{27, 173, 60}, std::tuple{20, 400, 33}}) {
    const Func func = func_of({"tilewright",
                               "GemmPacked",
                               {{rows, depth}, {(columns + 15) / 16, depth, 16}},
                               {{"n", int64_t{columns}}}});
    const auto scheduled = schedule::replay(func, default_trace(func, target, 2));
    ASSERT_TRUE(scheduled);
    const auto lowered = lower::run_pipeline(*scheduled, "cpu");
    ASSERT_TRUE(lowered) << to_string(lowered.error());
    EXPECT_EQ(stores_alone(lowered->body), 0) << print(*lowered);
    std::vector<int64_t> pieces;
    walk(lowered->body, [&](const Stmt& s) {
      const For* loop = s.as<For>();
      if (loop != nullptr && loop->kind == ForKind::Parallel)
        pieces.push_back(as_int(loop->extent).value_or(0));
    });
    ASSERT_EQ(pieces.size(), 1u) << print(*lowered);  // threads are joined once
    EXPECT_GE(pieces[0], 2);
  }
  expect_same_meaning({"tilewright", "GemmPacked", {{23, 350}, {3, 350, 4}}, {{"n", int64_t{10}}}});
}

TEST(DefaultSchedule, ThreadsThatCopyOutOfBlocksWriteNoLineTogether) {
  const auto text_of = [](int64_t width) {
    hw::CpuTarget target;
    target.vector_bytes = 64;
    target.vector_registers = 32;
    const Func func = func_of(
        {"tilewright", "FromBlocked", {{1, 32, 9, width, 16}}, {{"channels", int64_t{504}}}});
    const auto scheduled = schedule::replay(func, default_trace(func, target, 2));
    EXPECT_TRUE(scheduled);
    return print(*scheduled);
  };
  // 63 groups of channels: within the rows where these are whole lines, around them else.
  EXPECT_THAT(text_of(16), testing::HasSubstr("% 63"));
  EXPECT_THAT(text_of(9), testing::Not(testing::HasSubstr("% 63")));
}

TEST(DefaultSchedule, WhatEveryChannelOfASoftmaxDoesIsWrittenOnce) {
  const auto softmax = [](int64_t channels) {
    return OpCase{"", "Softmax", {{1, channels, 5, 23}}, {{"axis", int64_t{1}}}};
  };
  const auto code = [&](int64_t channels) {
    const Func func = func_of(softmax(channels));
    const auto scheduled = schedule::replay(func, default_trace(func, target_of(32), 1));
    EXPECT_TRUE(scheduled);
    const auto lowered = lower::run_pipeline(*scheduled, "cpu");
    EXPECT_TRUE(lowered);
    return lower::count_statements(lowered->body);
  };
  expect_same_meaning(softmax(40));
  EXPECT_EQ(code(40), code(80));
}

}  // namespace
}  // namespace tilewright::rules
