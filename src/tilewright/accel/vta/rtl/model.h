// The compiled model of a configuration.
#pragma once

#include <string>

#include "tilewright/accel/vta/config.h"

namespace tilewright::vta::rtl {

/// Path of the shared object with the interface of harness.h: from the cache, or verilated and
/// compiled now. errors: Tool, Io.
Result<std::string> model_library(const Config& config);

}  // namespace tilewright::vta::rtl
