// Copies of whole tiles in the text of kernels, and where products look for what they bring.
#include "tilewright/codegen/gpu/bulk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/gpu/matrix.h"
#include "tilewright/codegen/gpu/nvrtc.h"
#include "tilewright/codegen/gpu/prelude.h"
#include "tilewright/ir/text.h"

namespace tilewright::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

lower::BulkUse use_of_groups(int64_t groups) {
  lower::BulkUse use;
  use.groups = groups;
  return use;
}

TEST(BulkText, CountsGroupsByARingOfBarriers) {
  const lower::BulkUse use = use_of_groups(3);
  const BulkText bulk(use);
  CText text;
  bulk.begin("tw_shared + 4096", text);
  bulk.commit(text);
  bulk.wait(1, text);
  EXPECT_EQ(text.text,
            R"(u64* const tw_arrivals = (u64*)(tw_shared + 4096);
u32 tw_begun = 0, tw_come = 0, tw_begin_at = 0, tw_come_at = 0, tw_turn = 0;
const bool tw_first_warp = tw_in_first_warp();
if (tw_first_warp && tw_elected()) tw_begin_arrivals(tw_arrivals, 3);
__syncthreads();
if (tw_first_warp && tw_elected()) tw_arrive(tw_arrivals + tw_begin_at);
++tw_begun, tw_begin_at = tw_begin_at == 2 ? 0 : tw_begin_at + 1;
for (; tw_come + 1 < tw_begun; ++tw_come) {
  tw_await(tw_arrivals + tw_come_at, tw_turn);
  if (++tw_come_at == 3) tw_come_at = 0, tw_turn ^= 1;
}
)");
  EXPECT_FALSE(BulkText(use_of_groups(0)).any());
}

TEST(BulkText, IsOneCallForATile) {
  const auto func = parse_func(R"(
func f(A: bf16[2,20,136], inout P: bf16[4,24,64]) {
  for t in 3 {
    for r in 24, c in 64 {
      P[t, r, c] = select(t * 64 + c < 136, select(r < 20, A[1, r, t * 64 + c], 0.0bf16), 0.0bf16)
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  const For& rounds = *func->body.as<For>();
  const For& nest = *rounds.body.as<For>();
  CNames names;
  CExprWriter::Strides strides;
  for (const Param& p : func->params) strides[p.buffer] = strides_of(p.buffer, p.strides);
  CExprWriter exprs(names, strides, CDialect{"f", true, false, false});
  exprs.bounds.bind(rounds.var, rounds.extent);
  exprs.declared_type(rounds.var);
  lower::BulkUse use = use_of_groups(4);
  CText text;
  EXPECT_FALSE(BulkText(use).fetch(nest, names, exprs, text)) << "no such map";
  use.maps = {{func->params[1].buffer, {64}, {}, {64}},
              lower::bulk_copy_of(nest, exprs.bounds)->map};
  EXPECT_THAT(BulkText(use).parameters(), ElementsAre("const __grid_constant__ tw_map tw_map_0",
                                                      "const __grid_constant__ tw_map tw_map_1"));
  ASSERT_TRUE(BulkText(use).fetch(nest, names, exprs, text));
  EXPECT_THAT(text.text, HasSubstr("tw_fetch3(P + t * 1536, tw_map_1, (i32)(t * 64), (i32)0, "
                                   "(i32)1, tw_arrivals + tw_begin_at, 3072);"));
}

TEST(BulkText, IsWhatTheAssemblerWants) {
  if (const auto version = nvrtc_version(); !version) GTEST_SKIP() << to_string(version.error());
  const lower::BulkUse use = use_of_groups(2);
  CText kernel;
  kernel.open("extern \"C\" __global__ void k(const __grid_constant__ tw_map m, int* y) {");
  kernel.line("__shared__ __align__(1024) int to[2048];");
  BulkText(use).begin("", kernel);
  std::string places = "0";
  for (int axes = 2; axes <= 5; ++axes)
    kernel.line(fmt::format("if ({}) tw_fetch{}(to, m, {}, tw_arrivals + tw_begin_at, 4096);",
                            kOneThread, axes, places += ", 0"));
  BulkText(use).commit(kernel);
  BulkText(use).wait(0, kernel);
  kernel.line("y[threadIdx.x] = to[threadIdx.x];");
  kernel.close();
  const auto code = compile_cuda(
      gpu_prelude(*hw::find_gpu_target("cuda"), false) + cuda_bulk_helpers() + kernel.text,
      "sm_90a");
  ASSERT_TRUE(code) << to_string(code.error());
  for (int axes = 2; axes <= 5; ++axes)
    EXPECT_THAT(code->ptx, HasSubstr(fmt::format("cp.async.bulk.tensor.{}d", axes)));
}

/// Where a copy with swizzling by 128 bytes puts 16-bit element (row, column) of a panel. source:
/// PTX ISA, 5.5.6 (swizzling modes).
int64_t brought_to(int64_t panel, int64_t row, int64_t column) {
  return panel + 128 * row + 16 * (column / 8 ^ row % 8) + column % 8 * 2;
}
/// Where an instruction looks: the address that steps give, with bits 4 to 6 exchanged by 7 to 9.
int64_t found_at(int64_t address) { return address ^ (address >> 7 & 7) << 4; }

/// The fields of a descriptor as tw_panels writes them. source: PTX ISA, 9.7.15.5.1.
constexpr int64_t kStride = 1024, kLeading = 8192, kTerms = 16;

TEST(Panels, AreWhereProductsLookForThem) {
  const std::string helpers = cuda_matrix_helpers();
  EXPECT_THAT(helpers, HasSubstr("(u64)(panels >> 4) << 16 | (u64)(1024 >> 4) << 32 |\n"
                                 "         (u64)1 << 62"));
  const int64_t base = 1024;
  // Terms along: groups of 8 rows are kStride apart; a step goes on by 16 terms, 32 bytes.
  for (const int64_t first : {0, 64})
    for (int64_t step = 0; step < 64; step += kTerms)
      for (int64_t row = 0; row < 64; ++row)
        for (int64_t term = 0; term < kTerms; ++term) {
          const int64_t start = base + 128 * first + 2 * step;
          EXPECT_EQ(found_at(start + row / 8 * kStride + row % 8 * 128 + term * 2),
                    brought_to(base, first + row, step + term));
        }
  // Rows along: groups of 8 terms are kStride apart, panels of 64 rows kLeading.
  for (int64_t step = 0; step < 64; step += kTerms)
    for (int64_t row = 0; row < 256; ++row)
      for (int64_t term = 0; term < kTerms; ++term) {
        const int64_t start = base + 128 * step;
        EXPECT_EQ(found_at(start + row / 64 * kLeading + term / 8 * kStride + term % 8 * 128 +
                           row % 64 * 2),
                  brought_to(base + row / 64 * kLeading, step + term, row % 64));
      }
}

}  // namespace
}  // namespace tilewright::codegen
