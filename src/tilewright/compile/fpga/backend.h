// The back-end of FPGAs: devices of hw/fpga/*.toml for --hw.
#pragma once

#include "tilewright/compile/backend.h"
#include "tilewright/hw/fpga_device.h"

namespace tilewright::compile {

/// The name of the target.
inline constexpr const char* kFpgaTarget = "fpga";

const Backend& fpga_backend();
const DeviceRuntime& fpga_runtime();
const HardwareReader& fpga_hardware();

/// What is special of the target.
struct FpgaTarget {
  hw::FpgaDevice device;
  bool share = true;  ///< layers of a network share designs; else each has its own
};
hw::Target as_target(const FpgaTarget& fpga);
/// Null for targets of other back-ends.
const FpgaTarget* fpga_target(const hw::Target& target);

}  // namespace tilewright::compile
