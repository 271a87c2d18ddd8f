// The devices of all back-ends, and how a session reaches them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/compile/device_backend.h"
#include "tilewright/runtime/launch.h"
#include "tilewright/runtime/package.h"

namespace tilewright::compile {

struct DeviceEntry {
  std::string target;  ///< the back-end that compiles for it
  DeviceRow row;
};
/// All devices, usable or not.
std::vector<DeviceEntry> all_devices();
/// What runs on `device`: the word before its colon, which is the back-end's name.
std::string backend_name(const std::string& device);
/// Whether the device called `id` counts cycles of its own.
bool keeps_time(const std::string& id);
/// The first device of a back-end that does; empty: none.
std::string timed_device(std::string_view backend);

/// For SessionOptions: finds the back-end of each launch by its name. Launches append to `log`,
/// which they keep alive. errors: Device (nobody runs such code).
runtime::LaunchLoader make_launch_loader(const LaunchSettings& settings,
                                         std::shared_ptr<LaunchLog> log);

/// A package has its hardware inside: `hw` (a name or a file) may only say the same.
/// errors: Package (another design), Usage (another timing, or no program for an accelerator).
Status check_package_hardware(const runtime::Package& package, const std::string& hw);

/// Who reads the configuration called `hw`: whose built-in name that is, or whose `kind` the file
/// names, else whoever understands it. errors: those of the first of them.
struct LoadedHardware {
  const HardwareReader* reader = nullptr;
  std::unique_ptr<Hardware> hardware;
};
Result<LoadedHardware> load_hardware(const std::string& hw);

}  // namespace tilewright::compile
