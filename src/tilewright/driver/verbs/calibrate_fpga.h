// calibrate --target fpga: what multiply-accumulates of our Verilog take on a device.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::driver {

struct FpgaCalibration {
  std::string hw;      ///< a device's name or file
  std::string output;  ///< the device's file with what was measured; empty: none is written
};

/// Has Yosys synthesise the unit of each row [operator.mac.TYPE.rtl] of the device; its cycles are
/// ours to choose and stay. errors: Usage, Parse (the device, the output); Unsupported (an iCE40);
/// Tool, Limit (Yosys); Io.
Result<int> calibrate_fpga(const FpgaCalibration& task, bool as_json);

}  // namespace tilewright::driver
