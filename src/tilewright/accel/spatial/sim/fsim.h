// A `spatial` without time: what its instructions compute.
#pragma once

#include <memory>

#include "tilewright/accel/spatial/device.h"

namespace tilewright::spatial {

/// Finds, besides what every device does, reads of what nothing wrote. Instructions reach as much
/// DRAM as the host wrote.
std::unique_ptr<Device> make_fsim(const Design& design);

}  // namespace tilewright::spatial
