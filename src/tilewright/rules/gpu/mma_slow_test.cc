// Products on matrix instructions: their kernels run on the first OpenCL device, where the
// instructions are emulated, and must agree with the interpreter; for CUDA they become machine code
// with those instructions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/testing/matrix_emulation.h"
#include "tilewright/ir/text.h"
#include "tilewright/rules/gpu/mma.h"
#include "tilewright/rules/gpu/split_last_wave.h"
#include "tilewright/rules/gpu/testing/mma_cases.h"
#include "tilewright/rules/gpu/testing/sass.h"
#include "tilewright/rules/gpu/testing/zero_points.h"
#include "tilewright/rules/gpu/tf32.h"

namespace tilewright::rules {
namespace {

using Ints = std::vector<int64_t>;

using codegen::count;

struct Shape4 {
  int64_t block_m, block_n, warp_m, warp_n;
};

/// The rule with tiles of a given shape.
PlanGpu with_shape(const Shape4& shape) {
  return [shape](const BlockFacts& block, const hw::GpuTarget& target) {
    GpuPlan plan = plan_gpu(block, target);
    if (plan.mma) {
      plan.mma->block_m = shape.block_m, plan.mma->block_n = shape.block_n;
      plan.mma->warp_m = shape.warp_m, plan.mma->warp_n = shape.warp_n;
    }
    return plan;
  };
}

void expect_agreement(const std::vector<Func>& funcs, const PlanGpu& plan) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  codegen::testing::GpuBatch batch(codegen::testing::emulating_target(),
                                   codegen::testing::kMatrixEmulation);
  for (const Func& func : funcs) {
    bool as_planned = false;
    const schedule::Trace trace = gpu_trace(func, *hw::find_gpu_target("cuda"), plan, &as_planned);
    EXPECT_TRUE(as_planned) << print(func);
    const auto scheduled = schedule::replay(func, trace);
    ASSERT_TRUE(scheduled) << print(func) << to_string(scheduled.error());
    const Status added = batch.add(func, *scheduled, exact(func));
    ASSERT_TRUE(added) << print(func) << to_string(added.error());
  }
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < funcs.size(); ++i) {
    const auto expected = interp::run(funcs[i], exact(funcs[i]));
    ASSERT_TRUE(expected) << print(funcs[i]) << to_string(expected.error());
    const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 0);
    EXPECT_TRUE(same) << print(funcs[i]) << "\n" << to_string(same.error());
  }
}

void expect_agreement(const std::vector<MmaCase>& cases, const PlanGpu& plan) {
  std::vector<Func> funcs;
  for (const MmaCase& c : cases) funcs.push_back(func_of(c));
  expect_agreement(funcs, plan);
}

TEST(GpuMmaSlow, EmulatedKernelsAgreeWithTheInterpreter) {
  std::vector<MmaCase> cases;
  for (const MmaCase& c : small_mma_cases())
    if (c.applies) cases.push_back(c);
  expect_agreement(cases, plan_gpu);
}

TEST(GpuMmaSlow, SoDoConvolutions) {
  std::vector<MmaCase> cases;
  for (const MmaCase& c : conv_mma_cases())
    if (c.applies) cases.push_back(c);
  expect_agreement(cases, plan_gpu);
}

TEST(GpuMmaSlow, SoDoProductsWithZeroPoints) {
  std::vector<Func> funcs;
  for (const ZeroPointCase& c : zero_point_cases()) funcs.push_back(func_of(c));
  expect_agreement(funcs, plan_gpu);
}

