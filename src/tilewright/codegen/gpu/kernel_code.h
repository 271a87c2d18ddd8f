// What a runtime is told of a kernel.
#pragma once

#include "tilewright/lower/gpu.h"
#include "tilewright/runtime/gpu/program.h"

namespace tilewright::codegen {

/// The kernel as emit_gpu names it, with its launch and the maps it takes.
runtime::GpuKernelCode kernel_code(const lower::GpuKernel& kernel);

}  // namespace tilewright::codegen
