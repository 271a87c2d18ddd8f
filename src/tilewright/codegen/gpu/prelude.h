// The fixed first part of every emitted GPU program.
#pragma once

#include <string>

#include "tilewright/hw/gpu_target.h"

namespace tilewright::codegen {

/// Types, macros and functions for `target`: those of codegen/common/arithmetic.h; `tw_b2` to
/// `tw_b16`, bytes that one access moves. `f64`: whether the program computes in it.
std::string gpu_prelude(const hw::GpuTarget& target, bool f64);

}  // namespace tilewright::codegen