TEST(GpuMmaSlow, SoDoProductsInTf32) {
  const auto device = runtime::open_gpu("opencl");
  if (!device) GTEST_SKIP() << to_string(device.error());
  codegen::testing::GpuBatch batch(codegen::testing::emulating_target(),
                                   codegen::testing::kMatrixEmulation);
  std::vector<Func> funcs;
  for (const MmaCase& c : tf32_mma_cases()) {
    funcs.push_back(with_tf32(func_of(c), tf32_target()));
    const auto scheduled =
        schedule::replay(funcs.back(), gpu_trace(funcs.back(), tf32_target(), plan_gpu));
    ASSERT_TRUE(scheduled) << c.name << to_string(scheduled.error());
    const Status added = batch.add(funcs.back(), *scheduled, thirds(funcs.back()));
    ASSERT_TRUE(added) << c.name << to_string(added.error());
  }
  const auto got = batch.run(**device);
  ASSERT_TRUE(got) << to_string(got.error());
  for (size_t i = 0; i < funcs.size(); ++i) {
    const auto expected = interp::run(funcs[i], thirds(funcs[i]));
    ASSERT_TRUE(expected) << to_string(expected.error());
    const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 1e-4);
    EXPECT_TRUE(same) << tf32_mma_cases()[i].name << "\n" << to_string(same.error());
  }
}

TEST(GpuMmaSlow, SoDoSplitProducts) {
  expect_agreement(split_mma_cases(), [](const BlockFacts& block, const hw::GpuTarget& target) {
    GpuPlan plan = plan_gpu(block, target);
    if (plan.mma) plan.mma->splits = 2;
    return plan;
  });
}

/// The rule with tiles beside each other that a block computes one after the other.
GpuPlan plan_turns(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.mma) plan.mma->turns = 4;
  return plan;
}

TEST(GpuMmaSlow, SoDoBlocksOfSeveralTiles) {
  expect_agreement({{"", "MatMul", {{40, 70}, {70, 300}}, {}},
                    {"", "Gemm", {{40, 64}, {200, 64}, {200}}, {{"transB", int64_t{1}}}}},
                   plan_turns);
}

TEST(GpuMmaSlow, MachineCodeOfBlocksOfSeveralTiles) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const Func func = func_of(MmaCase{"", "MatMul", {{4096, 4096}, {4096, 4096}}, {}});
  const schedule::Trace trace = gpu_trace(func, target, plan_turns);
  const auto code = machine_code(func, target, &trace);
  ASSERT_TRUE(code) << to_string(code.error());
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
    EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
  }
  const codegen::SassKernel* kernel = code->with("HGMMA");
  ASSERT_NE(kernel, nullptr) << code->source;
  EXPECT_EQ(count(kernel->loop_with("HGMMA", {})->counts, "BAR"), 1);
}

TEST(GpuMmaSlow, SoDoProductsInPartsOfTheirRows) {
  std::vector<Func> funcs;
  for (const MmaCase& c : row_part_cases())
    funcs.push_back(in_row_parts(func_of(c), *hw::find_gpu_target("cuda"), 48));
  expect_agreement(funcs, plan_gpu);
}

TEST(GpuMmaSlow, MachineCodeOfProductsInPartsOfTheirRows) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const hw::GpuTarget target = *hw::find_gpu_target("cuda-sm_80");
  const Func func = func_of(MmaCase{"", "MatMul", {{3072, 3072}, {3072, 3072}}, {}});
  const auto code = machine_code(in_row_parts(func, target, 2048), target);
  ASSERT_TRUE(code) << to_string(code.error());
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
    EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
  }
  int products = 0;
  for (const codegen::SassKernel& kernel : code->kernels)
    products += count(kernel.all, "HMMA") > 0 ? 1 : 0;
  EXPECT_EQ(products, 2);
}

TEST(GpuMmaFull, SoDoTheyInLargerTiles) {
  const std::vector<MmaCase> cases = {
      {"ragged", "MatMul", {{150, 70}, {70, 141}}, {}},
      {"dense", "Gemm", {{130, 64}, {136, 64}, {136}}, {{"transB", int64_t{1}}}},
  };
  for (const Shape4& shape : {Shape4{64, 64, 32, 32}, {128, 128, 64, 64}, {64, 128, 64, 32}})
    expect_agreement(cases, with_shape(shape));
}

/// Groups with results of 256 columns.
GpuPlan plan_wide(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_groups(block, target);
  if (plan.mma) plan.mma->block_m = 128, plan.mma->block_n = plan.mma->warp_n = 256;
  return plan;
}

