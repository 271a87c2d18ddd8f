// Programs for FPGAs on hardware: a board through registers, a card through XRT.
#pragma once

#include "tilewright/compile/fpga/launch.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/fpga/uio.h"

namespace tilewright::compile {

/// What Linux calls the design and the memory of such a device.
runtime::BoardNames board_names(const hw::FpgaDevice& device);

/// `func` as Verilog, which is on the board already (kFpgaUio).
/// errors: Unsupported (what the Verilog lacks), Device (no board), Package (another design).
Result<std::unique_ptr<FpgaKernel>> load_uio(const Func& func, const hw::FpgaDevice& device);

/// `func` as C++, which was built as NAME.xclbin in the folder $TILEWRIGHT_XCLBIN (kFpgaXrt).
/// errors: Device (no XRT, no card), Package (no such file, or not for the card).
Result<std::unique_ptr<FpgaKernel>> load_xrt(const Func& func, const hw::FpgaDevice& device);

}  // namespace tilewright::compile
