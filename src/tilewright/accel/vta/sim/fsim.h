// The functional simulator: what a program computes, instruction by instruction, without time.
#pragma once

#include <memory>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

/// Bit-exact with hardware: stores read the OUT buffer, which GEMM and ALU write beside ACC.
/// Modules run as a Kahn network; reports ranges, deadlock, leftover tokens and shift amounts.
/// units: `dram_bytes`.
std::unique_ptr<Device> make_fsim(const Config& config, uint64_t dram_bytes);

}  // namespace tilewright::vta
