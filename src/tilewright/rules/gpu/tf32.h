// Products of f32 on matrix instructions, which take factors of TF32.
#pragma once

#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::rules {

/// `func` (stage Tensor) with the factors of its products of f32 rounded to TF32, each by a block
/// of its own, where matrix instructions of `target` compute the product; `func` itself where the
/// target does not want that, or math is exact.
Func with_tf32(const Func& func, const hw::GpuTarget& target);

}  // namespace tilewright::rules
