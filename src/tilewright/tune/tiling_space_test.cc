// Points of FlexTensor's space apply to any operator and keep its meaning; sizes are the paper's.
#include "tilewright/tune/tiling_space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/file.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/cpu/default_schedule.h"
#include "tilewright/schedule/testing/oracle.h"
#include "tilewright/tensor/text.h"
#include "tilewright/tensor/workload.h"
#include "tilewright/tune/sketch_space.h"

namespace tilewright::tune {
namespace {

using TilingSpaceParams = std::map<std::string, int64_t>;
using ::testing::HasSubstr;

measure::Task task_of(Func func) {
  measure::Task task;
  task.name = func.name;
  task.func = std::move(func);
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = 16;
  task.target = hw::as_target(target);
  task.threads = 2;
  return task;
}

measure::Task task_of(const std::string& op, const TilingSpaceParams& params) {
  const auto call = tensor::workload_call(op, params);
  EXPECT_TRUE(call) << to_string(call.error());
  Result<Func> func = tensor::op_func(*call);
  EXPECT_TRUE(func) << to_string(func.error());
  return task_of(*std::move(func));
}

TilingSpaceParams image(int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride = 1) {
  return {{"batch", 1},         {"in_channels", in},  {"out_channels", out}, {"height", size},
          {"width", size},      {"channels", in},     {"kernel_h", kernel},  {"kernel_w", kernel},
          {"stride_h", stride}, {"stride_w", stride}, {"pad_h", kernel / 2}, {"pad_w", kernel / 2}};
}

/// Random points either apply and keep the meaning, lowered too, or say why they do not.
void expect_sound(const measure::Task& task, const ScheduleSpace& space, int points,
                  double valid_share) {
  const interp::Arguments arguments = schedule::testing::make_arguments(task.func, 5);
  const auto expected = interp::run(task.func, arguments);
  ASSERT_TRUE(expected) << task.name;
  Rng rng(3);
  int valid = 0;
  for (int i = 0; i < points; ++i) {
    const search::Point point = space.space().random(rng);
    const std::string text = task.name + ": " + space.space().text(point);
    EXPECT_GT(space.prior(point), 0) << text;
    EXPECT_EQ(space.terms(point).size(), space.terms(space.space().at(0)).size());
    const auto trace = space.trace(point);
    if (!trace) {
      EXPECT_EQ(trace.error().kind, ErrorKind::NotApplicable) << to_string(trace.error());
      continue;
    }
    ++valid;
    const auto scheduled = schedule::replay(task.func, *trace);
    ASSERT_TRUE(scheduled) << text << to_string(scheduled.error());
    EXPECT_EQ(schedule::testing::difference(*expected, *scheduled, arguments, 7), "") << text;
    const auto lowered = lower::run_pipeline(*scheduled, "cpu");
    ASSERT_TRUE(lowered) << text << to_string(lowered.error());
    const auto last = interp::run(*lowered, arguments);
    ASSERT_TRUE(last) << text << to_string(last.error());
    for (const auto& [name, array] : expected->outputs)
      for (int64_t k = 0; k < array.size(); ++k)
        ASSERT_EQ(array.get(k), last->outputs.at(name).get(k)) << text;
  }
  EXPECT_GE(valid, valid_share * points) << task.name;
}

struct Row {
  const char* op;
  TilingSpaceParams params;
};

std::vector<Row> operators() {
  TilingSpaceParams depthwise = image(5, 5, 7, 3);
  depthwise["groups"] = 5;
  TilingSpaceParams grouped = image(4, 6, 6, 3);
  grouped["groups"] = 2;
  const TilingSpaceParams line = {{"batch", 2},   {"in_channels", 3}, {"out_channels", 4},
                                  {"length", 13}, {"kernel_l", 3},    {"stride_l", 2},
                                  {"pad_l", 1}};
  const TilingSpaceParams volume = {{"batch", 1},    {"in_channels", 2}, {"out_channels", 3},
                                    {"depth", 4},    {"height", 5},      {"width", 6},
                                    {"kernel_d", 2}, {"kernel_h", 3},    {"kernel_w", 3},
                                    {"pad_d", 1},    {"pad_h", 1},       {"pad_w", 1}};
  return {
      {"conv2d", image(3, 5, 7, 3)},
      {"conv2d", image(4, 8, 9, 1)},
      {"conv2d", image(3, 4, 11, 5, 2)},
      {"depthwise_conv2d", depthwise},
      {"group_conv2d", grouped},
      {"conv_transpose2d", image(3, 4, 5, 3, 2)},
      {"conv1d", line},
      {"conv3d", volume},
      {"gemm", {{"m", 13}, {"n", 17}, {"k", 11}}},
      {"gemv", {{"m", 13}, {"k", 9}}},
      {"bilinear", {{"batch", 3}, {"out_features", 7}, {"in1_features", 5}, {"in2_features", 6}}},
      {"mttkrp", {{"i", 5}, {"j", 7}, {"k", 3}, {"l", 4}}},
      {"ttm", {{"i", 3}, {"j", 5}, {"k", 7}, {"l", 4}}},
      {"block_circulant_matrix", {{"rows", 8}, {"cols", 12}, {"block", 4}}},
      {"shift_conv2d", image(9, 9, 6, 3)}};
}

TEST(TilingSpaceSlow, PointsOfEveryOperatorApplyAndKeepItsMeaning) {
  for (const Row& row : operators()) {
    const measure::Task task = task_of(row.op, row.params);
    for (const bool paper : {false, true}) expect_sound(task, *tiling_space(task, {paper}), 6, 0.8);
  }
}

// source: counted with the rules of FlexTensor's released code for the CPU, layers of YOLO.
TEST(TilingSpace, SizesOfThePapersFormAreThePapers) {
  struct Layer {
    int64_t in, out, size, kernel, stride;
    double points;
  };
  const Layer layers[] = {{3, 64, 448, 7, 2, 2157969408},     {64, 192, 112, 3, 1, 70808371200},
                          {192, 128, 56, 1, 1, 2064384000},   {128, 256, 56, 3, 1, 16220160000},
                          {256, 256, 56, 1, 1, 1393920000},   {256, 512, 56, 3, 1, 29736960000},
                          {512, 256, 28, 1, 1, 464640000},    {256, 512, 28, 3, 1, 7434240000},
                          {512, 512, 28, 1, 1, 619520000},    {512, 1024, 28, 3, 1, 12886016000},
                          {1024, 512, 14, 1, 1, 128860160},   {512, 1024, 14, 3, 1, 2061762560},
                          {1024, 1024, 14, 3, 1, 2680291328}, {1024, 1024, 14, 3, 2, 167518208},
                          {1024, 1024, 7, 3, 1, 167518208}};
  for (const Layer& l : layers) {
    const measure::Task task = task_of("conv2d", image(l.in, l.out, l.size, l.kernel, l.stride));
    const auto space = tiling_space(task, {true});
    EXPECT_EQ(space->space().size(), l.points) << l.in << " " << l.out << " " << l.size;
    // A point is 30 numbers long and has 86 moves, as in FlexTensor's code.
    EXPECT_EQ(space->space().feature_count(), 30u);
    EXPECT_EQ(space->space().moves().size(), 86u);
  }
  const measure::Task gemm = task_of("gemm", {{"m", 512}, {"n", 512}, {"k", 512}});
  EXPECT_EQ(tiling_space(gemm, {true})->space().size(), 85184000.0);
}

TEST(TilingSpace, FreeFactorsGiveTilesWhereNothingDivides) {
  const measure::Task task = task_of("gemm", {{"m", 13}, {"n", 97}, {"k", 8}});
  const auto space = tiling_space(task);
  const search::Decision& n = space->space().decisions()[1];
  std::set<double> inner;
  for (const search::DecisionValue& value : n.values)
    inner.insert(std::exp2(value.features.back()));
  for (const double lanes : {4, 8, 16, 32})
    EXPECT_TRUE(std::any_of(inner.begin(), inner.end(), [&](double v) {
      return std::abs(v - lanes) < 1e-9;
    })) << lanes;
  // Moves lead somewhere and back from every value.
  for (size_t v = 0; v < n.values.size(); ++v) {
    bool out = false;
    for (const auto& direction : n.moves) out |= direction[v] != static_cast<int>(v);
    EXPECT_TRUE(out) << n.values[v].text;
  }
  EXPECT_LT(tiling_space(task, {true})->space().size(), space->space().size());
}

TEST(TilingSpace, ExpressionsNeedNoCodeOfTheirOwn) {
  const auto file = read_file(std::string(TILEWRIGHT_ROOT_DIR) + "/examples/02_gemm_relu.tw");
  ASSERT_TRUE(file);
  const auto gemm = tensor::parse_tensor_file(*file, {{"m", 7}, {"n", 11}, {"k", 5}});
  ASSERT_TRUE(gemm) << to_string(gemm.error());
  const measure::Task relu = task_of(*gemm);
  EXPECT_THAT(tiling_sketch(relu, {}), HasSubstr("decide D: choice [tile, apart, outer]"));
  expect_sound(relu, *tiling_space(relu), 12, 0.8);
  const auto three = tensor::parse_tensor_file(R"(
tensor t(A: f32[a, b], B: f32[b, c], C: f32[c, a]) where a = 5, b = 6, c = 7 {
  S[i in a] = sum(j in b, k in c) A[i, j] * B[j, k] * C[k, i]
  T[i in a] = max(S[i], 0) + 1
  return T
})");
  ASSERT_TRUE(three) << to_string(three.error());
  const measure::Task odd = task_of(*three);
  expect_sound(odd, *tiling_space(odd), 12, 0.8);
}

TEST(TilingSpace, ProgramsWithoutNestsHaveOnePoint) {
  const auto func = parse_func(R"(
func f(A: f32[4], out Y: f32[1]) {
  for Y.init.i in 1 { block Y.init(i: space 1 = Y.init.i) { Y[i] = 0.0 } }
  for Y.i in 1, Y.k in 4 { block Y(i: space 1 = Y.i, k: reduce 4 = Y.k) { Y[i] += A[k] } }
})");
  ASSERT_TRUE(func) << to_string(func.error());
  const measure::Task task = task_of(*func);
  const auto space = tiling_space(task);
  EXPECT_EQ(space->space().size(), 1);
  EXPECT_EQ(tiling_sketch(task, {}), "");
  EXPECT_EQ(schedule::print(*space->trace({0})),
            schedule::print(rules::default_trace(task.func, task.cpu(), task.threads)));
}

TEST(TilingSpace, TheModelPrefersTilesInRegisters) {
  const measure::Task task = task_of("gemm", {{"m", 64}, {"n", 64}, {"k", 64}});
  const auto space = tiling_space(task);
  Rng rng(1);
  search::Point best = space->space().random(rng), worst = best;
  for (int i = 0; i < 3000; ++i) {
    const search::Point point = space->space().random(rng);
    if (space->prior(point) < space->prior(best)) best = point;
    if (space->prior(point) > space->prior(worst)) worst = point;
  }
  EXPECT_GT(space->prior(worst), 5 * space->prior(best));
  const auto k = space->space().decisions()[2].values[static_cast<size_t>(best[2])].features;
  EXPECT_EQ(k[0], 0) << "sums leave their registers: " << space->space().text(best);
}

measure::Task blocked(const std::string& op, std::vector<Shape> inputs, int64_t pad,
                      int64_t stride) {
  using Pads = std::vector<int64_t>;
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = op;
  call.attrs.values = {{"pads", Pads{pad, pad, pad, pad}}, {"strides", Pads{stride, stride}}};
  for (const Shape& shape : inputs) call.inputs.push_back({true, DType::F32, shape, {}});
  Result<Func> func = tensor::op_func(call);
  EXPECT_TRUE(func) << to_string(func.error());
  return task_of(*std::move(func));
}

TEST(SketchSpaceSlow, TemplatesApplyAndKeepTheMeaning) {
  const std::pair<const char*, measure::Task> rows[] = {
      {"gemm", task_of("gemm", {{"m", 12}, {"n", 20}, {"k", 6}})},
      {"conv2d", blocked("ConvBlocked", {{1, 2, 7, 9, 4}, {2, 2, 3, 3, 4, 4}}, 1, 1)},
      {"conv2d", blocked("ConvBlocked", {{1, 2, 6, 8, 4}, {3, 2, 1, 1, 4, 4}, {12}}, 0, 1)},
      {"conv2d", blocked("ConvBlocked", {{1, 1, 9, 9, 3}, {2, 1, 3, 3, 3, 4}, {8}}, 1, 2)},
      {"depthwise", blocked("DepthwiseConvBlocked", {{1, 2, 8, 11, 4}, {2, 3, 3, 4}, {8}}, 1, 1)}};
  for (const auto& [name, task] : rows) {
    const auto text = read_file(fmt::format("{}/sketches/{}.sketch", TILEWRIGHT_ROOT_DIR, name));
    ASSERT_TRUE(text);
    const auto sketch = schedule::parse_sketch(*text);
    ASSERT_TRUE(sketch) << name << to_string(sketch.error());
    const auto space = sketch_space(task, *sketch);
    ASSERT_TRUE(space) << name << to_string(space.error());
    expect_sound(task, **space, 12, 0.8);
    // A template is a small part of the space that needs none.
    EXPECT_LT((*space)->space().size(), tiling_space(task)->space().size()) << name;
  }
}

TEST(SketchSpace, ErrorsNameTheLoop) {
  const measure::Task task = task_of("gemm", {{"m", 4}, {"n", 4}, {"k", 4}});
  const auto space = sketch_space(task, *schedule::parse_sketch("decide z: split C.z into 2"));
  ASSERT_FALSE(space);
  EXPECT_THAT(space.error().what, HasSubstr("C.z"));
  const auto large =
      sketch_space(task, *schedule::parse_sketch("decide z: split 1073741824 into 8"));
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().fix, HasSubstr("fewer parts"));
}

}  // namespace
}  // namespace tilewright::tune
