// Who measures on a device of this machine: a worker of a fleet, or commands of its user.
//
// Both disturb each other's times, so a lock file per device lies in the user's cache. Commands
// share it. A worker takes it alone for each lease, and asks for none while a command has it, or
// waits for it.
#pragma once

#include <memory>
#include <string>

#include "tilewright/base/locked_file.h"

namespace tilewright::driver {

/// Held by a command until it is destroyed.
struct DeviceUse {
  std::optional<LockedFile> wish, use;
};
/// Waits until no worker of this user measures on `device`, with a line that says so. `device`:
/// `cpu`, `opencl:0`, or a target; what is no GPU is the processor. Nothing is locked where no
/// cache folder can be made, or on a simulator, which others do not disturb. errors: Interrupted.
Result<DeviceUse> use_device(const std::string& device);

/// The same for a worker's lease: null while commands use the device.
std::shared_ptr<void> take_device(const std::string& device);

}  // namespace tilewright::driver
