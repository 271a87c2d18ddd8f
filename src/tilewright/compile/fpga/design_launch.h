// Programs for FPGAs as designs: in the cycle simulator, and as Verilog under Verilator.
#pragma once

#include "tilewright/accel/fpga/sim/tsim.h"
#include "tilewright/compile/device_backend.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

/// The cycle simulator of the design, with values; its Verilog under Verilator.
inline constexpr const char *kFpgaTsim = "fpga:tsim", *kFpgaRtl = "fpga:rtl";

/// Times of memory outside of the chip, in cycles of the device's clock.
fpga::MemoryTiming memory_timing(const hw::FpgaDevice& device);

/// `func`, with its schedule, as a design. errors: Unsupported (what the Verilog lacks).
Result<fpga::Design> fpga_design(const Func& func, const hw::FpgaDevice& device);

/// `func` as a design on kFpgaTsim or kFpgaRtl; each run enters what it did in `log`.
/// errors: Unsupported (what the Verilog lacks); Tool (no Verilator).
Result<std::unique_ptr<runtime::Launch>> load_design_launch(const Func& func,
                                                            const hw::FpgaDevice& device,
                                                            const std::string& name,
                                                            const LaunchSettings& settings,
                                                            std::shared_ptr<LaunchLog> log);

}  // namespace tilewright::compile
