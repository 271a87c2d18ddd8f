// explain --sass: what kernels for NVIDIA's GPUs take of the device and which instructions they
// are.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/runtime/gpu/program.h"

namespace tilewright::driver {

/// Steps that launch the kernel `symbol`, each once: what is prepared first, then the program's.
std::vector<std::string> steps_of(const runtime::GpuProgram& program, const std::string& symbol);

/// Prints registers, memory, spills and innermost loops of each kernel of `model`, or of those that
/// compute `node`. errors: Usage (not compiled for CUDA, no such node), Tool (no NVRTC or
/// nvdisasm).
Result<int> explain_sass(const compile::CompiledModel& model, const std::string& node,
                         bool as_json);

}  // namespace tilewright::driver