TEST(GpuMmaFull, SoDoGroupsOfWarps) {
  expect_agreement(group_mma_cases(), plan_cores);
  expect_agreement(bulk_mma_cases(), plan_groups);
  for (const int64_t columns : {270, 264})  // these are fetched in panels
    expect_agreement({{"", "MatMul", {{130, 104}, {104, columns}}, {}}}, plan_wide);
}

TEST(GpuMmaSlow, GroupsOfWarpsWaitOncePerRound) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Func func = func_of(MmaCase{"", "MatMul", {{4096, 4096}, {4096, 4096}}, {}, dtype});
    const schedule::Trace trace = gpu_trace(func, target, plan_cores);
    const auto code = machine_code(func, target, &trace);
    ASSERT_TRUE(code) << to_string(code.error());
    for (const codegen::CudaKernelUse& use : code->uses) {
      EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
      EXPECT_LE(use.registers, target.registers) << use.symbol;
    }
    const codegen::SassKernel* kernel = code->with("HGMMA");
    ASSERT_NE(kernel, nullptr) << code->source;
    const codegen::SassLoop& loop = *kernel->loop_with("HGMMA", {});
    EXPECT_EQ(count(loop.counts, "HGMMA", "64x256x16"), 4);
    EXPECT_EQ(count(loop.counts, "WARPGROUP", "DEPBAR"), 1);
    EXPECT_EQ(count(loop.counts, "BAR"), 1);
    EXPECT_EQ(count(kernel->all, "LDL"), 0);
  }
}

TEST(GpuMmaSlow, TheCopyEngineFetchesTheirTiles) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  for (const char* op : {"MatMul", "Gemm"}) {
    MmaCase c = {"", op, {{4096, 4096}, {4096, 4096}}, {}};
    if (c.op == "Gemm") c.attrs = {{"transB", int64_t{1}}}, c.dtype = DType::F16;
    const Func func = func_of(c);
    const schedule::Trace trace = gpu_trace(func, target, plan_groups);
    const auto code = machine_code(func, target, &trace);
    ASSERT_TRUE(code) << to_string(code.error());
    ASSERT_EQ(code->kernels.size(), 1u);
    EXPECT_EQ(code->uses[0].spill_bytes, 0);
    EXPECT_EQ(code->uses[0].stack_bytes, 0);
    EXPECT_LE(code->uses[0].registers, target.registers);
    const codegen::SassCounts& all = code->kernels[0].all;
    EXPECT_EQ(count(all, "HGMMA", "64x256x16"), 4) << code->source;
    // A tile of the first operand, of the second one or four panels: before the loop three times.
    EXPECT_EQ(count(all, "UTMALDG", "2D"), c.op == "Gemm" ? 8 : 20);
    EXPECT_GT(count(all, "SYNCS", "PHASECHK.TRANS64.TRYWAIT"), 0);
    EXPECT_GT(count(all, "SYNCS", "ARRIVE.TRANS64"), 0);
    EXPECT_EQ(count(all, "BAR"), 2);  // one when barriers are ready, one per round
    // The assembler knows that one thread starts copies: no loops over those that might.
    EXPECT_EQ(count(all, "BRA", "U.ANY"), 0);
    const codegen::SassLoop* round = code->kernels[0].loop_with("HGMMA");
    ASSERT_NE(round, nullptr);
    EXPECT_EQ(count(round->counts, "HGMMA"), 4);
    EXPECT_EQ(count(round->counts, "UTMALDG"), c.op == "Gemm" ? 2 : 5);
    for (const char* opcode : {"LDGSTS", "LDG", "STS", "LDL", "STL"})
      EXPECT_EQ(count(all, opcode), 0) << opcode;
  }
}

