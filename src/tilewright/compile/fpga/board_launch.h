// Programs for FPGAs on hardware: a board through registers, a card through XRT.
#pragma once

#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/fpga/uio.h"

namespace tilewright::compile {

/// What Linux calls the design and the memory of such a device.
runtime::BoardNames board_names(const hw::FpgaDevice& device);

/// Designs of one structure as Verilog (kFpgaUio), in their order. It is on the board already, or
/// its bitstream is where the board looks for it, and then loaded when a layer needs it.
/// errors: Unsupported (what the Verilog lacks), Device (no board), Package (neither), Capacity.
Result<std::vector<std::unique_ptr<FpgaKernel>>> load_uio(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device);

/// What a board needs for designs of one structure: the number in its register, and the table of
/// each. errors: Unsupported (what the Verilog lacks), Capacity (more numbers than addresses).
Result<std::vector<runtime::BoardKernel>> board_kernels(const SharedDesigns& shared);

/// Designs of one structure as C++, in their order; each kernel (cpp_kernels.h) was built as
/// NAME.xclbin in the folder $TILEWRIGHT_XCLBIN (kFpgaXrt).
/// errors: Device (no XRT, no card), Package (no such file, or not for the card).
Result<std::vector<std::unique_ptr<FpgaKernel>>> load_xrt(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device);

}  // namespace tilewright::compile
