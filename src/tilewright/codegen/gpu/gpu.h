// Kernels of a GPU as text: OpenCL C or CUDA C++ from the same lowered programs.
#pragma once

#include <string>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::codegen {

/// One translation unit with a kernel per entry, named `symbol_of(kernel.func)`: parameters are
/// pointers to the buffers, then the scalars as 64-bit integers. Needs no header files.
/// `matrix_functions`: text that defines the functions of matrix instructions, for a target that
/// has none (tests emulate them); empty: those of the target. errors: Unsupported (a construct, an
/// instruction or a type the target lacks), Invalid (a symbol twice).
Result<std::string> emit_gpu(const std::vector<lower::GpuKernel>& kernels,
                             const hw::GpuTarget& target, const std::string& matrix_functions = {});

}  // namespace tilewright::codegen
