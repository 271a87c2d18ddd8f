// GPUs: kernels in OpenCL C or CUDA C++; a graph is one launch.
#pragma once

#include "tilewright/compile/backend.h"
#include "tilewright/compile/gpu/launch.h"

namespace tilewright::compile {

const Backend& gpu_backend(hw::GpuLanguage language);

/// What a launch made by this back-end holds; null for others.
const GpuLaunchCode* gpu_code(const LaunchCode& launch);

}  // namespace tilewright::compile
