// One scheduled kernel on a GPU of this machine, for measuring.
#pragma once

#include <memory>
#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/measure/device_kernel.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::driver {

/// The GPU of this machine that runs code for `target`: the one that `device` names, or the first
/// of the target's language. Opened once per process and id.
/// errors: Device (none there, with what to install; one that does not understand the code).
Result<std::shared_ptr<runtime::GpuDevice>> gpu_for(const hw::GpuTarget& target,
                                                    const std::string& device);

/// measure::gpu_key for that device.
std::string gpu_target_key(const hw::GpuTarget& target, const runtime::GpuDeviceInfo& device);

/// Compiles and loads a scheduled Func; times are recorded. For workers (measure/device_kernel.h).
/// requires: a GPU's target.
Result<std::unique_ptr<measure::DeviceKernel>> load_gpu_kernel(const Func& scheduled,
                                                               const hw::Target& target,
                                                               int threads,
                                                               const std::string& device);

}  // namespace tilewright::driver
