// For tests: matrix instructions of CUDA in OpenCL C, so that kernels which use them run anywhere.
// The 32 work-items of a warp exchange their registers through local memory, as the PTX ISA
// describes them (section 9.7.14.5, "Matrix Fragments for mma.m16n8k16" and the like; ldmatrix),
// without a look at hw/intrinsics.
#pragma once

#include "tilewright/hw/gpu_target.h"

namespace tilewright::codegen::testing {

/// A device of OpenCL with the shape of one of CUDA.
inline hw::GpuTarget emulating_target() {
  hw::GpuTarget target = *hw::find_gpu_target("opencl");
  target.name = "opencl-emulating-cuda";
  target.warp = 32;
  target.max_threads = 1024;
  target.shared_bytes = 100 << 10;
  return target;
}

inline constexpr const char* kMatrixEmulation = R"c(
/* PoCL 3.1 gives work-groups one memory for all where a __local array reaches functions by its name:
   groups that ran at the same time exchanged their registers. By a pointer each has its own. */
#define TW_MATRIX_STATE                       \
  __local TW_ALIGNED u16 tw_words[32 * 384];  \
  __local u16* tw_exchange = tw_words;        \
  TW_FORGET(tw_exchange)
#define TW_WARP (get_local_id(1) + get_local_size(1) * get_local_id(2))

/* mma.m16n8k16 of 16-bit floats: A by rows, B by columns. */
TW_FN void tw_emulate_mma(f32* c, const u16* a, const u16* b, __local u16* exchange, int half_type) {
  const int lane = (int)get_local_id(0), group = lane >> 2, thread = lane % 4;
  __local u16* A = exchange + 384 * TW_WARP;
  __local u16* B = A + 256;
  for (int i = 0; i < 8; ++i) {
    const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;
    const int col = i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
    A[16 * row + col] = a[i];
  }
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
    B[8 * row + group] = b[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? group : group + 8, col = thread * 2 + (i & 1);
    for (int k = 0; k < 16; ++k) {
      const u16 x = A[16 * row + k], y = B[8 * k + col];
      c[i] += half_type ? tw_f16_f32(x) * tw_f16_f32(y)
                        : as_float((u32)x << 16) * as_float((u32)y << 16);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* mma.m16n8k32 of bytes: a register holds bits, the type of an operand says what they mean. */
TW_FN i32 tw_byte(u8 bits, int is_signed) { return is_signed && bits > 127 ? bits - 256 : bits; }
TW_FN void tw_emulate_mma_bytes(i32* c, const u8* a, const u8* b, __local u16* exchange,
                                int a_signed, int b_signed) {
  const int lane = (int)get_local_id(0), group = lane >> 2, thread = lane % 4;
  __local u8* A = (__local u8*)(exchange + 384 * TW_WARP);
  __local u8* B = A + 512;
  for (int i = 0; i < 16; ++i) {
    const int row = (0 <= i && i < 4) || (8 <= i && i < 12) ? group : group + 8;
    const int col = thread * 4 + (i & 3) + (i >= 8 ? 16 : 0);
    A[32 * row + col] = a[i];
  }
  for (int i = 0; i < 8; ++i) B[8 * (thread * 4 + (i & 3) + (i >= 4 ? 16 : 0)) + group] = b[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? group : group + 8, col = thread * 2 + (i & 1);
    for (int k = 0; k < 32; ++k)
      c[i] += tw_byte(A[32 * row + k], a_signed) * tw_byte(B[8 * k + col], b_signed);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* mma.m16n8k8 of tf32: the low 13 bits of its operands count for nothing. */
TW_FN void tw_emulate_mma_tf32(f32* c, const f32* a, const f32* b, __local u16* exchange) {
  const int lane = (int)get_local_id(0), group = lane >> 2, thread = lane % 4;
  __local u32* A = (__local u32*)(exchange + 384 * TW_WARP);
  __local u32* B = A + 128;
  for (int i = 0; i < 4; ++i)
    A[8 * (i % 2 == 0 ? group : group + 8) + (i < 2 ? thread : thread + 4)] = as_uint(a[i]) & ~8191u;
  for (int i = 0; i < 2; ++i)
    B[8 * (i == 0 ? thread : thread + 4) + group] = as_uint(b[i]) & ~8191u;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? group : group + 8, col = thread * 2 + (i & 1);
    for (int k = 0; k < 8; ++k) c[i] += as_float(A[8 * row + k]) * as_float(B[8 * k + col]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* ldmatrix.x4: thread 8 * m + r gives row r of matrix m. */
TW_FN void tw_emulate_ldmatrix(u16* d, __local const u16* s, __local u16* exchange, int trans) {
  const int lane = (int)get_local_id(0);
  __local u16* rows = exchange + 384 * TW_WARP;
  for (int i = 0; i < 8; ++i) rows[8 * lane + i] = s[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int m = 0; m < 4; ++m)
    for (int i = 0; i < 2; ++i) {
      const int row = lane / 4, col = lane % 4 * 2 + i;
      d[2 * m + i] = rows[64 * m + (trans ? 8 * col + row : 8 * row + col)];
    }
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* Exchanges of a value with the lane `apart` places away, until all are combined. */
TW_FN void tw_emulate_combine(__local f32* c, const f32* a, __local u16* exchange, int greatest) {
  const int lane = (int)get_local_id(0);
  __local f32* all = (__local f32*)(exchange + 384 * TW_WARP);
  f32 x = a[0];
  for (int apart = 1; apart < 32; apart *= 2) {
    all[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    const f32 y = all[lane ^ apart];
    x = greatest ? tw_max_f32(x, y) : x + y;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0) c[0] = greatest ? tw_max_f32(c[0], x) : c[0] + x;
}
TW_FN void tw_emulate_sum_i32(__local i32* c, const i32* a, __local u16* exchange) {
  const int lane = (int)get_local_id(0);
  __local i32* all = (__local i32*)(exchange + 384 * TW_WARP);
  all[lane] = a[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0)
    for (int other = 0; other < 32; ++other) c[0] += all[other];
  barrier(CLK_LOCAL_MEM_FENCE);
}

/* wgmma.m64nNk16 of 16-bit floats in cores without swizzling: thread 32 * w + l of a group has rows
   16 * w + l / 4 (+ 8). Steps between cores are in bytes. */
TW_FN void tw_emulate_wgmma(f32* c, __local const u16* a, u32 a_rows, u32 a_terms,
                            __local const u16* b, u32 b_rows, u32 b_terms, int columns,
                            int half_type, int b_by_columns) {
  const int thread = (int)get_local_id(0), warp = thread / 32, lane = thread % 32;
  for (int i = 0; i < columns / 2; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    const int col = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    for (int k = 0; k < 16; ++k) {
      const u32 in_a = row / 8 * a_rows + k / 8 * a_terms + row % 8 * 16 + k % 8 * 2;
      const u32 in_b = col / 8 * b_rows + k / 8 * b_terms +
                       (b_by_columns ? k % 8 * 16 + col % 8 * 2 : col % 8 * 16 + k % 8 * 2);
      const u16 x = a[in_a / 2], y = b[in_b / 2];
      c[i] += half_type ? tw_f16_f32(x) * tw_f16_f32(y)
                        : as_float((u32)x << 16) * as_float((u32)y << 16);
    }
  }
}

/* The same of panels, which copies fill in order here: 64 elements to a row, columns of the second
   operand in panels of 64 or one behind the other. */
TW_FN void tw_emulate_wgmma_panels(f32* c, __local const u16* a, __local const u16* b, u32 panels,
                                   int columns, int half_type, int b_by_columns) {
  const int thread = (int)get_local_id(0), warp = thread / 32, lane = thread % 32;
  for (int i = 0; i < columns / 2; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    const int col = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    for (int k = 0; k < 16; ++k) {
      const u16 x = a[64 * row + k];
      const u16 y = b_by_columns ? b[col / 64 * (panels / 2) + 64 * k + col % 64] : b[64 * col + k];
      c[i] += half_type ? tw_f16_f32(x) * tw_f16_f32(y)
                        : as_float((u32)x << 16) * as_float((u32)y << 16);
    }
  }
}

#define tw_cuda_wgmma64_bf16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 64, 0, 0)
#define tw_cuda_wgmma64_bf16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 64, 0, 1)
#define tw_cuda_wgmma64_f16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 64, 1, 0)
#define tw_cuda_wgmma64_f16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 64, 1, 1)
#define tw_cuda_wgmma128_bf16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 128, 0, 0)
#define tw_cuda_wgmma128_bf16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 128, 0, 1)
#define tw_cuda_wgmma128_f16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 128, 1, 0)
#define tw_cuda_wgmma128_f16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 128, 1, 1)
#define tw_cuda_wgmma256_bf16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 256, 0, 0)
#define tw_cuda_wgmma256_bf16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 256, 0, 1)
#define tw_cuda_wgmma256_f16_t_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 256, 1, 0)
#define tw_cuda_wgmma256_f16_panels(c, a, ap, b, bp) \
  tw_emulate_wgmma_panels(c, a, b, bp, 256, 1, 1)
#define tw_cuda_wgmma64_bf16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 64, 0, 0)
#define tw_cuda_wgmma64_bf16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 64, 0, 1)
#define tw_cuda_wgmma64_f16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 64, 1, 0)
#define tw_cuda_wgmma64_f16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 64, 1, 1)
#define tw_cuda_wgmma128_bf16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 128, 0, 0)
#define tw_cuda_wgmma128_bf16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 128, 0, 1)
#define tw_cuda_wgmma128_f16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 128, 1, 0)
#define tw_cuda_wgmma128_f16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 128, 1, 1)
#define tw_cuda_wgmma256_bf16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 256, 0, 0)
#define tw_cuda_wgmma256_bf16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 256, 0, 1)
#define tw_cuda_wgmma256_f16_t(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 256, 1, 0)
#define tw_cuda_wgmma256_f16(c, a, ar, at, b, br, bt) \
  tw_emulate_wgmma(c, a, ar, at, b, br, bt, 256, 1, 1)
#define tw_cuda_sum_f32(c, a) tw_emulate_combine(c, a, tw_exchange, 0)
#define tw_cuda_sum_i32(c, a) tw_emulate_sum_i32(c, a, tw_exchange)
#define tw_cuda_max_f32(c, a) tw_emulate_combine(c, a, tw_exchange, 1)
#define tw_cuda_mma_bf16(c, a, b) tw_emulate_mma(c, a, b, tw_exchange, 0)
#define tw_cuda_mma_bf16_t(c, a, b) tw_emulate_mma(c, a, b, tw_exchange, 0)
#define tw_cuda_mma_f16(c, a, b) tw_emulate_mma(c, a, b, tw_exchange, 1)
#define tw_cuda_mma_f16_t(c, a, b) tw_emulate_mma(c, a, b, tw_exchange, 1)
#define tw_cuda_mma_i8_t(c, a, b) \
  tw_emulate_mma_bytes(c, (const u8*)(a), (const u8*)(b), tw_exchange, 1, 1)
#define tw_cuda_mma_u8_t(c, a, b) \
  tw_emulate_mma_bytes(c, (const u8*)(a), (const u8*)(b), tw_exchange, 0, 0)
#define tw_cuda_mma_u8i8_t(c, a, b) \
  tw_emulate_mma_bytes(c, (const u8*)(a), (const u8*)(b), tw_exchange, 0, 1)
#define tw_cuda_mma_i8u8_t(c, a, b) \
  tw_emulate_mma_bytes(c, (const u8*)(a), (const u8*)(b), tw_exchange, 1, 0)
#define tw_cuda_mma_tf32_t(c, a, b) tw_emulate_mma_tf32(c, a, b, tw_exchange)
#define tw_cuda_load_a_tf32(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_bt_tf32(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_a_i8(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_bt_i8(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_a_u8(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_bt_u8(d, s) \
  tw_emulate_ldmatrix((u16*)(d), (__local const u16*)(s), tw_exchange, 0)
#define tw_cuda_load_a_bf16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 0)
#define tw_cuda_load_b_bf16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 1)
#define tw_cuda_load_bt_bf16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 0)
#define tw_cuda_load_a_f16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 0)
#define tw_cuda_load_b_f16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 1)
#define tw_cuda_load_bt_f16(d, s) tw_emulate_ldmatrix(d, s, tw_exchange, 0)
)c";

}  // namespace tilewright::codegen::testing
