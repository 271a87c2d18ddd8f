// GPUs, and CPUs, that OpenCL reaches.
#pragma once

#include <memory>
#include <vector>

#include "tilewright/runtime/gpu/device.h"

namespace tilewright::runtime {

/// Devices of all platforms, in the loader's order. The library is libOpenCL.so.1, or what the
/// environment variable TILEWRIGHT_OPENCL names.
/// errors: Device (no loader, no driver, not in this build), with what to install.
Result<std::vector<std::shared_ptr<GpuDevice>>> opencl_devices();

}  // namespace tilewright::runtime
