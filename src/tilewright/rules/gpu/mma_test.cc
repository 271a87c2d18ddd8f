// Products on matrix instructions: they mean what their tensor form does, in every order of
// threads.
#include "tilewright/rules/gpu/mma.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/gpu/gpu.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_fragments.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/gpu_prepare.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/testing/meaning.h"
#include "tilewright/rules/gpu/testing/mma_cases.h"
#include "tilewright/rules/gpu/testing/zero_points.h"
#include "tilewright/rules/gpu/tf32.h"
#include "tilewright/tensor/text.h"

namespace tilewright::rules {
namespace {

bool has_matrix_instructions(const lower::GpuLaunches& plan) {
  bool found = false;
  for (const lower::GpuKernel& kernel : plan.kernels)
    found |= lower::contains(kernel.func.body, lower::is_warp_call);
  return found;
}

class GpuMmaRule : public ::testing::TestWithParam<MmaCase> {};

void expect_meaning(const Func& func, const hw::GpuTarget& target, const PlanGpu& rule,
                    const interp::Arguments& arguments, bool applies, double tolerance = 0) {
  const auto scheduled = schedule::replay(func, gpu_trace(func, target, rule));
  ASSERT_TRUE(scheduled) << to_string(scheduled.error());
  const auto plan = lower::lower_for_gpu(*scheduled, target);
  ASSERT_TRUE(plan) << to_string(plan.error()) << print(*scheduled);
  EXPECT_EQ(has_matrix_instructions(*plan), applies) << print(*scheduled);
  expect_plan_meaning(func, *plan, arguments, tolerance);
}

void expect_meaning(const MmaCase& c, const PlanGpu& rule) {
  const Func func = func_of(c);
  expect_meaning(func, *hw::find_gpu_target("cuda"), rule, exact(func), c.applies);
}

TEST_P(GpuMmaRule, KeepsTheMeaning) { expect_meaning(GetParam(), plan_gpu); }

INSTANTIATE_TEST_SUITE_P(ConvolutionsSlow, GpuMmaRule, ::testing::ValuesIn(conv_mma_cases()),
                         [](const auto& test) { return test.param.name; });

class GpuMmaZeroPoints : public ::testing::TestWithParam<ZeroPointCase> {};

TEST_P(GpuMmaZeroPoints, KeepTheMeaning) {
  const Func func = func_of(GetParam());
  expect_meaning(func, *hw::find_gpu_target("cuda"), plan_gpu, whole_bytes(func), true);
}

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaZeroPoints, ::testing::ValuesIn(zero_point_cases()),
                         [](const auto& test) { return test.param.name; });

/// Channels last: pixels are rows, and terms lie side by side in both factors.
TEST(GpuMmaLayouts, TakesConvolutionsWithChannelsLast) {
  const auto func = parse_func(R"(
func last(X: bf16[2,8,7,16], W: bf16[24,3,3,16], out Y: f32[2,6,5,24]) {
  for i0 in 2, i1 in 6, i2 in 5, i3 in 24 {
    block Y.init(n: space 2 = i0, h: space 6 = i1, w: space 5 = i2, k: space 24 = i3) {
      Y[n, h, w, k] = 0.0
    }
  }
  for n0 in 2, n1 in 6, n2 in 5, n3 in 24, n4 in 3, n5 in 3, n6 in 16 {
    block Y(n: space 2 = n0, h: space 6 = n1, w: space 5 = n2, k: space 24 = n3, r: reduce 3 = n4, s: reduce 3 = n5, c: reduce 16 = n6) {
      Y[n, h, w, k] += f32(X[n, h + r, w + s, c]) * f32(W[k, r, s, c])
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  const std::vector<BlockFacts> blocks = collect_blocks(*func);
  const auto mma = choose_gpu_mma(*find_block(blocks, "Y"), *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(mma);
  EXPECT_THAT(mma->m, ::testing::ElementsAre("n", "h", "w"));
  EXPECT_THAT(mma->n, ::testing::ElementsAre("k"));
  EXPECT_THAT(mma->k, ::testing::ElementsAre("r", "s", "c"));
  EXPECT_TRUE(mma->a.in_order && mma->b.in_order);
  expect_meaning(*func, *hw::find_gpu_target("cuda"), plan_gpu, quarters(*func), true);
}

/// What the order of a sum of some ten thousand changes in f32.
constexpr double kOrder = 0.02;

class GpuMmaTf32 : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaTf32, RoundsFactors) {
  const Func func = with_tf32(func_of(GetParam()), tf32_target());
  expect_meaning(func, tf32_target(), plan_gpu, thirds(func), true, kOrder);
  // The factors are what is rounded: sums of full ones are others.
  const Func plain = func_of(GetParam());
  const auto rounded = interp::run(func, thirds(func)), full = interp::run(plain, thirds(plain));
  ASSERT_TRUE(rounded && full);
  double apart = 0, largest = 0;
  for (const auto& [name, value] : full->outputs)
    for (int64_t i = 0; i < value.size(); ++i) {
      apart = std::max(apart, std::abs(value.get(i) - rounded->outputs.at(name).get(i)));
      largest = std::max(largest, std::abs(value.get(i)));
    }
  EXPECT_GT(apart, 1e-6 * largest);
  EXPECT_LT(apart, 4e-3 * largest);
}

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaTf32, ::testing::ValuesIn(tf32_mma_cases()),
                         [](const auto& test) { return test.param.name; });

class GpuMmaGroups : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaGroups, KeepTheMeaning) { expect_meaning(GetParam(), plan_cores); }

INSTANTIATE_TEST_SUITE_P(ProductsSlow, GpuMmaGroups, ::testing::ValuesIn(group_mma_cases()),
                         [](const auto& test) { return test.param.name; });

lower::GpuLaunches kernels_of(const Func& func, const PlanGpu& rule) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto plan =
      lower::lower_for_gpu(*schedule::replay(func, gpu_trace(func, target, rule)), target);
  if (plan) return *plan;
  ADD_FAILURE() << print(func) << to_string(plan.error());
  return {};
}

class GpuMmaBulk : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaBulk, KeepsTheMeaning) { expect_meaning(GetParam(), plan_groups); }

INSTANTIATE_TEST_SUITE_P(ProductsSlow, GpuMmaBulk, ::testing::ValuesIn(bulk_mma_cases()),
                         [](const auto& test) { return test.param.name; });

class GpuMmaBulkCode : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaBulkCode, FetchesBothOperands) {
  const lower::GpuLaunches plan = kernels_of(func_of(GetParam()), plan_groups);
  ASSERT_EQ(plan.kernels.size(), 1u);
  const lower::GpuKernel& kernel = plan.kernels[0];
  ASSERT_EQ(kernel.bulk.maps.size(), 2u);
  EXPECT_GE(kernel.bulk.groups, 2);
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = GetParam().inputs[i];
    const lower::TensorMap& map = kernel.bulk.maps[i];
    // Nothing beyond the ends of an operand is read.
    EXPECT_TRUE(std::equal(map.dims.begin(), map.dims.end(), shape.rbegin(), shape.rend()));
    EXPECT_EQ(map.strides[0], shape.back() * 2);
    EXPECT_EQ(map.box[0], 64);
  }
  const auto text = codegen::emit_gpu(plan.kernels, *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(text) << to_string(text.error());
  const std::string body = text->substr(text->find("extern \"C\" __global__"));
  EXPECT_THAT(body, ::testing::HasSubstr("const __grid_constant__ tw_map tw_map_1)"));
  EXPECT_THAT(body, ::testing::HasSubstr("extern __shared__ __align__(1024)"));
  EXPECT_THAT(body, ::testing::Not(::testing::HasSubstr("tw_copy16")));
  EXPECT_THAT(body, ::testing::Not(::testing::HasSubstr("tw_show_cores")));
}

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaBulkCode, ::testing::ValuesIn(bulk_mma_cases()),
                         [](const auto& test) { return test.param.name; });

