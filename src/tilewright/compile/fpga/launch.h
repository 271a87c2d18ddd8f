// Code for an FPGA as a launch of the runtime: its layers one after the other, on one of the
// devices that stand for the FPGA here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/fpga/sim/tsim.h"
#include "tilewright/compile/device_backend.h"
#include "tilewright/compile/fpga/network.h"

namespace tilewright::compile {

/// The device that runs the generated C++ under this machine's compiler; the cycle simulator of
/// designs, with values; their Verilog under Verilator.
inline constexpr const char *kFpgaCsim = "fpga:csim", *kFpgaTsim = "fpga:tsim",
                            *kFpgaRtl = "fpga:rtl";

/// Hardware: a board whose registers Linux maps, with the Verilog; a card through XRT, with the
/// C++.
inline constexpr const char *kFpgaUio = "fpga:uio", *kFpgaXrt = "fpga:xrt";

/// What a call did on a device that counts cycles.
struct DesignRun {
  std::shared_ptr<const fpga::Design> design;
  fpga::Report report;
};

/// One design, ready to run. Not for several threads.
class FpgaKernel {
 public:
  virtual ~FpgaKernel() = default;
  /// `buffers`: of all parameters, in order. `did`: set by devices that count cycles.
  virtual Status run(const std::vector<void*>& buffers, DesignRun& did) = 0;
};

/// Compiles and loads `code`; a program that was compiled before comes from the cache.
/// errors: Device (no device for it), Package, Tool; Unsupported (what the Verilog lacks).
Result<std::unique_ptr<runtime::Launch>> load_fpga_launch(const std::string& name,
                                                          std::string_view code,
                                                          const LaunchSettings& settings,
                                                          std::shared_ptr<LaunchLog> log);

}  // namespace tilewright::compile
