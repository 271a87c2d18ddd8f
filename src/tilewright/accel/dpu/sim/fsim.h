// The functional simulator: what a program computes, instruction by instruction, without time.
#pragma once

#include <memory>

#include "tilewright/accel/dpu/device.h"

namespace tilewright::dpu {

/// Executes encoded instructions on banks and addresses, wrap included, for `pe` images; units are
/// processes joined by tokens. Reading what nothing wrote is an error, as are deadlock, tokens left
/// and ranges, each with the instruction. units: `ddr_bytes`.
std::unique_ptr<Device> make_fsim(const Config& config, uint64_t ddr_bytes);

}  // namespace tilewright::dpu