/// What the rule has the engine fetch is never refused later, in any tile, depth or number of
/// parts.
TEST(GpuMmaBulkChoiceSlow, WhatIsPlannedIsLowered) {
  Rng rng(3);
  int fetched = 0;
  for (int round = 0; round < 60; ++round) {
    const int64_t step = rng.chance(0.8) ? 8 : 4, depth = rng.between(1, 6);
    const int64_t m = rng.between(8, 300), n = step * rng.between(3, 70),
                  k = step * rng.between(3, 60), splits = rng.between(1, 2);
    const bool by_rows = rng.chance(0.5), batched = !by_rows && rng.chance(0.3);
    MmaCase c = {"", by_rows ? "Gemm" : "MatMul", {{m, k}, {k, n}}, {}};
    if (by_rows) c.inputs[1] = {n, k}, c.attrs = {{"transB", int64_t{1}}};
    if (batched) c.inputs = {{2, m, k}, {2, k, n}};
    const size_t choice = static_cast<size_t>(rng.between(0, 5));
    const auto rule = [&](const BlockFacts& block, const hw::GpuTarget& target) {
      GpuPlan plan = plan_groups(block, target);
      if (!plan.mma) return plan;
      const std::vector<GpuMma> tiles = mma_tiles(*plan.mma, target);
      plan.mma = tiles[choice % tiles.size()];
      plan.mma->splits = plan.mma->split_extent % (8 * splits) == 0 ? splits : 1;
      plan.mma->depth = std::min(depth, plan.mma->rounds());
      return plan;
    };
    const lower::GpuLaunches plan = kernels_of(func_of(c), rule);
    for (const lower::GpuKernel& kernel : plan.kernels) fetched += kernel.bulk.groups > 1;
  }
  EXPECT_GT(fetched, 20);
}

