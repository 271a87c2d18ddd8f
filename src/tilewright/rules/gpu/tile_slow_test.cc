// What NVIDIA's compiler makes of tiles of f32: operands of 16 bytes, results in registers.
#include <gtest/gtest.h>

#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/gpu/testing/sass.h"

namespace tilewright::rules {
namespace {

using Ints = std::vector<int64_t>;

/// The machine code of `op` where every sum has the rule's tile as `change` leaves it.
Result<MachineCode> code_of(const OpCase& op, const std::function<void(GpuTile&)>& change) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = func_of(op);
  bool as_planned = false;
  const schedule::Trace trace = gpu_trace(
      func, target,
      [&](const BlockFacts& block, const hw::GpuTarget& on) {
        GpuPlan plan;
        plan.tile = choose_gpu_tile(block, on);
        if (plan.tile) change(*plan.tile);
        return plan;
      },
      &as_planned);
  EXPECT_TRUE(as_planned) << print(trace);
  return machine_code(func, target, &trace);
}

TEST(GpuTileCode, ProductsReadOperandsFourAtATime) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const auto code = code_of({"", "MatMul", {{1024, 1024}, {1024, 1024}}, {}}, [](GpuTile& tile) {
    for (GpuAxis& axis : tile.axes) axis.threads = 16, axis.each = 8, axis.vector = 4;
    tile.steps = {8};
    tile.depth = 3;
    tile.splits = 1;
  });
  ASSERT_TRUE(code) << to_string(code.error());
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0);
    EXPECT_EQ(use.stack_bytes, 0);
    EXPECT_LE(use.registers, 128);
  }
  const codegen::SassKernel* kernel = code->with("FFMA");
  ASSERT_NE(kernel, nullptr);
  const codegen::SassCounts& loop = kernel->loop_with("FFMA")->counts;
  const int64_t updates = codegen::count(loop, "FFMA"), wide = codegen::count(loop, "LDS", "128");
  EXPECT_EQ(updates, 8 * 64);
  EXPECT_EQ(wide, 8 * 4);
  EXPECT_LE(codegen::count(loop, "LDS") - wide, 4);
  EXPECT_EQ(codegen::count(loop, "BAR"), 1);
  EXPECT_EQ(codegen::count(loop, "LDGSTS"), 5);  // 4 of the turned factor, 1 of the other
  EXPECT_EQ(codegen::count(loop, "LDG"), 0);
  EXPECT_LE(codegen::total(loop), 1.25 * static_cast<double>(updates));
  EXPECT_EQ(codegen::count(kernel->all, "STG", "128"), 16);
}

TEST(GpuTileCode, ConvolutionsFillTheirPaddingWithoutBranches) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const auto code =
      code_of({"", "Conv", {{1, 64, 56, 56}, {64, 64, 3, 3}}, {{"pads", Ints{1, 1, 1, 1}}}},
              [](GpuTile& tile) {
                ASSERT_EQ(tile.axes.size(), 4u);
                tile.axes[1].threads = 8, tile.axes[1].each = 8, tile.axes[1].vector = 4;
                tile.axes[2].threads = 2, tile.axes[2].each = 4, tile.axes[2].vector = 1;
                tile.axes[3].threads = 8, tile.axes[3].each = 1, tile.axes[3].vector = 1;
                tile.steps[0] = 1;  // few copies per thread: all are written out
                tile.depth = 3;
                tile.splits = 1;
              });
  ASSERT_TRUE(code) << to_string(code.error());
  for (const codegen::CudaKernelUse& use : code->uses) EXPECT_EQ(use.spill_bytes, 0);
  const codegen::SassKernel* kernel = code->with("FFMA");
  ASSERT_NE(kernel, nullptr);
  EXPECT_GE(codegen::count(kernel->all, "LDGSTS"), 4);
  EXPECT_EQ(codegen::count(kernel->all, "LDG"), 0);
  EXPECT_EQ(codegen::count(kernel->all, "STL") + codegen::count(kernel->all, "LDL"), 0);
  const codegen::SassCounts& loop = kernel->loop_with("FFMA")->counts;
  EXPECT_GE(codegen::count(loop, "FFMA"), 4 * codegen::count(loop, "LDS"));
}

}  // namespace
}  // namespace tilewright::rules
