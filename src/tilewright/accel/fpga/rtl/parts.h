// What the generated Verilog and the C++ around it are made of. Internal.
#pragma once

#include <map>
#include <string>

namespace tilewright::fpga::rtl {

/// Modules of the library (verilog/*.v), by the name of their file.
const std::map<std::string, std::string>& texts();
extern const char* const kMemoryModel;  ///< sim/memory_model.h

}  // namespace tilewright::fpga::rtl
