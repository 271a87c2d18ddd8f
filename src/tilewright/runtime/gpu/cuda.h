// NVIDIA GPUs through the driver's own interface; the CUDA runtime and toolkit are not needed.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/runtime/gpu/device.h"

namespace tilewright::runtime {

/// All devices, in the driver's order. The driver is libcuda.so.1, or what the environment variable
/// TILEWRIGHT_CUDA_DRIVER names. errors: Device (no driver, no device), with what to install.
Result<std::vector<std::shared_ptr<GpuDevice>>> cuda_devices();

}  // namespace tilewright::runtime