/// Four rounds in two slots: a copy overwrites what products of two groups have read a round ago.
TEST(GpuMmaBulkSlotsSlow, AreFreeBeforeTheyAreFilledAgain) {
  expect_meaning({"", "MatMul", {{128, 256}, {256, 64}}, {}},
                 [](const BlockFacts& block, const hw::GpuTarget& target) {
                   GpuPlan plan = plan_groups(block, target);
                   if (plan.mma) plan.mma->depth = 2, plan.mma->block_m = 128;
                   return plan;
                 });
}

TEST(GpuMmaBulkChoice, ThreadsCopyWhatTheEngineCannot) {
  const auto maps = [](const MmaCase& c, const PlanGpu& rule) {
    size_t count = 0;
    for (const lower::GpuKernel& kernel : kernels_of(func_of(c), rule).kernels)
      count += kernel.bulk.maps.size();
    return count;
  };
  const MmaCase plain = bulk_mma_cases()[0];
  EXPECT_EQ(maps(plain, plan_groups), 2u);
  EXPECT_EQ(maps(plain, plan_cores), 0u);
  EXPECT_EQ(maps(plain, plan_gpu), 2u) << "groups take less time";
  // One round at a time is not fetched ahead.
  EXPECT_EQ(maps({"", "MatMul", {{64, 64}, {64, 64}}, {}}, plan_groups), 0u);
  // Rows of 82 bytes; terms that do not lie side by side; products that are gathered.
  EXPECT_EQ(maps({"", "MatMul", {{64, 141}, {141, 64}}, {}}, plan_groups), 0u);
  EXPECT_EQ(maps({"", "Gemm", {{128, 64}, {128, 64}}, {{"transA", int64_t{1}}}}, plan_groups), 0u);
  EXPECT_EQ(maps({"", "Conv", {{1, 64, 10, 10}, {64, 64, 3, 3}}, {}}, plan_groups), 0u);
}

/// The rule with the terms shared out to two blocks.
GpuPlan plan_split(const BlockFacts& block, const hw::GpuTarget& target) {
  GpuPlan plan = plan_gpu(block, target);
  if (plan.mma) plan.mma->splits = 2;
  return plan;
}

class GpuMmaTurns : public ::testing::TestWithParam<MmaCase> {};

