// explain --sass: what kernels for NVIDIA's GPUs take of the device and which instructions they
// are.
#pragma once

#include <string>

#include "tilewright/driver/compile.h"

namespace tilewright::driver {

/// Prints registers, memory, spills and innermost loops of each kernel of `model`, or of those that
/// compute `node`. errors: Usage (not compiled for CUDA, no such node), Tool (no NVRTC or
/// nvdisasm).
Result<int> explain_sass(const CompiledModel& model, const std::string& node, bool as_json);

}  // namespace tilewright::driver
