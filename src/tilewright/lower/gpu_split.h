// Between the pipelines `gpu` and `gpu-kernel`: what the host calls, and what kernels do.
#pragma once

#include "tilewright/lower/gpu.h"

namespace tilewright::lower {

/// The plan of a Func that the pipeline `gpu` made. Its kernels have no barriers yet, and no limits
/// have been looked at. errors: Unsupported (sizes that are not constant, memory of a block that
/// several kernels use).
Result<GpuLaunches> split_kernels(const Func& func);

}  // namespace tilewright::lower
