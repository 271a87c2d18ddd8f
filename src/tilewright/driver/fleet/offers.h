// What `worker --device` names, as devices that a fleet can use.
#pragma once

#include <string>
#include <vector>

#include "tilewright/fleet/jobs.h"

namespace tilewright::driver {

/// `cpu`, `opencl:1`, `vta:tsim`, `runner:CMD` or `ssh:BOARD`, commands that run packages for
/// another machine, or `model:...` (fleet/measure/model_device.h). `tags` and `emulated` go to each
/// of them. A device named twice is two devices. errors: Device (not usable here, with the reason;
/// an unknown name, with the nearest), Tool (CMD does not run, is no runner, or one of another
/// version), Usage (BOARD is none).
Result<std::vector<fleet::Offer>> offers_of(const std::vector<std::string>& devices,
                                            const std::vector<std::string>& tags, bool emulated);

/// This machine's name, as others see it.
std::string host_name();

}  // namespace tilewright::driver
