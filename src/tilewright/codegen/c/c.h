// Emits C11 for a lowered Func: the second, independent path beside LLVM.
#pragma once

#include <string>
#include <vector>

#include "tilewright/ir/stmt.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::codegen {

struct CModule {
  std::string source;  ///< one translation unit, needs only libm
  std::vector<KernelInfo> kernels;
};

/// One exported `tw_kernel` per Func, named `symbol_of(func)`. errors: Unsupported, with the
/// construct.
Result<CModule> emit_c(const std::vector<Func>& lowered);

/// The exported symbol: the Func's name with everything but letters, digits and _ replaced by _.
std::string symbol_of(const Func& func);

}  // namespace tilewright::codegen
