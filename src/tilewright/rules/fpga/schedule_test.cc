#include "tilewright/rules/fpga/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/rng.h"
#include "tilewright/cost/sums/computation.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/initiation.h"
#include "tilewright/lower/lower.h"
#include "tilewright/lower/processes.h"
#include "tilewright/lower/testing/meaning.h"
#include "tilewright/schedule/testing/fpga_traces.h"
#include "tilewright/tensor/text.h"

namespace tilewright::rules {
namespace {

using ::testing::HasSubstr;

/// What differs between `func` and its best schedule; empty if nothing.
std::string wrong_with(const Func& func, const char* device, size_t processes) {
  const auto best = best_fpga_schedule(func, *hw::load_fpga_device(device));
  if (!best) return to_string(best.error());
  const interp::Arguments arguments = lower::testing::arguments_of(func, 3);
  const std::string difference = lower::testing::difference(
      interp::run(func, arguments).value(), interp::run(best->func, arguments).value(), 0);
  if (!difference.empty()) return difference;
  const Func lowered = lower::run_pipeline(best->func, "fpga").value();
  const auto program = lower::processes_of(lowered);
  if (!program) return to_string(program.error());
  if (program->regions.size() != 1 || program->regions[0].processes.size() != processes)
    return "other processes:\n" + print(lowered);
  return "";
}

TEST(FpgaSchedule, ConvolutionsAndProducts) {
  for (const char* device : {"vu9p", "zcu104", "zynq7020", "vc707"})
    for (const std::string_view text :
         {schedule::testing::kFpgaConv, schedule::testing::kFpgaProduct})
      EXPECT_EQ(wrong_with(*parse_func(text), device, 4), "") << device << text;
}

Func func_of_text(std::string_view text) {
  const auto func = tensor::parse_tensor_file(text);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

TEST(FpgaSchedule, StepsBehindASumBecomeOneBlock) {
  const Func func = func_of_text(R"(
tensor f(A: f32[m, k], B: f32[k, n], c: f32[n], R: f32[m, n]) where m = 6, n = 10, k = 9 {
  S[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  T[i in m, j in n] = S[i, j] + c[j]
  U[i in m, j in n] = T[i, j] + R[i, j]
  Y[i in m, j in n] = max(U[i, j], 0)
  return Y
})");
  EXPECT_EQ(wrong_with(func, "zcu104", 4), "");
}

/// `func` with the steps of `design`, in processes.
Func made_for(const Func& func, const hw::FpgaDevice& device, const cost::FpgaDesign& design) {
  cost::FpgaOptions options;
  options.as_written = true;
  const cost::Computation sum = cost::computations_of(func).sums.at(0);
  const auto model = cost::FpgaModel::create(device, cost::layer_of(sum).value(), options).value();
  const auto trace = fpga_trace(func, model, design);
  EXPECT_TRUE(trace) << to_string(trace.error());
  const Func made = schedule::replay(func, *trace).value();
  return lower::run_pipeline(made, "fpga").value();
}

int64_t elements_of(const Func& func, const std::string& memory) {
  int64_t elements = 0;
  walk(func.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || alloc->buffer.name() != memory) return;
    elements = 1;
    for (const Expr& extent : alloc->buffer.shape()) elements *= as_int(extent).value_or(0);
  });
  return elements;
}

/// The image of one group stays on the chip while its outputs run.
TEST(FpgaSchedule, GroupsOfChannelsAreALoopAroundTheTiles) {
  const Func func = func_of_text(R"(
tensor f(X: f32[4, h, w], W: f32[k, 2, 3, 3]) where h = 7, w = 6, k = 10 {
  C[o in k, y in h - 2, x in w - 2] = sum(i in 2, p in 3, q in 3) X[o / 5 * 2 + i, y + p, x + q] * W[o, i, p, q]
  return C
})");
  EXPECT_EQ(wrong_with(func, "zcu104", 4), "");
  cost::FpgaDesign design;
  design.to = 1, design.tc = 2, design.th = 5, design.tw = 4;
  design.stays = cost::FpgaStays::Image;
  const Func made = made_for(func, *hw::load_fpga_device("zcu104"), design);
  EXPECT_EQ(elements_of(made, "X.t"), 2 * 7 * 6) << print(made);
}

/// What stays would take more memory than the model counts if its tiles were several.
TEST(FpgaSchedule, NothingStaysWithSeveralTilesOfInputs) {
  const Func func = func_of_text(R"(
tensor f(X: f32[c, n], W: f32[k, c]) where c = 8, n = 6, k = 4 {
  C[o in k, x in n] = sum(i in c) X[i, x] * W[o, i]
  return C
})");
  cost::FpgaDesign design;
  design.to = 2, design.tw = 3, design.stays = cost::FpgaStays::Image;
  for (const int64_t tc : {8, 4}) {
    design.tc = tc;
    const Func made = made_for(func, *hw::load_fpga_device("zcu104"), design);
    EXPECT_EQ(elements_of(made, "X.t"), tc * 3) << print(made);
  }
}

/// A vu9p has DSPs for 10 524 products of i8, in pairs; memories have at most 4096 banks.
TEST(FpgaSchedule, ManyProductsHaveASchedule) {
  const Func func = func_of_text(R"(
tensor f(X: i8[c, h, h], W: i8[k, c, 3, 3]) where c = 256, h = 30, k = 512 {
  C[o in k, y in h - 2, x in h - 2] = sum(i in c, p in 3, q in 3) i32(X[i, y + p, x + q]) * i32(W[o, i, p, q])
  return C
})");
  const auto made = best_fpga_schedule(func, *hw::load_fpga_device("vu9p"));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_TRUE(lower::run_pipeline(made->func, "fpga"));
  EXPECT_GE(made->design.uo * made->design.ui * made->design.us, 2048);
}

TEST(FpgaSchedule, SomeTilesHaveNoSteps) {
  const Func func = *parse_func(schedule::testing::kFpgaConv);
  const hw::FpgaDevice device = *hw::load_fpga_device("zcu104");
  const cost::Computation sum = cost::computations_of(func).sums.at(0);
  const auto model = cost::FpgaModel::create(device, cost::layer_of(sum).value()).value();
  cost::FpgaDesign design;
  EXPECT_EQ(no_steps(model, design), "");
  design.tc = 3, design.ui = 2;
  EXPECT_THAT(no_steps(model, design), HasSubstr("2 side by side do not divide a tile of 3 input"));
  design.ui = 3;
  EXPECT_EQ(no_steps(model, design), "");
  design.tw = model.extent(model.roles().pixels) + 1;
  EXPECT_THAT(no_steps(model, design), HasSubstr("is more than all"));
}

/// Tiles of any size, larger than the tensor too: the same values in four processes.
TEST(FpgaSchedule, TilesGoOverTheEndOfTheirLoops) {
  const Func funcs[] = {func_of_text(R"(
tensor f(X: i8[c, h, w], W: i8[k, c, 3, 3], b: i32[k]) where c = 5, h = 9, w = 8, k = 7 {
  P[i in c, y in h + 2, x in w + 2] = select(y >= 1 && y <= h && x >= 1 && x <= w, X[i, y - 1, x - 1], 0)
  C[o in k, y in h, x in w] = sum(i in c, p in 3, q in 3) i32(P[i, y + p, x + q]) * i32(W[o, i, p, q])
  Y[o in k, y in h, x in w] = max(C[o, y, x] + b[o], 0)
  return Y
})"),
                        func_of_text(R"(
tensor f(A: f32[m, k], B: f32[k, n]) where m = 7, n = 11, k = 10 {
  S[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  return S
})")};
  Rng rng(7);
  for (const Func& func : funcs) {
    const double tolerance = is_float(func.params[0].buffer.dtype()) ? 1e-5 : 0;
    const interp::Arguments arguments = lower::testing::arguments_of(func, 3);
    const interp::Outcome expected = interp::run(func, arguments).value();
    const cost::Computation sum = cost::computations_of(func).sums.at(0);
    const auto model =
        cost::FpgaModel::create(*hw::load_fpga_device("zcu104"), cost::layer_of(sum).value())
            .value();
    for (int n = 0; n < 12; ++n) {
      cost::FpgaDesign design;
      design.uo = rng.between(1, 4), design.to = design.uo * rng.between(1, 3);
      design.ui = rng.between(1, 4), design.tc = design.ui * rng.between(1, 4);
      design.th = rng.between(1, model.extent(model.roles().rows));
      design.tw = rng.between(1, model.extent(model.roles().pixels));
      design.stays = static_cast<cost::FpgaStays>(rng.below(3));
      const auto trace = fpga_trace(func, model, design);
      ASSERT_TRUE(trace) << to_string(trace.error());
      const auto made = schedule::replay(func, *trace);
      ASSERT_TRUE(made) << to_string(design) << to_string(made.error());
      const Func lowered = lower::run_pipeline(*made, "fpga").value();
      EXPECT_EQ(
          lower::testing::difference(expected, interp::run(lowered, arguments).value(), tolerance),
          "")
          << to_string(design) << print(lowered);
      const auto program = lower::processes_of(lowered);
      ASSERT_TRUE(program) << to_string(design) << to_string(program.error());
      EXPECT_EQ(program->regions.at(0).processes.size(), 4u);
    }
  }
}

/// Of a single row there are other outputs between two additions to the same one.
TEST(FpgaSchedule, ProductsOfOneRowDoNotWaitForTheirAdditions) {
  const Func func = func_of_text(R"(
tensor f(A: f32[1, k], B: f32[k, n]) where n = 64, k = 48 {
  S[i in 1, j in n] = sum(l in k) A[i, l] * B[l, j]
  return S
})");
  EXPECT_EQ(wrong_with(func, "zcu104", 4), "");
  const hw::FpgaDevice device = *hw::load_fpga_device("zcu104");
  cost::FpgaDesign design;
  design.uo = 2, design.to = 32, design.tc = 48;
  const Func made = made_for(func, device, design);
  const lower::ProcessProgram program = lower::processes_of(made).value();
  int64_t slowest = 0;
  for (const lower::Process& process : program.regions[0].processes) {
    const auto loops = lower::initiations_of(process, made.math, device, hw::FpgaPath::Hls);
    ASSERT_TRUE(loops) << to_string(loops.error());
    for (const lower::Initiation& loop : *loops) slowest = std::max(slowest, loop.cycles());
  }
  EXPECT_EQ(slowest, 1) << print(made);
}

TEST(FpgaSchedule, ExactSumsHaveNoProductsSideBySide) {
  Func func = *parse_func(schedule::testing::kFpgaConv);
  func.math = MathMode::Exact;
  EXPECT_EQ(wrong_with(func, "vu9p", 4), "");
  EXPECT_EQ(best_fpga_schedule(func, *hw::load_fpga_device("vu9p"))->design.ui, 1);
}

TEST(FpgaSchedule, ADeviceWithoutRoomSaysWhatTheSmallestDesignNeeds) {
  hw::FpgaDevice device = *hw::load_fpga_device("zcu104");
  device.cells.luts = 100;
  const auto best = best_fpga_schedule(*parse_func(schedule::testing::kFpgaConv), device);
  ASSERT_FALSE(best);
  EXPECT_EQ(best.error().kind, ErrorKind::Capacity);
  EXPECT_THAT(best.error().why, HasSubstr("LUT"));
  EXPECT_THAT(best.error().why, HasSubstr(" of 70 "));
}

TEST(FpgaSchedule, WhatTheDesignKeepsIsReadOutsideOfItsTiles) {
  const Func func = *parse_func(schedule::testing::kFpgaConv);
  const auto best = best_fpga_schedule(func, *hw::load_fpga_device("vu9p"));
  ASSERT_TRUE(best) << to_string(best.error());
  EXPECT_THAT(print(best->trace), HasSubstr("dataflow(loop="));
  EXPECT_THAT(print(best->func), HasSubstr("@(pipeline=dataflow)"));
}

TEST(FpgaSchedule, ProgramsWithoutOneSumHaveNone) {
  const auto best = best_fpga_schedule(
      *parse_func(
          "func f(X: f32[8], out Y: f32[8]) { for i in 8 { block Y(a: space 8 = i) { Y[a] = "
          "X[a] * 2.0 } } }"),
      *hw::load_fpga_device("vu9p"));
  ASSERT_FALSE(best);
  EXPECT_THAT(to_string(best.error()), HasSubstr("it has 0 sums of products"));
}

}  // namespace
}  // namespace tilewright::rules
