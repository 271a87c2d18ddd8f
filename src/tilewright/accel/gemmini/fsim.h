// The functional simulator: what a program computes, command by command, without time.
#pragma once

#include <memory>

#include "tilewright/accel/gemmini/device.h"

namespace tilewright::gemmini {

/// Sums wrap at 32 bits; a scaled number is a product in f32, rounded half to even. What work.h
/// refuses is an error with the command. units: `dram_bytes`.
std::unique_ptr<Device> make_fsim(const Config& config, uint64_t dram_bytes);

/// What mvout makes of a sum.
int8_t scaled_to_byte(int32_t sum, float scale, Activation activation);
/// A sum divided by 2^shift, rounded half to even. requires: shift <= 31.
int32_t shifted_half_even(int32_t sum, uint32_t shift);

}  // namespace tilewright::gemmini
