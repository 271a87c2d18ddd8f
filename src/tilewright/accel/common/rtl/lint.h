// Verilator's opinion of generated Verilog.
#pragma once

#include <string>

#include "tilewright/base/result.h"

namespace tilewright::accel {

/// All warnings but the waived ones (listed with reasons in lint.cc). `top`: name of the module.
/// errors: Tool; Invalid with the warnings.
Status lint_clean(const std::string& top, const std::string& verilog);

}  // namespace tilewright::accel
