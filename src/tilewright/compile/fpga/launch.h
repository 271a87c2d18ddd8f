// A program as C++ for an FPGA, as packages hold it, and run here.
#pragma once

#include "tilewright/compile/fpga/backend.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::compile {

/// The device that runs the generated C++ under this machine's compiler.
inline constexpr const char* kFpgaCsim = "fpga:csim";

/// What packages hold: the program as text, and the FPGA that it is for. errors: Unsupported
/// (scalars, strides, parameters that are read and written), and what the C++ cannot express.
Result<std::string> fpga_code(const Func& func, const hw::FpgaDevice& device);

/// The FPGA that `code` is for, and the program in it. errors: Package.
struct FpgaCode {
  hw::FpgaDevice device;
  Func func;
};
Result<FpgaCode> parse_fpga_code(std::string_view code);

/// Compiles the C++ and loads it. errors: Device (`id` is no device for it), Package, Tool.
Result<std::unique_ptr<runtime::Launch>> load_fpga_launch(std::string_view code,
                                                          const std::string& id);

}  // namespace tilewright::compile