/// Where there is a GPU of sm_90, its copy engine and products give what the interpreter does.
TEST(GpuMmaSlow, OnTheDeviceTheyAgreeToo) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto device = runtime::open_gpu("cuda");
  if (!device) GTEST_SKIP() << to_string(device.error());
  if ((*device)->info().arch != "sm_90") GTEST_SKIP() << (*device)->info().arch;
  std::vector<MmaCase> cases = bulk_mma_cases();
  cases.push_back({"", "MatMul", {{1000, 1032}, {1032, 1096}}, {}});
  cases.push_back({"", "Gemm", {{1000, 1032}, {1096, 1032}, {1096}}, {{"transB", int64_t{1}}}});
  for (const PlanGpu& rule : {PlanGpu(plan_groups), PlanGpu(plan_wide), PlanGpu(plan_cores)}) {
    codegen::testing::GpuBatch batch(target);
    std::vector<Func> funcs;
    for (const MmaCase& c : cases) {
      funcs.push_back(func_of(c));
      const auto scheduled = schedule::replay(funcs.back(), gpu_trace(funcs.back(), target, rule));
      ASSERT_TRUE(scheduled) << c.name << to_string(scheduled.error());
      const Status added = batch.add(funcs.back(), *scheduled, exact(funcs.back()));
      ASSERT_TRUE(added) << c.name << to_string(added.error());
    }
    const auto got = batch.run(**device);
    ASSERT_TRUE(got) << to_string(got.error());
    for (size_t i = 0; i < funcs.size(); ++i) {
      const auto expected = interp::run(funcs[i], exact(funcs[i]));
      ASSERT_TRUE(expected) << to_string(expected.error());
      const Status same = codegen::testing::compare(expected->outputs, (*got)[i], 0);
      EXPECT_TRUE(same) << cases[i].name << "\n" << to_string(same.error());
    }
  }
}

/// No spills, registers within limits; what the loop around `opcode` is made of, or all of the
/// kernel, where the compiler has written the loop in another form.
codegen::SassCounts counts_with(const Func& func, const hw::GpuTarget& target,
                                const std::string& opcode) {
  const auto code = machine_code(func, target);
  if (!code) {
    ADD_FAILURE() << to_string(code.error());
    return {};
  }
  for (const codegen::CudaKernelUse& use : code->uses) {
    EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
    EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
    EXPECT_LE(use.registers, target.registers) << use.symbol;
  }
  for (const codegen::SassKernel& kernel : code->kernels) EXPECT_EQ(count(kernel.all, "LDL"), 0);
  if (const codegen::SassKernel* kernel = code->with(opcode)) {
    const codegen::SassCounts counts = kernel->loop_with(opcode, {})->counts;
    EXPECT_EQ(count(counts, "BAR"), 1) << code->source;
    return counts;
  }
  EXPECT_EQ(target.arch, "sm_80") << "no loop with " << opcode << "\n" << code->source;
  for (const codegen::SassKernel& kernel : code->kernels)
    if (count(kernel.all, opcode) > 0) return kernel.all;
  ADD_FAILURE() << "no kernel with " << opcode << "\n" << code->source;
  return {};
}

TEST(GpuMmaSlow, MachineCodeOfConvolutions) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const std::map<std::string, tensor::AttrValue> same = {{"pads", Ints{1, 1, 1, 1}}};
  const MmaCase wide = {"", "Conv", {{1, 256, 56, 56}, {256, 256, 3, 3}}, same, DType::BF16};
  const MmaCase small = {"", "Conv", {{1, 64, 56, 56}, {64, 64, 3, 3}}, same, DType::F16};
  const MmaCase pointwise = {"", "Conv", {{1, 256, 56, 56}, {128, 256, 1, 1}}, {}, DType::F16};
  for (const char* name : {"cuda-sm_80", "cuda"}) {
    const hw::GpuTarget target = *hw::find_gpu_target(name);
    for (const MmaCase& c : {wide, small}) {
      const codegen::SassCounts counts = counts_with(func_of(c), target, "HMMA");
      EXPECT_GT(count(counts, "HMMA"), 0);
      EXPECT_GT(count(counts, "LDGSTS", "128"), 0);  // weights
      EXPECT_GT(count(counts, "STS", "128"), 0);     // gathered pixels
      EXPECT_EQ(count(counts, "STS"), count(counts, "STS", "128"));
      // Elements of a place in the window take a load and a few instructions each.
      EXPECT_LE(codegen::total(counts), 48 + 6 * count(counts, "LDG") + 2 * count(counts, "HMMA"));
    }
    const codegen::SassCounts counts = counts_with(func_of(pointwise), target, "HMMA");
    EXPECT_GT(count(counts, "LDGSTS", "128"), 0);
    EXPECT_EQ(count(counts, "STS"), 0);
  }
}

