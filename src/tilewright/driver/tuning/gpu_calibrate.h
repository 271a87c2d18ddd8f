// Measures what the time model for GPUs needs to know of a device, by kernels of our own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::driver {

/// The rates of `device`; takes a few seconds. What is not measured is as in `target`. `progress`
/// is called before each reading; an error ends the measurement with it.
/// errors: what compiling reports, Device, Capacity, what `progress` reports.
Result<hw::GpuRates> calibrate_gpu(
    const hw::GpuTarget& target, runtime::GpuDevice& device,
    const std::function<Status(int done, int total, const std::string& what)>& progress);

}  // namespace tilewright::driver
