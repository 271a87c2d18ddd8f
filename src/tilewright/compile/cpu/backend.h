// Processors: kernels through LLVM or C.
#pragma once

#include "tilewright/compile/backend.h"

namespace tilewright::compile {

const Backend& cpu_backend();

}  // namespace tilewright::compile