/// Two tiles of 16 x 16 per block, and three, which may leave a rest.
TEST_P(GpuMmaTurns, KeepTheMeaning) {
  for (const int64_t turns : {2, 3})
    expect_meaning(GetParam(), [turns](const BlockFacts& block, const hw::GpuTarget& target) {
      GpuPlan plan = plan_gpu(block, target);
      if (!plan.mma) return plan;
      plan.mma->block_m = plan.mma->warp_m = plan.mma->block_n = plan.mma->warp_n = 16;
      plan.mma->raster = 1, plan.mma->splits = 1;
      plan.mma->turns = turns;
      return plan;
    });
}

INSTANTIATE_TEST_SUITE_P(
    ProductsSlow, GpuMmaTurns,
    ::testing::Values(MmaCase{"product", "MatMul", {{64, 96}, {96, 64}}, {}},
                      MmaCase{"batched", "MatMul", {{3, 30, 64}, {3, 64, 40}}, {}, DType::F16},
                      MmaCase{
                          "dense", "Gemm", {{50, 80}, {40, 80}, {40}}, {{"transB", int64_t{1}}}},
                      MmaCase{"conv",
                              "Conv",
                              {{1, 16, 6, 6}, {32, 16, 3, 3}, {32}},
                              {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}}),
    [](const auto& test) { return test.param.name; });

class GpuMmaSplit : public ::testing::TestWithParam<MmaCase> {};

TEST_P(GpuMmaSplit, KeepsTheMeaning) { expect_meaning(GetParam(), plan_split); }

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaSplit, ::testing::ValuesIn(split_mma_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(GpuMmaSplit, SplitsInGroupsOfWarps) {
  expect_meaning({"", "MatMul", {{40, 128}, {128, 40}}, {}},
                 [](const BlockFacts& block, const hw::GpuTarget& target) {
                   GpuPlan plan = plan_groups(block, target);
                   if (plan.mma) plan.mma->splits = 2;
                   return plan;
                 });
}

/// Kernels that lay out weights depend on them alone.
TEST(GpuMmaLayouts, KnownWeightsAreLaidOutOnce) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto prepared = [&](Func func, ParamMode mode) {
    func.params[1].mode = mode;
    const auto plan =
        lower::lower_for_gpu(*schedule::replay(func, gpu_trace(func, target)), target);
    EXPECT_TRUE(plan) << to_string(plan.error());
    return lower::prepared_calls(func, *plan);
  };
  const MmaCase conv = {"", "Conv", {{1, 16, 6, 6}, {16, 16, 3, 3}}, {}};
  EXPECT_THAT(prepared(func_of(conv), ParamMode::Const), ::testing::ElementsAre(true, false));
  EXPECT_THAT(prepared(func_of(conv), ParamMode::In), ::testing::ElementsAre(false, false));
  const MmaCase bytes = {"", "MatMulInteger", {{40, 64}, {64, 24}}, {}, DType::I8};
  EXPECT_THAT(prepared(func_of(bytes), ParamMode::Const), ::testing::ElementsAre(true, false));
  EXPECT_THAT(prepared(func_of(bytes), ParamMode::In), ::testing::ElementsAre(false));
}

INSTANTIATE_TEST_SUITE_P(Products, GpuMmaRule, ::testing::ValuesIn(small_mma_cases()),
                         [](const auto& test) { return test.param.name; });

GpuMma chosen(const MmaCase& c) {
  const Func func = func_of(c);
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks)
    if (const auto mma = choose_gpu_mma(block, *hw::find_gpu_target("cuda"))) return *mma;
  ADD_FAILURE() << c.name;
  return {};
}

TEST(GpuMmaChoice, TilesAreAsLargeAsKeepsAllMultiprocessorsBusy) {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return MmaCase{"", "MatMul", {{m, k}, {k, n}}, {}, DType::BF16};
  };
  const GpuMma large = chosen(product(8192, 8192, 512));
  EXPECT_EQ(large.block_m * large.block_n, 128 * 256);
  EXPECT_TRUE(large.groups);
  EXPECT_EQ(large.warps(), 2) << "groups of four";
  EXPECT_EQ(large.raster, 8);
  EXPECT_EQ(chosen(product(128 * 12, 8192, 512)).raster, 4);
  const GpuMma small = chosen(product(512, 512, 512));
  EXPECT_LT(small.block_m * small.block_n, 128 * 128);
}

