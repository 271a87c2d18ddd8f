// The Verilog text of the modules (verilog/*.v.in), with ${NAME} where numbers of a design go.
#pragma once

#include <map>
#include <string>

namespace tilewright::spatial::rtl {

/// By the name of their file.
const std::map<std::string, std::string>& texts();

}  // namespace tilewright::spatial::rtl
