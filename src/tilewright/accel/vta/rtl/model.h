// The compiled model of a configuration.
#pragma once

#include <string>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta::rtl {

/// Path of the shared object with the interface of harness.h: from the cache, or verilated and
/// compiled now. errors: Tool, Io.
Result<std::string> model_library(const Config& config);

/// Adds what an instruction does.
void count(const Config& config, const Insn& insn, Counters& counters);

}  // namespace tilewright::vta::rtl
