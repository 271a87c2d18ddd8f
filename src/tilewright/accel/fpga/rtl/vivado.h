// Files for the vendor's tools around a design: nothing here runs them.
#pragma once

#include <string>

#include "tilewright/accel/fpga/design.h"

namespace tilewright::fpga {

/// A script for Vivado, beside fpga_top.v and fpga_axi.v. Zynq: a system with the processor, the
/// design at 0x43c00000 (UltraScale+: 0xa0000000) and its ports at the processor's memory, down to
/// a bitstream. Other chips: the design alone, placed and routed, with its cells and its clock.
/// `part`: as the vendor orders it.
std::string vivado_script(const Design& design, const std::string& part, double clock_mhz);

/// A script for the shell that runs the other one; exit code 7 without Vivado.
std::string vivado_build();

}  // namespace tilewright::fpga