TEST(GpuMmaSlow, MachineCodeOfBytesWithZeroPoints) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  const ZeroPointCase conv = {
      "", "ConvInteger", {1, 64, 28, 28}, {64, 64, 3, 3}, DType::U8, DType::I8, 113};
  const ZeroPointCase product = {"",        "MatMulInteger", {1024, 2048}, {2048, 1024},
                                 DType::U8, DType::U8,       113,          120};
  for (const char* name : {"cuda-sm_80", "cuda"})
    for (const ZeroPointCase& c : {conv, product}) {
      const hw::GpuTarget target = *hw::find_gpu_target(name);
      const codegen::SassCounts counts = counts_with(func_of(c), target, "IMMA");
      EXPECT_GT(count(counts, "IMMA", "U8"), 0);
      EXPECT_GT(count(counts, "LDSM"), 0);
      EXPECT_EQ(count(counts, "IMAD", "U8"), 0);
    }
}

TEST(GpuMmaSlow, MachineCodeOfProductsInTf32) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  for (const char* name : {"cuda-sm_80", "cuda"}) {
    hw::GpuTarget target = *hw::find_gpu_target(name);
    target.tf32 = true;
    const Func func = func_of(MmaCase{"", "MatMul", {{2048, 1024}, {1024, 2048}}, {}, DType::F32});
    const codegen::SassCounts counts = counts_with(with_tf32(func, target), target, "HMMA");
    EXPECT_GT(count(counts, "HMMA", "1688"), 0);
    EXPECT_GT(count(counts, "STS", "128"), 0);
    EXPECT_EQ(count(counts, "FFMA"), 0);
    // Rounding is no branch, and weights that are known are rounded ahead.
    Func known = with_tf32(func, target);
    known.params[1].mode = ParamMode::Const;
    const codegen::SassCounts copied = counts_with(known, target, "HMMA");
    EXPECT_GT(count(copied, "LDGSTS", "128"), 0);
    EXPECT_LT(count(copied, "LDG"), count(counts, "LDG"));
  }
}

TEST(GpuMmaSlow, MachineCodeHasTheInstructions) {
  if (const std::string missing = missing_sass_tools(); !missing.empty()) GTEST_SKIP() << missing;
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const hw::GpuTarget target = *hw::find_gpu_target("cuda-sm_80");
    const auto code = machine_code(
        func_of(MmaCase{"", "MatMul", {{4096, 4096}, {4096, 4096}}, {}, dtype}), target);
    ASSERT_TRUE(code) << to_string(code.error());
    for (const codegen::CudaKernelUse& use : code->uses) {
      EXPECT_EQ(use.spill_bytes, 0) << use.symbol;
      EXPECT_EQ(use.stack_bytes, 0) << use.symbol;
      EXPECT_LE(use.registers, target.registers) << use.symbol;
    }
    const codegen::SassKernel* kernel = code->with("HMMA");
    ASSERT_NE(kernel, nullptr) << code->source;
    const codegen::SassLoop& loop = *kernel->loop_with("HMMA", {});
    // Of a warp's 64 x 64 results and 32 terms: 4 x 8 x 2 products, (4 + 4) x 2 loads; a thread
    // of 256 copies 16 bytes six times, asynchronously.
    EXPECT_EQ(count(loop.counts, "HMMA"), 64);
    EXPECT_EQ(count(loop.counts, "LDSM"), 16);
    EXPECT_EQ(count(loop.counts, "LDGSTS", "128"), 6);
    EXPECT_EQ(count(loop.counts, "BAR"), 1);
    EXPECT_EQ(count(kernel->all, "LDL"), 0);
  }
}

}  // namespace
}  // namespace tilewright::rules
