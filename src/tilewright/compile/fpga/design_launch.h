// Programs for FPGAs as designs: in the cycle simulator, and as Verilog under Verilator.
#pragma once

#include "tilewright/accel/fpga/rtl/rtl.h"
#include "tilewright/compile/fpga/launch.h"
#include "tilewright/hw/fpga_device.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

/// Times of memory outside of the chip, in cycles of the device's clock.
fpga::MemoryTiming memory_timing(const hw::FpgaDevice& device);

/// `func`, with its schedule, as a design. errors: Unsupported (what the Verilog lacks).
Result<fpga::Design> fpga_design(const Func& func, const hw::FpgaDevice& device);

/// Designs of one structure: the numbers of a single one are in its Verilog, those of several in
/// the table of the Verilog that they share.
struct SharedDesigns {
  std::vector<fpga::Design> designs;
  fpga::Numbers numbers = fpga::Numbers::Fixed;
};
/// errors: Unsupported (what the Verilog lacks; designs that differ in more than numbers).
Result<SharedDesigns> shared_designs(const std::vector<const FpgaNetwork::Design*>& alike,
                                     const hw::FpgaDevice& device);

/// Designs of one structure on kFpgaTsim or kFpgaRtl, there on one build, in their order.
/// errors: Unsupported (what the Verilog lacks; designs that differ in more than numbers); Tool (no
/// Verilator).
Result<std::vector<std::unique_ptr<FpgaKernel>>> load_designs(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device,
    const LaunchSettings& settings);

/// What the calls of a launch did, by name, on a device with this clock.
std::shared_ptr<LaunchRecord> design_record(std::string device, double clock_mhz,
                                            std::vector<std::pair<std::string, DesignRun>> calls);

}  // namespace tilewright::compile
