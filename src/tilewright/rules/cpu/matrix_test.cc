// Products in instructions for small tiles compute what their tensor form does, and are such.
#include "tilewright/rules/cpu/matrix.h"

#include <gtest/gtest.h>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/testing/instructions.h"
#include "tilewright/tensor/op.h"

namespace tilewright::rules {
namespace {

/// [.., m, k] times a packed weight for n columns in blocks of four.
Func product(DType a, Shape rows, int64_t n, bool offset, MathMode math = MathMode::Fast) {
  const bool floats = is_float(a);
  const int64_t depth = floats ? 4 : 8, k = rows.back();
  tensor::OpCall call;
  call.domain = "tilewright";
  call.op = "GemmDotPacked";
  call.attrs.values["n"] = n;
  call.inputs.push_back({true, a, std::move(rows), {}});
  call.inputs.push_back({true, floats ? a : DType::I8, {n / 4, k / depth, 4, depth}, {}});
  if (offset) call.inputs.push_back({true, floats ? DType::F32 : DType::I32, {n}, {}});
  Result<Func> func = tensor::op_func(call, math);
  EXPECT_TRUE(func) << to_string(func.error());
  return *func;
}

void expect_tiles(const Func& func, int threads) {
  expect_instructions(func, *hw::find_target("aarch64-v8.6"), threads);
}

TEST(MatrixRule, BytesBecomeTiles) {
  for (const DType a : {DType::I8, DType::U8})
    for (const int threads : {1, 2}) {
      expect_tiles(product(a, {8, 16}, 16, true), threads);
      expect_tiles(product(a, {13, 24}, 12, false), threads);
      expect_tiles(product(a, {2, 3, 8}, 20, true), threads);
    }
}

TEST(MatrixRule, Bf16BecomesTilesInFastMathOnly) {
  expect_tiles(product(DType::BF16, {7, 12}, 24, false), 1);
  const Func exact = product(DType::BF16, {7, 12}, 24, false, MathMode::Exact);
  EXPECT_EQ(tensorized(default_trace(exact, *hw::find_target("aarch64-v8.6"), 1)), 0u);
}

TEST(MatrixRule, ThreadsShareColumnsOfFewRows) {
  const Func func = product(DType::I8, {2, 256}, 128, false);
  const hw::CpuTarget target = *hw::find_target("aarch64-v8.6");
  const auto made = schedule::replay(func, default_trace(func, target, 2));
  ASSERT_TRUE(made);
  bool parallel = false;
  walk(made->body, [&](const Stmt& s) {
    const For* loop = s.as<For>();
    parallel |= loop != nullptr && loop->kind == ForKind::Parallel &&
                loop->var.name().find(".n") != std::string::npos;
  });
  EXPECT_TRUE(parallel) << print(*made);
}

TEST(MatrixRule, OtherTargetsHaveNone) {
  const Func func = product(DType::I8, {8, 16}, 16, false);
  for (const char* name : {"aarch64-v8.2", "x86-64-v4"}) {
    Draft draft(func);
    EXPECT_FALSE(schedule_matrices(draft, *hw::find_target(name), 1));
    EXPECT_TRUE(draft.take().empty());
  }
}

}  // namespace
}  // namespace tilewright::rules
