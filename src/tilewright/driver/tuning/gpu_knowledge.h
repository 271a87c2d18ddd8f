// What this machine knows of a GPU: rates measured on it, and schedules that tuning found for it.
#pragma once

#include <string>

#include "tilewright/driver/subject.h"
#include "tilewright/runtime/gpu/device.h"

namespace tilewright::driver {

/// `target` as `device` is: its units, and what was measured on it if that is kept.
hw::GpuTarget fitted(const hw::GpuTarget& target, const runtime::GpuDeviceInfo& device);

/// Rates of the device with this key (gpu_target_key). errors: Io (there are none), Parse, Package.
Result<hw::GpuRates> kept_gpu_rates(const std::string& key, const hw::GpuRates& base);
/// errors: Io.
Status keep_gpu_rates(const std::string& key, const hw::GpuRates& rates);
/// Where they are kept. errors: Io.
Result<std::string> gpu_rates_path(const std::string& key);

/// Lets `compile` follow both, where anything is kept and the device is there.
/// requires: the target is a GPU. errors: Io (a named store that is not there), Package.
Status use_gpu_knowledge(compile::CompileOptions& compile, const SubjectOptions& options);

}  // namespace tilewright::driver
