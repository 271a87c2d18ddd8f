// For tests: a product by matrix instructions, as schedules make it.
#pragma once

#include <string>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/text.h"

namespace tilewright::lower::testing {

/// `Y = max(A * B + bias, 0)` on 63 x 31 of 64 x 32 results: two blocks of 2 x 2 warps with 16 x 16
/// results each.
inline std::string warp_product_text() {
  std::string text;
  for (const char* name : {"cuda.mma_bf16", "cuda.load_a_bf16", "cuda.load_b_bf16"})
    text += print(hw::find_gpu_intrinsic(name)->meaning) + "\n";
  return text + R"(
func product(A: bf16[64,32], B: bf16[32,32], bias: f32[32], out Y: f32[63,31]) {
  for bi in 2 bind(block.x) {
    alloc C: f32[64,32] warp
    for iz in 2 bind(thread.z), iy in 2 bind(thread.y), il in 32 bind(thread.x), im in 2 unroll, ii in 2 unroll, iv in 2 unroll {
      block C.init(i: space 64 = bi * 32 + iz * 16 + ii * 8 + il / 4, j: space 32 = iy * 16 + im * 8 + il % 4 * 2 + iv) {
        C[i, j] = 0.0
      }
    }
    for ko in 2 {
      alloc SA: bf16[64,32] shared
      alloc SB: bf16[32,32] shared
      for az in 2 bind(thread.z), ay in 2 bind(thread.y), ax in 32 bind(thread.x), av in 4 vector {
        block SA(i: space 64 = bi * 32 + (az * 64 + ay * 32 + ax) / 4, k: space 32 = ko * 16 + ax % 4 * 4 + av) {
          SA[i, k] = A[i, k]
        }
      }
      for bz in 2 bind(thread.z), by in 2 bind(thread.y), bx in 32 bind(thread.x), bv in 4 vector {
        block SB(k: space 32 = ko * 16 + (bz * 64 + by * 32 + bx) / 8, j: space 32 = bx % 8 * 4 + bv) {
          SB[k, j] = B[k, j]
        }
      }
      for wz in 2 bind(thread.z), wy in 2 bind(thread.y) {
        alloc FA: bf16[64,32] warp
        alloc FB: bf16[32,32] warp
        block FA(i: space 4 = bi * 2 + wz, k: space 2 = ko) {
          call cuda.load_a_bf16(FA[i * 16:+16, k * 16:+16], SA[i * 16:+16, k * 16:+16])
        }
        block FB(k: space 2 = ko, j: space 2 = wy) {
          call cuda.load_b_bf16(FB[k * 16:+16, j * 16:+16], SB[k * 16:+16, j * 16:+16])
        }
        for n in 2 unroll {
          block C(i: space 4 = bi * 2 + wz, j: space 4 = wy * 2 + n, k: reduce 2 = ko) {
            call cuda.mma_bf16(C[i * 16:+16, j * 8:+8], FA[i * 16:+16, k * 16:+16], FB[k * 16:+16, j * 8:+8])
          }
        }
      }
    }
    for yz in 2 bind(thread.z), yy in 2 bind(thread.y), yl in 32 bind(thread.x), ym in 2 unroll, yi in 2 unroll, yv in 2 unroll {
      block Y(i: space 63 = bi * 32 + yz * 16 + yi * 8 + yl / 4, j: space 31 = yy * 16 + ym * 8 + yl % 4 * 2 + yv) where bi * 32 + yz * 16 + yi * 8 + yl / 4 < 63 && yy * 16 + ym * 8 + yl % 4 * 2 + yv < 31 {
        Y[i, j] = max(C[i, j] + bias[j], 0.0)
      }
    }
  }
}
)";
}

/// A product of bf16 by a group of four warps, in two rounds, straight from shared memory.
inline std::string group_product_text() {
  return print(hw::find_gpu_intrinsic("cuda.wgmma64_bf16_panels")->meaning) + R"(
func product(A: bf16[64,32], B: bf16[32,64], out Y: f32[64,64]) {
  for bi in 1 bind(block.x) {
    alloc C: f32[64,64] warp
    for il in 128 bind(thread.x), im in 2 unroll, jm in 8 unroll, jv in 2 unroll {
      block C.init(i: space 64 = il / 32 * 16 + im * 8 + il / 4 % 8, j: space 64 = jm * 8 + il % 4 * 2 + jv) {
        C[i, j] = 0.0
      }
    }
    for ko in 2 {
      alloc SA: bf16[64,32] shared
      alloc SB: bf16[1,32,64] shared
      for ax in 128 bind(thread.x), av in 8 vector {
        block SA(i: space 64 = ax / 2, k: space 32 = ko * 16 + ax % 2 * 8 + av) {
          SA[i, k] = A[i, k]
        }
      }
      for bx in 128 bind(thread.x), bv in 8 vector {
        block SB(k: space 32 = ko * 16 + bx / 8, j: space 64 = bx % 8 * 8 + bv) {
          SB[0, k, j] = B[k, j]
        }
      }
      block C(k: reduce 2 = ko) {
        call cuda.wgmma64_bf16_panels(C[0:+64, 0:+64], SA[0:+64, k * 16:+16], SB[0:+1, k * 16:+16, 0:+64])
      }
    }
    for yl in 128 bind(thread.x), ym in 2 unroll, yn in 8 unroll, yv in 2 unroll {
      block Y(i: space 64 = yl / 32 * 16 + ym * 8 + yl / 4 % 8, j: space 64 = yn * 8 + yl % 4 * 2 + yv) {
        Y[i, j] = C[i, j]
      }
    }
  }
}
)";
}

}  // namespace tilewright::lower::testing