TEST(GpuMmaChoice, SplitsTheTermsOfFewTiles) {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return MmaCase{"", "MatMul", {{m, k}, {k, n}}, {}, DType::BF16};
  };
  EXPECT_GT(chosen(product(64, 64, 16384)).splits, 8);
  EXPECT_EQ(chosen(product(8192, 8192, 8192)).splits, 1);
  EXPECT_EQ(chosen(product(64, 64, 64)).splits, 1);
  EXPECT_GT(chosen({"", "Conv", {{1, 512, 7, 7}, {512, 512, 3, 3}}, {}}).splits, 1);
}

TEST(GpuMmaChoice, PartsKeepCopiesTogether) {
  GpuMma mma;
  mma.split_extent = 96, mma.extent_k = 960, mma.block_k = 32;
  EXPECT_THAT(mma.split_choices(), ::testing::ElementsAre(1, 2, 3, 4, 6, 12));
  mma.extent_k = 96;  // a part has two rounds at least
  EXPECT_THAT(mma.split_choices(), ::testing::ElementsAre(1));
}

/// The product that `func` is, its tile not chosen yet.
GpuMma found(const Func& func) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  for (const BlockFacts& block : blocks)
    if (const auto mma = find_gpu_mma(block, *hw::find_gpu_target("cuda"))) return *mma;
  ADD_FAILURE() << print(func);
  return {};
}

TEST(GpuMmaChoice, WindowsAreCopiedWholeWhereChannelsFillRows) {
  for (const int64_t channels : {12, 16}) {
    const GpuMma mma =
        found(func_of(MmaCase{"", "Conv", {{1, channels, 6, 6}, {16, channels, 3, 3}}, {}}));
    EXPECT_EQ(mma.a.whole_windows || mma.b.whole_windows, channels == 16);
    EXPECT_EQ(mma.a.packed || mma.b.packed, channels == 16);
  }
}

TEST(GpuMmaChoice, TheLargerFactorDecidesTheOrderOfTerms) {
  const auto order = [](int64_t m, int64_t n) {
    const auto func = tensor::parse_tensor_file(fmt::format(
        "tensor f(A: bf16[{0}, 8, 16], B: bf16[{1}, 16, 8]) {{\n  Y[i in {0}, j in {1}] = sum(r in "
        "8, c in 16) f32(A[i, r, c]) * f32(B[j, c, r])\n  return Y\n}}\n",
        m, n));
    EXPECT_TRUE(func) << to_string(func.error());
    return found(*func).k;
  };
  EXPECT_THAT(order(48, 16), ::testing::ElementsAre("r", "c"));
  EXPECT_THAT(order(16, 48), ::testing::ElementsAre("c", "r"));
}

TEST(GpuMmaTiles, BlocksTakeNoMoreThanThereIs) {
  hw::GpuTarget target = *hw::find_gpu_target("cuda");
  GpuMma mma = found(func_of(MmaCase{"", "MatMul", {{256, 512}, {512, 256}}, {}}));
  mma.block_m = mma.block_n = mma.warp_m = mma.warp_n = 64;
  // Results, both fragments of 16 terms, and others.
  target.registers = 64 * 64 / 32 + (64 + 64) * 16 / 2 / 32 + 48;
  EXPECT_TRUE(mma_time(mma, target));
  --target.registers;
  EXPECT_FALSE(mma_time(mma, target));
  target = *hw::find_gpu_target("cuda");
  for (const int64_t shared : {int64_t{20000}, int64_t{50000}, target.shared_bytes}) {
    target.shared_bytes = shared;
    for (const GpuMma& tile : mma_tiles(mma, target)) {
      const int64_t round = (tile.block_m + tile.block_n) * (tile.block_k * 2 + kMmaRowBytes);
      EXPECT_EQ(tile.depth, std::min<int64_t>(4, shared / round));
    }
  }
}

