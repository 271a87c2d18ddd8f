// This machine's processor: code of it runs in this process.
#pragma once

#include <string>

#include "tilewright/compile/device_backend.h"

namespace tilewright::compile {

const DeviceRuntime& cpu_runtime();

/// Compiles a tiny kernel through C or LLVM; empty if it worked, else why not.
std::string try_code_generator(bool use_c);

}  // namespace tilewright::compile
