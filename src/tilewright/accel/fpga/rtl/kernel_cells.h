// Cells of a kernel's own lines: what connects the modules. Internal.
#pragma once

#include <string>

#include "tilewright/accel/common/rtl/synth.h"

namespace tilewright::fpga::rtl {

/// `kernel`: the text of the module, as generator.cc writes it, a line for each wire.
accel::Cells kernel_cells(const std::string& kernel);

}  // namespace tilewright::fpga::rtl
