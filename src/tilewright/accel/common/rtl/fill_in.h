// Verilog texts with places to fill in.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tilewright::accel {

/// What stands for ${NAME}, by name.
using VerilogValues = std::map<std::string, std::string>;

/// `text` with its ${NAME} replaced; what is put in may have such places itself.
/// requires: every name has a value.
std::string fill_in(std::string_view text, const VerilogValues& values);

}  // namespace tilewright::accel
