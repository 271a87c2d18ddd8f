// The fixed first part of every emitted GPU program.
#pragma once

#include <string>

#include "tilewright/hw/gpu_target.h"

namespace tilewright::codegen {

/// What a program needs beyond 32-bit arithmetic.
struct GpuNeeds {
  bool f64 = false, atomics = false, atomics64 = false;
};

/// Types, macros and functions for `target`: those of codegen/common/arithmetic.h; `tw_b2` to
/// `tw_b16`, bytes that one access moves; `tw_atomic_add_f32(p, value)` and relatives on memory of
/// the device, `tw_atomic_add_f32_shared` on that of a block, for f32, i32 and u32 (with
/// `atomics64` f64, i64 and u64).
std::string gpu_prelude(const hw::GpuTarget& target, const GpuNeeds& needs);

}  // namespace tilewright::codegen
