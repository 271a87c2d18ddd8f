// The designs of a package for FPGAs as Verilog: what a board is configured with.
#pragma once

#include <string>
#include <vector>

#include "tilewright/driver/generated_rtl.h"

namespace tilewright::driver {

/// One after the other: each serves the layers that share it, of all launches of the package.
/// errors: those of opening it; Usage (nothing in it runs on an FPGA); Unsupported, Capacity.
Result<std::vector<GeneratedRtl>> package_rtl(const std::string& path);

}  // namespace tilewright::driver
