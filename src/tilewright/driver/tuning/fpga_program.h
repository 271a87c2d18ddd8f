// Programs for FPGAs get the model's best schedule.
#pragma once

#include <string>

#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::driver {

struct FpgaProgram {
  Func func;
  std::string steps;  ///< that made it, one per line; empty: it is as it was
};
/// With the schedule of the model's best design, and says what that is; or as it was, with the
/// reason. A program that is already cut into processes stays as it is.
FpgaProgram scheduled_for_fpga(const Func& func, const hw::FpgaDevice& device);

}  // namespace tilewright::driver