TEST(GpuMmaTiles, MemoryAndGatheringTakeTime) {
  hw::GpuTarget target = *hw::find_gpu_target("cuda");
  GpuMma mma = found(func_of(MmaCase{"", "MatMul", {{256, 512}, {512, 128}}, {}}));
  ASSERT_TRUE(choose_mma_tiles(mma, target));
  const double time = *mma_time(mma, target);
  GpuMma gathered = mma;
  gathered.a.in_order = !mma.a.in_order;
  EXPECT_EQ(*mma_time(gathered, target) > time, mma.a.in_order);
  gathered.a = mma.a, gathered.b.in_order = !mma.b.in_order;
  EXPECT_EQ(*mma_time(gathered, target) > time, mma.b.in_order);
  target.rates.dram = 1e-3;  // bytes per ns
  EXPECT_GT(*mma_time(mma, target), (256 + 128) * 512 * 2 / 1e-3);
}

TEST(GpuMmaChoice, RoundsOnlyWhereAsked) {
  const Func func = func_of(tf32_mma_cases()[0]);
  EXPECT_TRUE(equal(with_tf32(func, *hw::find_gpu_target("cuda")), func));
  Func exact = func;
  exact.math = MathMode::Exact;
  EXPECT_TRUE(equal(with_tf32(exact, tf32_target()), exact));
  const Func vector = func_of(MmaCase{"", "MatMul", {{1, 64}, {64, 64}}, {}, DType::F32});
  EXPECT_TRUE(equal(with_tf32(vector, tf32_target()), vector));
  EXPECT_FALSE(equal(with_tf32(func, tf32_target()), func));
}

TEST(GpuMmaChoice, ExactMathKeepsTheOrderOfFloatSums) {
  const hw::GpuTarget target = *hw::find_gpu_target("cuda");
  const auto instructions = [&](const MmaCase& c) {
    Func func = func_of(c);
    func.math = MathMode::Exact;
    const auto plan =
        lower::lower_for_gpu(*schedule::replay(func, gpu_trace(func, target)), target);
    EXPECT_TRUE(plan) << to_string(plan.error());
    return plan && has_matrix_instructions(*plan);
  };
  EXPECT_FALSE(instructions({"", "MatMul", {{64, 64}, {64, 64}}, {}, DType::BF16}));
  EXPECT_TRUE(instructions({"", "MatMulInteger", {{64, 64}, {64, 64}}, {}, DType::I8}));
}

TEST(GpuMmaChoice, GroupsOfWarpsWhereTheTargetHasThemAndTilesFit) {
  const GpuMma large = chosen({"", "MatMul", {{8192, 512}, {512, 8192}}, {}, DType::BF16});
  const auto groups = in_groups(large, *hw::find_gpu_target("cuda"));
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->warp_m, 64);
  EXPECT_EQ(groups->warp_n, 256);
  EXPECT_LE(groups->depth * (groups->block_m + groups->block_n) * groups->block_k * 2,
            hw::find_gpu_target("cuda")->shared_bytes);
  EXPECT_FALSE(in_groups(large, *hw::find_gpu_target("cuda-sm_80")));
  const GpuMma narrow = chosen({"", "MatMul", {{512, 64}, {64, 16}}, {}, DType::BF16});
  EXPECT_FALSE(in_groups(narrow, *hw::find_gpu_target("cuda")));
}

TEST(GpuMmaChoice, OnlyWhereTheTargetHasInstructions) {
  const Func func = func_of(MmaCase{"", "MatMul", {{64, 64}, {64, 64}}, {}, DType::BF16});
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  hw::GpuTarget older = *hw::find_gpu_target("cuda-sm_80");
  older.arch = "sm_75";
  for (const BlockFacts& block : blocks) {
    EXPECT_FALSE(choose_gpu_mma(block, *hw::find_gpu_target("opencl"))) << block.name;
    EXPECT_FALSE(choose_gpu_mma(block, older)) << block.name;
  }
}

}  // namespace
}  // namespace tilewright::rules
