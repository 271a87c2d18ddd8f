// Where the time of launches on a GPU goes, for people and machines.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/compile/backend.h"
#include "tilewright/compile/devices.h"
#include "tilewright/hw/gpu_target.h"

namespace tilewright::driver {

/// One group of a launch: all calls that compute it.
struct GpuStepTime {
  std::string launch, step;
  std::vector<std::string> kernels;  ///< symbols, in the order of the calls
  double ns = 0;                     ///< mean of a run, by the device's clock
  double operations = 0;             ///< 0: unknown
  int64_t bytes = 0;                 ///< of the buffers that it uses, each once
  double limit_ns = 0;               ///< what the target allows at best; 0: unknown
};

/// `launches`: what was compiled, by name, for the numbers of operations; may be empty. `target`:
/// for limits; may be null.
std::vector<GpuStepTime> gpu_step_times(const compile::LaunchLog& log,
                                        const std::map<std::string, compile::LaunchCode>& launches,
                                        const hw::GpuTarget* target);

/// Steps, and runs without what it takes to time each call (`run_ns`).
struct GpuProfile {
  std::vector<GpuStepTime> steps;
  double run_ns = 0;
};
GpuProfile gpu_profile(const compile::LaunchLog& log,
                       const std::map<std::string, compile::LaunchCode>& launches,
                       const hw::GpuTarget* target);

nlohmann::ordered_json gpu_profile_json(const GpuProfile& profile);
/// A row per step; the last two sum up and give the time of whole runs.
std::string gpu_profile_table(const GpuProfile& profile);

}  // namespace tilewright::driver
