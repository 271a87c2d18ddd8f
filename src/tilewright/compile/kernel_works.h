// How much arithmetic the kernels of a compiled model do.
#pragma once

#include <map>
#include <string>

#include "tilewright/compile/compile.h"

namespace tilewright::compile {

/// Arithmetic of all kernels of a compiled model, by symbol.
std::map<std::string, runtime::KernelWork> kernel_works(const CompiledModel& model);

}  // namespace tilewright::compile
