#include "tilewright/hw/gpu_intrinsics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::hw {
namespace {

using ::testing::HasSubstr;

TEST(GpuIntrinsics, EveryOneCanBeWritten) {
  ASSERT_GE(gpu_intrinsics().size(), 10u);
  for (const Intrinsic& in : gpu_intrinsics()) {
    const auto instruction = gpu_instruction(in);
    ASSERT_TRUE(instruction) << to_string(instruction.error());
    if (!instruction->combine.empty()) {
      EXPECT_TRUE(instruction->operands[0].one) << in.name();
    } else if (!is_of_thread(in)) {
      EXPECT_THAT(instruction->ptx, HasSubstr(".sync.aligned.")) << in.name();
    }
    EXPECT_EQ(find_gpu_intrinsic(in.meaning), &in);
  }
}

TEST(GpuIntrinsics, TargetsHaveThemFromTheirArchitectureOn) {
  const Intrinsic& mma = *find_gpu_intrinsic("cuda.mma_bf16");
  EXPECT_TRUE(has_intrinsic(*find_gpu_target("cuda"), mma));
  EXPECT_TRUE(has_intrinsic(*find_gpu_target("cuda-sm_80"), mma));
  EXPECT_FALSE(has_intrinsic(*find_gpu_target("opencl"), mma));
  GpuTarget older = *find_gpu_target("cuda-sm_80");
  older.arch = "sm_75";
  EXPECT_FALSE(has_intrinsic(older, mma));
  Intrinsic newer = mma;
  newer.compute["needs"] = "sm_90a";
  EXPECT_TRUE(has_intrinsic(*find_gpu_target("cuda"), newer));
  EXPECT_FALSE(has_intrinsic(*find_gpu_target("cuda-sm_80"), newer));
  older.arch = "sm_100";
  EXPECT_FALSE(has_intrinsic(older, newer));  // instructions of sm_90a exist there alone
  EXPECT_TRUE(has_intrinsic(older, mma));
  // The same name with another meaning is another function.
  Func other = mma.meaning;
  other.math = MathMode::Exact;
  EXPECT_EQ(find_gpu_intrinsic(other), nullptr);
}

TEST(GpuIntrinsics, ThreadsMultiplyBytesByThemselves) {
  const GpuTarget cuda = *find_gpu_target("cuda");
  const auto ptx = [&](DType a, DType b) {
    const Intrinsic* dot = find_dot_of_bytes(cuda, a, b);
    return dot != nullptr ? gpu_instruction(*dot)->ptx : "";
  };
  EXPECT_EQ(ptx(DType::I8, DType::I8), "dp4a.s32.s32");
  EXPECT_EQ(ptx(DType::U8, DType::I8), "dp4a.u32.s32");
  EXPECT_EQ(ptx(DType::I8, DType::U8), "dp4a.s32.u32");
  EXPECT_EQ(ptx(DType::U8, DType::U8), "dp4a.u32.u32");
  EXPECT_EQ(ptx(DType::F16, DType::F16), "");
  GpuTarget old = cuda;
  old.arch = "sm_60";
  EXPECT_EQ(find_dot_of_bytes(old, DType::I8, DType::I8), nullptr);
  old.arch = "sm_61";
  EXPECT_NE(find_dot_of_bytes(old, DType::I8, DType::I8), nullptr);
  EXPECT_NE(find_dot_of_bytes(*find_gpu_target("opencl"), DType::U8, DType::I8), nullptr);
  EXPECT_FALSE(is_of_thread(*find_gpu_intrinsic("cuda.mma_i8_t")));
  Intrinsic apart = *find_dot_of_bytes(cuda, DType::I8, DType::I8);
  apart.layout["c"] = "word";
  EXPECT_FALSE(gpu_instruction(apart));
}

TEST(GpuIntrinsics, LayoutsPlaceEveryElementOnce) {
  const auto layout = parse_lane_layout("16x8 [i, j] -> [i % 8 * 4 + j / 2, i / 8 * 2 + j % 2]");
  ASSERT_TRUE(layout) << to_string(layout.error());
  EXPECT_EQ(layout->registers, 4);
  const auto refusal = [](const char* text) {
    const auto got = parse_lane_layout(text);
    return got ? std::string("accepted") : to_string(got.error());
  };
  EXPECT_THAT(refusal("16x8 [i, j] -> [i % 8 * 4 + j / 2, i / 8 * 2]"), HasSubstr("128 elements"));
  EXPECT_THAT(refusal("8x4 [i, j] -> [i * 20 + j, 0]"), HasSubstr("no lane below 128"));
  EXPECT_THAT(refusal("8x4 [i, j] -> [i * 2 + j, 0]"), HasSubstr("32 elements"));
  EXPECT_THAT(refusal("8x4 [i] -> [i, 0]"), HasSubstr("1 axes for 2 extents"));
  EXPECT_THAT(refusal("8y4 [i, j] -> [i, j]"), HasSubstr("no tile"));
  EXPECT_THAT(refusal("8x4"), HasSubstr("no layout"));
  EXPECT_FALSE(parse_lane_layout("8x4 [i, j] -> (i, j)"));
  EXPECT_FALSE(parse_lane_rows("rows [a, b] -> [a]"));
  EXPECT_FALSE(parse_lane_rows("columns [a] -> [a]"));
  EXPECT_FALSE(parse_core_axes("cores [rows, rows]"));
  EXPECT_EQ(parse_core_axes("cores [terms, rows]")->rows, 1u);
  EXPECT_FALSE(parse_panel_axes("panels [rows]"));
  EXPECT_FALSE(parse_panel_axes("panels [terms, rows]")->terms_along);
}

TEST(GpuIntrinsics, FieldsThatDoNotFitAreRefused) {
  const Intrinsic& good = *find_gpu_intrinsic("cuda.mma_bf16");
  struct Row {
    const char* key;
    const char* value;
    const char* part;
  };
  for (const Row& row :
       {Row{"operands", "c a", "leaves some out"}, Row{"ptx", "", "no field"},
        Row{"operands", "c a q", "no parameter q"}, Row{"operands", "a c b", "not the result"},
        Row{"needs", "avx", "no architecture"}}) {
    Intrinsic in = good;
    in.compute[row.key] = row.value;
    const auto got = gpu_instruction(in);
    ASSERT_FALSE(got) << row.value;
    EXPECT_THAT(to_string(got.error()), HasSubstr(row.part));
  }
  Intrinsic other = *find_gpu_intrinsic("cuda.sum_f32");
  EXPECT_TRUE(gpu_instruction(other));
  other.compute["combine"] = "xor";
  EXPECT_THAT(to_string(gpu_instruction(other).error()), HasSubstr("neither add nor max"));
  Intrinsic wide = good;
  wide.layout["b"] = "16x16 [i, j] -> [i % 8 * 4 + j / 4, i / 8 * 4 + j % 4]";
  EXPECT_FALSE(gpu_instruction(wide));
  Intrinsic panels = *find_gpu_intrinsic("cuda.wgmma64_bf16_panels");
  EXPECT_TRUE(gpu_instruction(panels));
  panels.layout["b"] = "panels [rows, terms]";
  EXPECT_THAT(to_string(gpu_instruction(panels).error()),
              HasSubstr("b is not made of rows of 128"));
}

}  // namespace
}  // namespace tilewright::hw
